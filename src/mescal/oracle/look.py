"""One look at a point: f, c and their derivatives over all rows, whoever asks, in the type of the point.

    f = f0 + sum_k mean over the rows of source k,   c likewise;   w . Hessian = grad^2 (u f + w . c)

Rows may be of another floating type than the point: those kept in float32 are looked at in float64 chunk by chunk. The
functions of a family have one call site.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr

from ..problem import Data, Family, Program
from ..problem.program import in_type
from .access import sum_rows
from .fused import score_sums
from .linear_forms import MOST_FORMS, hessian_sum
from .memory import chunk_bytes, matrix_bytes
from .rounding import fixed_unit, inner_unit, longest_sum, magnitude, unit as rounding_unit

DIRECTIONS = 256  # directions multiplied together at most: bounds what the layers of a deep function hold at a time


class Rounding(NamedTuple):
    """What each number of a look may be off by, as `rounding` derives it, x taken as exact in the factors."""

    objective: Any
    constraint: Any
    gradient: Any
    jacobian: Any


class At(NamedTuple):
    """f and c at a point, with gradient and Jacobian; and how large the samples of both are, where that was looked at.

    `moments` are mean and mean square of what each family adds to f, shape (families, 2); `squares` are mean squares of the
    samples of c; `rounding` is None where nobody asked for it.
    """

    objective: Any
    constraint: Any
    gradient: Any
    jacobian: Any
    moments: Any
    squares: Any
    rounding: Any = None


def values(program: Program, data: tuple[Data | None, ...], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """f(x) and c(x)."""

    def body(k, rows, share, member, program, x):
        f, c = program.contribution(k, x, rows, member)
        return share @ f, program.spread(k, share @ c, member)

    return _total(program, data, program.deterministic(x), body, chunk_bytes(), x)


def linearise(program: Program, data: tuple[Data | None, ...], x: jax.Array, rounded: Any = None) -> At:
    """f, c, grad f and the Jacobian of c, in one pass; with what each of their numbers may be off by where `rounded` is positive.

    That takes longer than all the rest. It is a traced number, so that one program serves those who ask and those who do not,
    whose bounds mean nothing; with None there are no bounds.
    """
    (f, c), pull, sizes = jax.vjp(lambda y: _apart(program.sized_deterministic(y)), x, has_aux=True)
    gradient, jacobian = jnp.zeros_like(x), jnp.zeros((c.size, x.size), x.dtype)
    slopes, rounding = (gradient, jacobian), None
    if program.fixed:
        gradient, jacobian, slopes = _pulled_rows(pull, c, x, True, rounded)
    if rounded is not None:
        unit, inner = fixed_unit(program, x.dtype), inner_unit(program.fixed, x.dtype)
        rounding = jax.tree.map(lambda size: unit * size, Rounding(*sizes, *slopes))
        if program.fixed:
            off = inner * _inside(lambda t: program.sized_deterministic(x, t)[:2], x, rounded)
            rounding = rounding._replace(
                objective=rounding.objective + off[0], constraint=rounding.constraint + off[1:]
            )

    def body(k, rows, share, member, program, x, *asked):
        def sums(y):
            f, c, *sizes = program.sized_contribution(k, y, rows, member)
            return (share @ f, share @ c), (share @ f**2, share @ c**2, share @ sizes[0], share @ sizes[1])

        (f, c), pull, (ff, cc, *sizes) = jax.vjp(sums, x, has_aux=True)
        asked = asked[0] if asked else None
        gradient, jacobian, slopes = _pulled_rows(pull, c, x, program.families[k].feeds_objective, asked)
        moments = jnp.zeros((len(program.families), 2), x.dtype).at[k].set(jnp.stack([f, ff]))
        c, jacobian, cc = (program.spread(k, part, member) for part in (c, jacobian, cc))
        rounding = None
        if asked is not None:

            def shaken(t):
                f, c, *_ = program.sized_contribution(k, x, rows, member, t)
                return share @ f, share @ c

            unit, inside = units[k], inner_unit(program.families[k].terms, x.dtype) * _inside(shaken, x, asked)
            f_off, c_off = unit * sizes[0] + inside[0], unit * sizes[1] + inside[1:]
            off = [program.spread(k, part, member) for part in (c_off, unit * slopes[1])]
            rounding = Rounding(f_off, off[0], unit * slopes[0], off[1])
        return At(f, c, gradient, jacobian, moments, cc, rounding)

    given = () if rounded is None else (rounded,)
    units = [_unit(program, k, rows, x.dtype) for k, rows in enumerate(data) if given]
    start = At(f, c, gradient, jacobian, jnp.zeros((len(program.families), 2), x.dtype), jnp.zeros_like(c), rounding)
    return _total(program, data, start, body, chunk_bytes(), x, *given, once=partial(_read_once, rounded=bool(given)))


def _apart(found: tuple[jax.Array, ...]) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    return found[:2], found[2:]


def _inside(shaken: Callable, x: jax.Array, rounded: Any) -> jax.Array:
    """What f and the rows of c change by, in magnitude, per unit by which all that is computed on the way is off.

    Zeros where `rounded` is not positive.
    """

    def along(s):
        f, c = jax.jvp(shaken, (jnp.zeros_like(s),), (s,))[1]
        return jnp.concatenate([f[None], c])

    return _unless(rounded <= 0, lambda: magnitude(along, jnp.ones((), x.dtype)))


def _pulled_rows(pull: Callable, c: jax.Array, x: jax.Array, feeds: bool, rounded: Any) -> tuple:
    """The gradient of f (zeros unless something feeds it) and the rows of J, from one pullback; and their magnitudes."""

    def pulled(row):
        return pull((row[0], row[1:]))[0]

    def found(row):
        return pulled(row), () if rounded is None else _unless(rounded <= 0, lambda: magnitude(pulled, row))

    # one row after the other: together they would be a product of few rows with many, which XLA's CPU code does badly
    every = jnp.eye(1 + c.size, dtype=x.dtype)[0 if feeds else 1 :]
    rows = jax.lax.map(found, every) if len(every) != 1 else jax.tree.map(lambda v: v[None], found(every[0]))
    if feeds:
        return *(jax.tree.map(lambda part, at=at: part[at], rows[0]) for at in (0, slice(1, None))), jax.tree.map(
            lambda part: (part[0], part[1:]), rows[1]
        )
    return jnp.zeros_like(x), rows[0], jax.tree.map(lambda part: (jnp.zeros_like(x), part), rows[1])


def _unit(program: Program, k: int, rows: Any, dtype: Any) -> float:
    """What a sum over the rows of a family is off by, for every unit of its magnitude."""
    family = program.families[k]
    assert family.sizes is not None
    kept = chunk_bytes() * _narrowness(rows, dtype)
    return rounding_unit(family.terms, dtype, longest_sum(_leaves_of(rows), family.sizes, kept))


def pulled(
    program: Program, data: tuple[Data | None, ...], x: jax.Array, factor: Any, weight: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """f, and the gradient of factor f + weight . c at x, weight held fixed: one pass."""
    factor = jnp.asarray(factor, x.dtype)
    (f, _), pull = jax.vjp(program.deterministic, x)

    def body(k, rows, share, member, program, x, factor, weight):
        (f, _), pull = jax.vjp(lambda y: program.contribution(k, y, rows, member), x)
        return share @ f, pull((factor * share, share[:, None] * weight[program.fed_rows(k, member)]))[0]

    start = f, pull((factor * jnp.ones_like(f), weight))[0]
    return _total(program, data, start, body, chunk_bytes(), x, factor, weight)


def beside(
    program: Program, data: tuple[Data | None, ...], points: jax.Array, weight: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """f, c, and the gradient of f + weight . c, at several points that are one row of a matrix each: one pass over the rows."""

    def deterministic(x):
        (f, c), pull = jax.vjp(program.deterministic, x)
        return f, c, pull((jnp.ones_like(f), weight.astype(c.dtype)))[0]

    def body(k, rows, share, member, program, points, weight):
        fed = weight[program.fed_rows(k, member)]

        def one(x):
            (f, c), pull = jax.vjp(lambda y: program.contribution(k, y, rows, member), x)
            return share @ f, program.spread(k, share @ c, member), pull((share, share[:, None] * fed))[0]

        return jax.vmap(one)(points)

    return _total(program, data, jax.vmap(deterministic)(points), body, chunk_bytes(), points, weight)


def products(
    program: Program, data: tuple[Data | None, ...], x: jax.Array, factor: Any, weight: jax.Array, directions: jax.Array
) -> jax.Array:
    """(factor grad^2 f + sum_j weight_j grad^2 c_j) V for the columns of V, shape (d, k)."""
    return _second_order(program, data, x, factor, weight, directions, _product_sums)


def hessian(
    program: Program, data: tuple[Data | None, ...], x: jax.Array, factor: Any, weight: jax.Array, rough: bool = False
) -> jax.Array:
    """factor grad^2 f + sum_j weight_j grad^2 c_j as a dense matrix; where `rough`, Gram matrices of a chunk are in float32."""
    body = partial(_matrix_sums, kind=jnp.float32 if rough else None)
    return _second_order(program, data, x, factor, weight, jnp.eye(x.size, dtype=x.dtype), body)


def is_gram(program: Program, data: tuple[Data | None, ...], x: np.ndarray, weight: np.ndarray) -> bool:
    """Whether the rows' part of the Hessian is a Gram matrix, and no product with as many directions as there are parameters."""
    found = []

    def body(k, rows, share, member, program, x, factor, weight, directions):
        found.append(_gram(k, rows, share, member, program, x, factor, weight) is not None)
        return jnp.zeros_like(directions)

    jax.eval_shape(lambda x, weight: _second_order(program, data, x, 1.0, weight, x[:, None], body), x, weight)
    return all(found)


def roughness(program: Program, data: tuple[Data | None, ...], size: int, dtype: Any) -> float:
    """How many times the bounds of `hessian_rounding` a rough Hessian is off by, beside what an exact one is."""
    single = float(jnp.finfo(jnp.float32).eps)
    found = []
    for k, rows in enumerate(data):
        assert rows is not None
        added = MOST_FORMS * _together(_leaves_of(rows), size, np.dtype(dtype))[0]
        found.append(single * (added + 4) / _unit(program, k, rows, dtype))  # both factors, the product, the last sum
    return max(found, default=0.0)


def hessian_rounding(
    program: Program,
    data: tuple[Data | None, ...],
    x: jax.Array,
    factor: Any,
    weight: jax.Array,
    direction: jax.Array,
    shake: jax.Array,
    inner: jax.Array,
) -> jax.Array:
    """What the product of the Hessian with a nonnegative `direction` may be off by, as if every entry were off by its most.

    With `shake` 1 functions on the way are shaken, so that what the gradient is off by is in it, too: because x, and all that
    functions compute of it, is known to its last place only; with `inner` 1 that is all that counts, and not what sums are off by.
    """

    def off(terms, unit):
        return jnp.where(inner > 0, inner_unit(terms, x.dtype), unit)

    units = [
        off(family.terms, _unit(program, k, rows, x.dtype))
        for k, (family, rows) in enumerate(zip(program.families, data, strict=True))
    ]
    directions, shakes = direction[:, None], shake[None]

    def body(k, rows, share, member, program, x, factor, weight, directions):
        fed = weight[program.fed_rows(k, member)]

        def gradient(y, t, factor, fed):
            _, pull = jax.vjp(lambda p: program.sized_contribution(k, p, rows, member, t)[:2], y)
            return pull((factor * share, share[:, None] * fed))[0]

        return units[k] * _magnitudes(gradient, x, factor, fed, directions, shakes)

    def fixed(y, t, factor, weight):
        (f, c), pull = jax.vjp(lambda p: program.sized_deterministic(p, t)[:2], y)
        return pull((factor * jnp.ones_like(f), weight.astype(c.dtype)))[0]

    factor = jnp.asarray(factor, x.dtype)
    start = jnp.zeros_like(directions)
    if program.fixed:
        unit = off(program.fixed, fixed_unit(program, x.dtype))
        start = unit * _magnitudes(fixed, x, factor, weight, directions, shakes)
    return _over_families(program, data, start, x, factor, weight, directions, body)[:, 0]


def _second_order(program, data, x, factor, weight, directions, body) -> jax.Array:
    factor = jnp.asarray(factor, x.dtype)

    def gradient(y, factor, weight):
        (f, c), pull = jax.vjp(program.deterministic, y)
        return pull((factor * jnp.ones_like(f), weight.astype(c.dtype)))[0]

    start = _columns(gradient, x, factor, weight, directions) if program.fixed else jnp.zeros_like(directions)
    return _over_families(program, data, start, x, factor, weight, directions, body)


def _over_families(program, data, start, x, factor, weight, directions, body) -> jax.Array:
    """`start` and the sums of `body` over the rows of all families that feed something that counts."""
    columns = directions.shape[1]

    def width(rows: Any) -> int:
        together, row = _together(rows, columns, x.dtype)
        return together * row

    def needless(family: Family) -> Any:
        """Whether it feeds constraints alone, and their weights are zero."""
        rows = sorted({row for fed in family.fed for row in fed})
        return False if family.feeds_objective else ~jnp.any(weight[np.asarray(rows)] != 0)

    return _total(program, data, start, body, width, x, factor, weight, directions, needless=needless)


def _together(rows: Any, columns: int, dtype: Any) -> tuple[int, int]:
    """Rows of a chunk, and bytes of one: never fewer than half the directions, or adding up would cost as much."""
    leaves = jax.tree.leaves(rows)
    row = max(1, sum(leaf.size * leaf.dtype.itemsize // leaf.shape[0] for leaf in leaves))
    return max(1, matrix_bytes() // max(row, dtype.itemsize * columns), columns // 2), row


def _product_sums(k, rows, share, member, program, x, factor, weight, directions):
    fed = weight[program.fed_rows(k, member)]

    def gradient(y, factor, fed):
        _, pull = jax.vjp(lambda p: program.contribution(k, p, rows, member), y)
        return pull((factor * share, share[:, None] * fed))[0]

    return _columns(gradient, x, factor, fed, directions)


def _gram(k, rows, share, member, program, x, factor, weight, kind=None) -> jax.Array | None:
    """The Hessians of rows as one Gram product; None where functions are not of that kind."""
    fed = weight[program.fed_rows(k, member)]

    def one(y, row):
        f, c = program.contribution(k, y, jax.tree.map(lambda leaf: leaf[None], row), member)
        return factor * f[0] + c[0] @ fed

    return hessian_sum(one, x, rows, share, kind)


def _matrix_sums(k, rows, share, member, program, x, factor, weight, directions, kind=None):
    gram = _gram(k, rows, share, member, program, x, factor, weight, kind)
    return _product_sums(k, rows, share, member, program, x, factor, weight, directions) if gram is None else gram


def _columns(gradient: Callable, x: jax.Array, factor: Any, weight: jax.Array, directions: jax.Array) -> jax.Array:
    def along(u):
        return jax.jvp(lambda y: gradient(y, factor, weight), (x,), (u,))[1]

    if directions.shape[1] <= DIRECTIONS:
        return jax.vmap(along, in_axes=1, out_axes=1)(directions)
    return jax.lax.map(along, directions.T, batch_size=DIRECTIONS).T


def _magnitudes(gradient: Callable, x: jax.Array, factor: Any, weight: jax.Array, directions: Any, shakes: Any) -> Any:
    """Derivatives of a gradient at (x, 0) along columns and shakes: linear in the weights, too, among which terms may cancel."""

    def along(factor, weight, directions, shakes):
        def one(u, s):
            return jax.jvp(lambda y, t: gradient(y, t, factor, weight), (x, jnp.zeros_like(s)), (u, s))[1]

        return jax.vmap(one, in_axes=(1, 0), out_axes=1)(directions, shakes)

    return magnitude(along, jnp.abs(factor), jnp.abs(weight), directions, shakes)


def _total(
    program: Program,
    data,
    start: Any,
    body: Callable,
    width: Any,
    *at: jax.Array,
    once: Any = None,
    needless: Any = None,
) -> Any:
    """`start` and what `body(k, rows, share, member, program, *at)` says of every chunk of rows, added up.

    `share` is what a row counts in the mean over its member, 0 for rows that do not count. Families whose part is known to be
    zero, of which `needless(family)` is true (a traced value), are not looked at.
    """
    for k, family in enumerate(program.families):
        rows, sizes = data[k], family.sizes
        assert rows is not None and sizes is not None, "a stream has no exact mean"
        part = None if once is None else once(program, k, rows, at[0])
        if part is None:
            shares = 1 / jnp.asarray(sizes, at[0].dtype)

            def chunk(taken, mask, member, program, shares, *given, k=k):
                count = jax.tree.leaves(taken)[0].shape[0]
                share = jnp.broadcast_to(shares[member], (count,))
                share = share if mask is None else jnp.where(mask, share, 0)
                return body(k, in_type(taken, given[0].dtype), share, member, program, *given)

            wide: Any = width(_leaves_of(rows)) if callable(width) else width * _narrowness(rows, at[0].dtype)
            part = _unless(
                needless is not None and needless(family),
                lambda rows=rows, sizes=sizes, wide=wide, shares=shares, chunk=chunk: sum_rows(
                    chunk, rows, sizes, wide, program, shares, *at
                ),
            )
        start = jax.tree.map(jnp.add, start, part)
    return start


def _unless(condition: Any, part: Callable[[], Any]) -> Any:
    """What `part` says, or zeros, without asking it, where the condition is true."""
    if condition is False:
        return part()
    program, shapes = jax.make_jaxpr(part, return_shape=True)()
    leaves, structure = jax.tree.flatten(shapes)
    nothing = [jnp.zeros(leaf.shape, leaf.dtype) for leaf in leaves]
    found = jax.lax.cond(condition, lambda: nothing, lambda: eval_jaxpr(program.jaxpr, program.consts))
    return jax.tree.unflatten(structure, found)


def _leaves_of(rows: Data) -> Any:
    """Arrays, or their shapes, from which the width of a row can be told."""
    shapes = getattr(rows, "shapes", None)
    if shapes is not None:
        return [jax.ShapeDtypeStruct((1, *shape), dtype) for shape, dtype in shapes]
    return rows


def _narrowness(rows: Data, dtype: Any) -> float:
    """Bytes of a row as it is kept to those of one in `dtype`."""
    leaves = [(leaf.size // leaf.shape[0], leaf.dtype) for leaf in jax.tree.leaves(_leaves_of(rows))]
    kept = sum(size * kind.itemsize for size, kind in leaves)
    taken = sum(size * (dtype if jnp.issubdtype(kind, jnp.floating) else kind).itemsize for size, kind in leaves)
    return kept / max(1, taken)


def _read_once(program: Program, k: int, rows: Any, x: jax.Array, rounded: bool) -> At | None:
    """What the rows of a family add, by a kernel that reads them once, where the device has one for these functions."""
    found = score_sums(program, k, rows, x)
    if found is None:
        return None
    f, c, gradient, jacobian, *sizes = found
    unit = _unit(program, k, rows, x.dtype) if rounded else 0.0
    rounding = Rounding(*(unit * size for size in sizes)) if rounded else None
    nothing = jnp.zeros((len(program.families), 2), x.dtype), jnp.zeros_like(c)
    return At(f, c, gradient, jacobian, *nothing, rounding)

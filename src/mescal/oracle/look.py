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

from ..problem import Data, Family, Program
from ..problem.program import in_type
from .access import sum_rows
from .fused import score_sums
from .linear_forms import hessian_sum
from .memory import chunk_bytes, matrix_bytes
from .rounding import fixed_unit, longest_sum, magnitude, unit as rounding_unit

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


def linearise(program: Program, data: tuple[Data | None, ...], x: jax.Array, rounded: bool = False) -> At:
    """f, c, grad f and the Jacobian of c, in one pass; where `rounded`, with what each of their numbers may be off by."""
    (f, c), pull, sizes = jax.vjp(lambda y: _apart(program.sized_deterministic(y)), x, has_aux=True)
    gradient, jacobian = jnp.zeros_like(x), jnp.zeros((c.size, x.size), x.dtype)
    slopes, rounding = (gradient, jacobian), None
    if program.fixed:
        gradient, jacobian, slopes = _pulled_rows(pull, f, c, x, True, rounded)
    if rounded:
        unit = fixed_unit(program, x.dtype)
        rounding = jax.tree.map(lambda size: unit * size, Rounding(*sizes, *slopes))

    def body(k, rows, share, member, program, x):
        def sums(y):
            f, c, *sizes = program.sized_contribution(k, y, rows, member)
            return (share @ f, share @ c), (share @ f**2, share @ c**2, share @ sizes[0], share @ sizes[1])

        (f, c), pull, (ff, cc, *sizes) = jax.vjp(sums, x, has_aux=True)
        gradient, jacobian, slopes = _pulled_rows(pull, f, c, x, program.families[k].feeds_objective, rounded)
        moments = jnp.zeros((len(program.families), 2), x.dtype).at[k].set(jnp.stack([f, ff]))
        c, jacobian, cc = (program.spread(k, part, member) for part in (c, jacobian, cc))
        rounding = None
        if rounded:
            off = [program.spread(k, part, member) for part in (sizes[1], slopes[1])]
            unit = units[k]
            rounding = Rounding(unit * sizes[0], unit * off[0], unit * slopes[0], unit * off[1])
        return At(f, c, gradient, jacobian, moments, cc, rounding)

    units = [_unit(program, k, rows, x.dtype) for k, rows in enumerate(data)] if rounded else []
    start = At(f, c, gradient, jacobian, jnp.zeros((len(program.families), 2), x.dtype), jnp.zeros_like(c), rounding)
    return _total(program, data, start, body, chunk_bytes(), x, once=partial(_read_once, rounded=rounded))


def _apart(found: tuple[jax.Array, ...]) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    return found[:2], found[2:]


def _pulled_rows(pull: Callable, f: jax.Array, c: jax.Array, x: jax.Array, feeds: bool, rounded: bool) -> tuple:
    """The gradient of f (zeros unless something feeds it) and the rows of J, from one pullback; and their magnitudes."""

    def pulled(row):
        return pull((row[0], row[1:]))[0]

    def found(row):
        return pulled(row), magnitude(pulled, row) if rounded else ()

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


def products(
    program: Program, data: tuple[Data | None, ...], x: jax.Array, factor: Any, weight: jax.Array, directions: jax.Array
) -> jax.Array:
    """(factor grad^2 f + sum_j weight_j grad^2 c_j) V for the columns of V, shape (d, k)."""
    return _second_order(program, data, x, factor, weight, directions, _product_sums)


def hessian(program: Program, data: tuple[Data | None, ...], x: jax.Array, factor: Any, weight: jax.Array) -> jax.Array:
    """factor grad^2 f + sum_j weight_j grad^2 c_j as a dense matrix."""
    return _second_order(program, data, x, factor, weight, jnp.eye(x.size, dtype=x.dtype), _matrix_sums)


def hessian_rounding(
    program: Program, data: tuple[Data | None, ...], x: jax.Array, factor: Any, weight: jax.Array, directions: jax.Array
) -> jax.Array:
    """What products with nonnegative directions may be off by, as if every entry of the Hessian were off by its most."""
    units = [_unit(program, k, rows, x.dtype) for k, rows in enumerate(data)]

    def body(k, *given):
        return units[k] * _product_sums(k, *given, columns=_magnitudes)

    return _second_order(program, data, x, factor, weight, directions, body, fixed_unit(program, x.dtype), _magnitudes)


def _second_order(program, data, x, factor, weight, directions, body, unit=1.0, columns_of=None) -> jax.Array:
    columns_of = columns_of or _columns
    factor = jnp.asarray(factor, x.dtype)

    def gradient(y, factor, weight):
        (f, c), pull = jax.vjp(program.deterministic, y)
        return pull((factor * jnp.ones_like(f), weight.astype(c.dtype)))[0]

    start = unit * columns_of(gradient, x, factor, weight, directions) if program.fixed else jnp.zeros_like(directions)
    columns = directions.shape[1]

    def width(rows: Any) -> int:
        """Bytes of rows that make up a chunk: never fewer than half the directions, or adding up would cost as much."""
        leaves = jax.tree.leaves(rows)
        row = max(1, sum(leaf.size * leaf.dtype.itemsize // leaf.shape[0] for leaf in leaves))
        together = max(1, matrix_bytes() // max(row, x.dtype.itemsize * columns), columns // 2)
        return together * row

    def needless(family: Family) -> Any:
        """Whether it feeds constraints alone, and their weights are zero."""
        rows = sorted({row for fed in family.fed for row in fed})
        return False if family.feeds_objective else ~jnp.any(weight[np.asarray(rows)] != 0)

    return _total(program, data, start, body, width, x, factor, weight, directions, needless=needless)


def _product_sums(k, rows, share, member, program, x, factor, weight, directions, columns=None):
    fed = weight[program.fed_rows(k, member)]

    def gradient(y, factor, fed):
        _, pull = jax.vjp(lambda p: program.contribution(k, p, rows, member), y)
        return pull((factor * share, share[:, None] * fed))[0]

    return (columns or _columns)(gradient, x, factor, fed, directions)


def _matrix_sums(k, rows, share, member, program, x, factor, weight, directions):
    fed = weight[program.fed_rows(k, member)]

    def one(y, row):
        f, c = program.contribution(k, y, jax.tree.map(lambda leaf: leaf[None], row), member)
        return factor * f[0] + c[0] @ fed

    gram = hessian_sum(one, x, rows, share)
    return _product_sums(k, rows, share, member, program, x, factor, weight, directions) if gram is None else gram


def _columns(gradient: Callable, x: jax.Array, factor: Any, weight: jax.Array, directions: jax.Array) -> jax.Array:
    def along(u):
        return jax.jvp(lambda y: gradient(y, factor, weight), (x,), (u,))[1]

    if directions.shape[1] <= DIRECTIONS:
        return jax.vmap(along, in_axes=1, out_axes=1)(directions)
    return jax.lax.map(along, directions.T, batch_size=DIRECTIONS).T


def _magnitudes(gradient: Callable, x: jax.Array, factor: Any, weight: jax.Array, directions: jax.Array) -> jax.Array:
    """As `_columns`: products are linear in the weights, too, and terms may cancel among these."""

    def along(factor, weight, directions):
        return _columns(gradient, x, factor, weight, directions)

    return magnitude(along, jnp.abs(factor), jnp.abs(weight), directions)


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
    shapes = jax.eval_shape(part)
    return jax.lax.cond(condition, lambda: jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes), part)


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

"""One look at a point: f, c and their derivatives over all rows, whoever asks, in the type of the point.

    f = f0 + sum_k mean over the rows of source k,   c likewise;   w . Hessian = grad^2 (u f + w . c)

Rows may be of another floating type than the point: those kept in float32 are looked at in float64 chunk by chunk. The
functions of a family have one call site.
"""

from collections.abc import Callable
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

DIRECTIONS = 256  # directions multiplied together at most: bounds what the layers of a deep function hold at a time


class At(NamedTuple):
    """f and c at a point, with gradient and Jacobian; and how large the samples of both are, where that was looked at.

    `moments` are mean and mean square of what each family adds to f, shape (families, 2); `squares` are mean squares of the
    samples of c.
    """

    objective: Any
    constraint: Any
    gradient: Any
    jacobian: Any
    moments: Any
    squares: Any


def values(program: Program, data: tuple[Data | None, ...], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """f(x) and c(x)."""

    def body(k, rows, share, member, program, x):
        f, c = program.contribution(k, x, rows, member)
        return share @ f, program.spread(k, share @ c, member)

    return _total(program, data, program.deterministic(x), body, chunk_bytes(), x)


def linearise(program: Program, data: tuple[Data | None, ...], x: jax.Array) -> At:
    """f, c, grad f and the Jacobian of c, in one pass."""
    m = program.layout.size
    (f, c), pull = jax.vjp(program.deterministic, x)
    gradient = pull((jnp.ones_like(f), jnp.zeros_like(c)))[0]
    jacobian = jnp.zeros((m, x.size), x.dtype)
    if program.fixed and m:
        jacobian = jax.vmap(lambda row: pull((jnp.zeros_like(f), row))[0])(jnp.eye(m, dtype=x.dtype))

    def body(k, rows, share, member, program, x):
        family = program.families[k]
        p = len(family.fed[0])

        def sums(y):
            f, c = program.contribution(k, y, rows, member)
            return (share @ f, share @ c), (share @ f**2, share @ c**2)

        (f, c), pull, (ff, cc) = jax.vjp(sums, x, has_aux=True)
        gradient = pull((jnp.ones_like(f), jnp.zeros_like(c)))[0] if family.feeds_objective else jnp.zeros_like(x)
        # one row after the other: together they would be a product of few rows with many, which XLA's CPU code does badly
        jacobian = jax.lax.map(lambda row: pull((jnp.zeros_like(f), row))[0], jnp.eye(p, dtype=x.dtype))
        moments = jnp.zeros((len(program.families), 2), x.dtype).at[k].set(jnp.stack([f, ff]))
        rows_of_c = [program.spread(k, part, member) for part in (c, jacobian, cc)]
        return At(f, rows_of_c[0], gradient, rows_of_c[1], moments, rows_of_c[2])

    start = At(f, c, gradient, jacobian, jnp.zeros((len(program.families), 2), x.dtype), jnp.zeros_like(c))
    return _total(program, data, start, body, chunk_bytes(), x, once=_read_once)


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


def _second_order(program, data, x, factor, weight, directions, body) -> jax.Array:
    factor = jnp.asarray(factor, x.dtype)

    def gradient(y):
        (f, c), pull = jax.vjp(program.deterministic, y)
        return pull((factor * jnp.ones_like(f), weight.astype(c.dtype)))[0]

    start = _columns(gradient, x, directions) if program.fixed else jnp.zeros_like(directions)
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


def _product_sums(k, rows, share, member, program, x, factor, weight, directions):
    fed = weight[program.fed_rows(k, member)]

    def gradient(y):
        _, pull = jax.vjp(lambda p: program.contribution(k, p, rows, member), y)
        return pull((factor * share, share[:, None] * fed))[0]

    return _columns(gradient, x, directions)


def _matrix_sums(k, rows, share, member, program, x, factor, weight, directions):
    fed = weight[program.fed_rows(k, member)]

    def one(y, row):
        f, c = program.contribution(k, y, jax.tree.map(lambda leaf: leaf[None], row), member)
        return factor * f[0] + c[0] @ fed

    gram = hessian_sum(one, x, rows, share)
    return _product_sums(k, rows, share, member, program, x, factor, weight, directions) if gram is None else gram


def _columns(gradient: Callable, x: jax.Array, directions: jax.Array) -> jax.Array:
    def along(u):
        return jax.jvp(gradient, (x,), (u,))[1]

    if directions.shape[1] <= DIRECTIONS:
        return jax.vmap(along, in_axes=1, out_axes=1)(directions)
    return jax.lax.map(along, directions.T, batch_size=DIRECTIONS).T


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


def _read_once(program: Program, k: int, rows: Any, x: jax.Array) -> At | None:
    """What the rows of a family add, by a kernel that reads them once, where the device has one for these functions."""
    sums = score_sums(program, k, rows, x)
    if sums is None:
        return None
    return At(*sums, jnp.zeros((len(program.families), 2), x.dtype), jnp.zeros_like(sums[1]))

"""Sums over a traced number of samples, in micro-batches of a fixed size.

A batch of n samples is ceil(n / micro) micro-batches, the last one masked; n may change without compiling anything.
A Python integer n <= micro is one micro-batch of exactly n: no loop and no mask.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import eval_jaxpr


def sum_over_batch(body: Callable[[Any, int, jax.Array | None], Any], n: Any, micro: int) -> Any:
    """Sum `body(start, count, mask)` over the micro-batches of samples 0 .. n-1.

    `body` returns a pytree of arrays: the contribution of samples start .. start+count where mask is true (None: all).
    """
    if single_chunk(n, micro):
        return body(0, int(n), None)
    n = jnp.asarray(n, jnp.int32)
    positions = jnp.arange(micro, dtype=jnp.int32)

    def part(i):
        start = i * micro
        return body(start, micro, start + positions < n)

    return sum_over(part, 0, (n + micro - 1) // micro)


def sum_over_rows(body: Callable[[Any, jax.Array | None], Any], rows: Any, size: int, chunk: int, skip: Any = 0) -> Any:
    """Sum `body(rows, mask)` over all rows of a population, at most `chunk` at a time.

    Chunks are of one size. The last one is moved back so as to end with the last row; rows already counted are masked.
    Chunks that lie wholly among the first `skip` rows, which `body` is to disregard, are not looked at.
    """
    if size <= chunk:
        return body(rows, None)
    steps = -(-size // chunk)
    chunk = -(-size // steps)  # as even as can be: fewer rows than there are chunks are looked at twice
    positions = jnp.arange(chunk, dtype=jnp.int32)

    def part(i):
        start = jnp.minimum(i * chunk, size - chunk)
        taken = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, chunk), rows)
        return body(taken, None if steps * chunk == size else start + positions >= i * chunk)

    return sum_over(part, skip // chunk, steps)


def sum_over(part: Callable[[jax.Array], Any], first: Any, stop: Any) -> Any:
    """The sum of `part(i)` for i = first .. stop - 1. `part` is traced once, and its equations are what the loop repeats."""
    index = jnp.result_type(first, stop)
    program, shapes = jax.make_jaxpr(part, return_shape=True)(jax.ShapeDtypeStruct((), index))
    leaves, structure = jax.tree.flatten(shapes)

    def step(i, sums):
        return [a + b for a, b in zip(sums, eval_jaxpr(program.jaxpr, program.consts, i.astype(index)), strict=True)]

    zeros = [jnp.zeros(leaf.shape, leaf.dtype) for leaf in leaves]
    return jax.tree.unflatten(structure, jax.lax.fori_loop(first, stop, step, zeros))


def single_chunk(n: Any, micro: int) -> bool:
    """Whether a batch of n is one micro-batch whose size is known when compiling."""
    return isinstance(n, int) and n <= micro


def masked(values: jax.Array, mask: jax.Array | None) -> jax.Array:
    """Zero where the mask is false, along the first axis."""
    if mask is None:
        return values
    return jnp.where(mask.reshape(mask.shape + (1,) * (values.ndim - 1)), values, 0)

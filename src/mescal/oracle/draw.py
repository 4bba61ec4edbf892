"""Drawing samples: the i-th sample of a batch depends on the key and on i alone.

So a batch is the same however it is cut into micro-batches, and any part of it can be drawn again. One threefry block
per sample gives 64 random bits; a row index is the floor of (64-bit fraction) * N, uniform to N / 2^64.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

from ..problem import Program, Rows
from .access import Data, take_rows


def draw_rows(
    program: Program,
    data: tuple[Data | None, ...],
    key: jax.Array,
    start: Any,
    count: int,
    only: Iterable[int] | None = None,
) -> tuple[Rows | None, ...]:
    """Samples `start .. start + count` of the batch that `key` names, from every source (or `only` from some)."""
    positions = start + jnp.arange(count, dtype=jnp.uint32)
    wanted = range(len(program.sources)) if only is None else set(only)
    return tuple(
        _draw_source(program, data, key, positions, k) if k in wanted else None for k in range(len(program.sources))
    )


def _draw_source(program: Program, data: tuple[Data | None, ...], key: jax.Array, positions: jax.Array, k: int) -> Rows:
    source = program.sources[k]
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(jax.random.fold_in(key, k), positions)
    if source.draw is not None:
        return Rows(jax.vmap(source.draw)(keys))
    rows = data[k]
    assert rows is not None and source.rows is not None
    # without the barrier XLA fuses the generator into the gather and draws every index once per column
    indices = jax.lax.optimization_barrier(row_indices(jax.random.key_data(keys), source.rows))
    return take_rows(rows, indices)


def row_indices(words: jax.Array, size: int) -> jax.Array:
    """floor(u * size) for u = 0.w0 w1 in base 2^32, without 64-bit integers; uniform on 0..size-1."""
    n = jnp.uint32(size)
    high, low = _multiply_high(words[:, 0], n), words[:, 0] * n
    carry = (low + _multiply_high(words[:, 1], n) < low).astype(jnp.uint32)
    return (high + carry).astype(jnp.int32)


def _multiply_high(a: jax.Array, b: jax.Array) -> jax.Array:
    """The upper 32 bits of a * b."""
    mask, half = jnp.uint32(0xFFFF), jnp.uint32(16)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + ((a0 * b0) >> half)
    return a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & mask)) >> half)

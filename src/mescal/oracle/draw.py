"""Drawing samples: the i-th sample of a batch depends on the key and on i alone.

So a batch is the same however it is cut into micro-batches, and any part of it can be drawn again. One threefry block
per sample gives 64 random bits; a row index is the floor of (64-bit fraction) * N, uniform to N / 2^64.
"""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..problem import Data, Program, Rows
from .access import take_rows

IMPL = "threefry2x32"

fold_in = jax.jit(jax.random.fold_in)  # the same keys as without compiling, in one dispatch


def draw_rows(
    program: Program,
    data: tuple[Data | None, ...],
    key: jax.Array,
    start: Any,
    count: int,
    only: Iterable[int] | None = None,
) -> tuple[Rows | None, ...]:
    """Samples `start .. start + count` of the batch that `key` names, from every family (or `only` from some).

    They have two leading axes: the members of the family, and the samples.
    """
    wanted = sorted(range(len(program.families)) if only is None else set(only))
    drawn: list[Rows | None] = [None] * len(program.families)
    if not wanted:
        return tuple(drawn)
    positions = jnp.asarray(start, jnp.uint32) + jnp.arange(count, dtype=jnp.uint32)
    # one call for all families: each would be one more generator to compile
    sources = [source for k in wanted for source in program.families[k].members]
    each = jax.random.wrap_key_data(jnp.stack([of_source(key, source) for source in sources]), impl=IMPL)
    keys = jax.vmap(lambda own: jax.vmap(lambda i: jax.random.fold_in(own, i))(positions))(each)
    for k in wanted:
        members = len(program.families[k].members)
        drawn[k], keys = _draw_family(program, data, keys[:members], k), keys[members:]
    return tuple(drawn)


def by_sample(drawn: Any) -> Any:
    """What `draw_rows` gave with samples as the first axis, to be mapped over; one of them needs a new second axis again."""
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), drawn)


def _draw_family(program: Program, data: tuple[Data | None, ...], keys: jax.Array, k: int) -> Rows:
    family = program.families[k]
    if family.draw is not None:
        draw, arrays = family.draw, program.constants[family.draw_constants]
        return Rows(jax.vmap(jax.vmap(lambda one: draw(arrays, one)))(keys))
    rows = data[k]
    assert rows is not None and family.rows is not None
    sizes = np.asarray(family.rows)
    firsts = np.cumsum(sizes) - sizes
    indices = row_indices(jax.random.key_data(keys), sizes[:, None]) + jnp.asarray(firsts[:, None], jnp.int32)
    # without the barrier XLA fuses the generator into the gather and draws every index once per column
    taken = take_rows(rows, jax.lax.optimization_barrier(indices.reshape(-1)))
    return jax.tree.map(lambda leaf: leaf.reshape(*indices.shape, *leaf.shape[1:]), taken)


def words(*path: int) -> np.ndarray:
    """Two 32-bit words for a random key, from the numbers that say what it is for; no program has to be compiled for it."""
    return np.random.SeedSequence(path).generate_state(2, np.uint32)


def as_key(given: Any) -> jax.Array:
    """The key of two words; traceable."""
    return jax.random.wrap_key_data(jnp.asarray(given), impl=IMPL)


def of_source(key: jax.Array, source: int) -> jax.Array:
    """The words of a key of a source's own: other words, since a hash of them would be one more to compile."""
    apart = np.random.SeedSequence([source]).generate_state(2, np.uint32)
    return jax.random.key_data(key) ^ jnp.asarray(apart)


def of_step(key: jax.Array, step: jax.Array) -> jax.Array:
    """A key of a step's own, likewise."""
    return jax.random.wrap_key_data(jax.random.key_data(key).at[1].add(step.astype(jnp.uint32)), impl=IMPL)


def row_indices(given: jax.Array, size: Any) -> jax.Array:
    """floor(u * size) for u = 0.w0 w1 in base 2^32, without 64-bit integers; uniform on 0..size-1. The last axis has the words."""
    n = jnp.asarray(size, jnp.uint32)
    high, low = _multiply_high(given[..., 0], n), given[..., 0] * n
    carry = (low + _multiply_high(given[..., 1], n) < low).astype(jnp.uint32)
    return (high + carry).astype(jnp.int32)


def _multiply_high(a: jax.Array, b: jax.Array) -> jax.Array:
    """The upper 32 bits of a * b."""
    mask, half = jnp.uint32(0xFFFF), jnp.uint32(16)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + ((a0 * b0) >> half)
    return a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & mask)) >> half)

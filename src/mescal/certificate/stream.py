"""Exact sums over a population in float64, streamed: blocks of rows go from the host to the device one at a time.

At most two blocks are on the device at any time, so memory stays at the data plus a constant, whatever the precision in
which the data are kept. The last block is moved back to end with the last row; rows already counted are skipped, so that
all blocks have one shape and one compiled program serves them all.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..oracle.batch import sum_over_rows
from ..problem import Population, Rows

BLOCK_BYTES = 64 << 20  # of one block of rows in float64: with its temporaries well under 500 MB
# At most: populations of any larger size share one compiled program, and of the last block, which is moved back, only the
# copy is wasted; measured, see benchmarks/certify_large.py.
BLOCK_ROWS = 8192
CHUNK_BYTES = 1 << 20  # of the float64 rows looked at together inside a block: fits into a core's cache


def row_bytes(population: Population) -> int:
    """Bytes of one row, each number counted as float64."""
    return 8 * sum(int(np.prod(leaf.shape[1:], dtype=np.int64)) for leaf in jax.tree.leaves(population.arrays))


def stream(body: Callable, population: Population, *arguments: Any, chunk_rows: int | None = None) -> Any:
    """Sum `body(rows, mask, *arguments)` over all rows; `body` must be a module-level function or a cached closure.

    Must be called under `jax.enable_x64(True)`. Floating columns reach `body` as float64.
    """
    size, width = population.size, row_bytes(population)
    block = min(size, BLOCK_ROWS, max(1, BLOCK_BYTES // width))
    chunk = chunk_rows or max(1, CHUNK_BYTES // width)
    total, before = None, None
    for start in range(0, size, block):
        first = min(start, size - block)
        rows = Rows(
            jax.tree.map(lambda leaf, first=first: _cut(leaf, first, block), population.arrays),
            None if population.weights is None else population.weights[first : first + block],
        )
        part = _block(body, chunk, rows, start - first, *arguments)
        jax.block_until_ready(before)  # else dozens of blocks wait in the queue, each with its rows
        before = part
        total = part if total is None else jax.tree.map(jnp.add, total, part)
    return total


def _cut(leaf: Any, first: int, block: int) -> Any:
    if isinstance(leaf, jax.Array) and leaf.is_fully_addressable and all(d.platform == "cpu" for d in leaf.devices()):
        leaf = np.asarray(leaf)  # a view: slicing it copies nothing
    return leaf if block == leaf.shape[0] else leaf[first : first + block]


@partial(jax.jit, static_argnums=(0, 1))
def _block(body: Callable, chunk: int, rows: Rows, skip: jax.Array, *arguments: Any) -> Any:
    size = jax.tree.leaves(rows)[0].shape[0]
    positions = jnp.arange(size)

    def counted(taken, mask):
        part, position = taken
        keep = position >= skip
        return body(_float64(part), keep if mask is None else keep & mask, *arguments)

    return sum_over_rows(counted, (rows, positions), size, chunk, skip)


def _float64(rows: Rows) -> Rows:
    return jax.tree.map(
        lambda leaf: leaf.astype(jnp.float64) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, rows
    )

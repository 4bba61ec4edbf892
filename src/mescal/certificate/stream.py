"""Exact sums over a population in float64, streamed: blocks of rows go from the host, or from disk, to the device.

At most two blocks are on the device at any time, so memory stays at the data plus a constant, whatever the precision in
which the data are kept. The last block is moved back to end with the last row; rows already counted are skipped, so that
all blocks have one shape and one compiled program serves them all. Rows over many devices stay where they are.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..oracle.access import on_each_device
from ..oracle.batch import sum_over_rows
from ..problem import Rows, Sharded, ShardedRows

BLOCK_BYTES = 64 << 20  # of one block of rows in float64: with its temporaries well under 500 MB
# At most: populations of any larger size share one compiled program, and of the last block, which is moved back, only the
# copy is wasted; measured, see benchmarks/certify_large.py.
BLOCK_ROWS = 8192
CHUNK_BYTES = 1 << 20  # of the float64 rows looked at together inside a block: fits into a core's cache


class HostRows(Protocol):
    """A population whose rows the host can read in blocks."""

    size: int

    def block(self, first: int, count: int) -> Rows:
        """`count` rows from the row `first` on, and their weights."""
        ...

    def sample_shape(self) -> Any:
        """Shapes and types of one row."""
        ...


def row_bytes(population: HostRows | Sharded) -> int:
    """Bytes of one row, each number counted as float64."""
    shapes = jax.tree.leaves(population.sample_shape())
    return 8 * sum(int(np.prod(leaf.shape, dtype=np.int64)) for leaf in shapes)


def stream(body: Callable, population: HostRows | Sharded, *arguments: Any, chunk_rows: int | None = None) -> Any:
    """Sum `body(rows, mask, *arguments)` over all rows; `body` must be a module-level function or a cached closure.

    Must be called under `jax.enable_x64(True)`. Floating columns reach `body` as float64.
    """
    size, width = population.size, row_bytes(population)
    chunk = chunk_rows or max(1, CHUNK_BYTES // width)
    if isinstance(population, Sharded):
        rows = ShardedRows(Rows(population.arrays, population.weights), population.placement)
        return jax.tree.map(np.asarray, _everywhere(body, chunk, rows, *arguments))
    block = min(size, BLOCK_ROWS, max(1, BLOCK_BYTES // width))
    total, before = None, None
    for start in range(0, size, block):
        first = min(start, size - block)
        part = _block(body, chunk, population.block(first, block), start - first, *arguments)
        jax.block_until_ready(before)  # else dozens of blocks wait in the queue, each with its rows
        before = part
        total = part if total is None else jax.tree.map(jnp.add, total, part)
    return total


@partial(compiled, static_argnums=(0, 1))
def _everywhere(body: Callable, chunk: int, data: ShardedRows, *arguments: Any) -> Any:
    """Every device over its own rows, then one sum over the devices."""

    def local(rows, mask, *given):
        def counted(taken, within):
            part, keep = taken
            masks = [mask for mask in (keep, within) if mask is not None]
            return body(_float64(part), masks[0] & masks[-1] if masks else None, *given)

        return sum_over_rows(counted, (rows, mask), jax.tree.leaves(rows)[0].shape[0], chunk)

    return on_each_device(local, data, *arguments)


@partial(compiled, static_argnums=(0, 1))
def _block(body: Callable, chunk: int, rows: Rows, skip: jax.Array | int, *arguments: Any) -> Any:
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

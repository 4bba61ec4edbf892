"""How compiled programs get at the rows of a population, wherever they are: some of them, or sums over all of them.

| rows              | a batch                                          | a sum over all rows                         |
|-------------------|--------------------------------------------------|---------------------------------------------|
| in memory         | a gather                                         | chunk by chunk                              |
| over many devices | each gives the rows that it has, reduce-scatter  | each over its own rows, then one all-reduce |
| on disk           | a callback that reads them                       | block by block, each read by a callback     |

A batch over many devices is left spread over them, so that each evaluates its share; what is summed over the batch ends in
an all-reduce. Batches that do not divide by the number of devices are evaluated on each of them.

A batch of n samples is ceil(n / micro) micro-batches of a fixed size, the last one masked; n may change without compiling anything.
A Python integer n <= micro is one micro-batch of exactly n: no loop and no mask.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr
from jax.sharding import NamedSharding, PartitionSpec

from ..problem import Data, Rows, ShardedRows, StoredRows
from ..problem.sharding import AXIS, Placement

Body = Callable[..., Any]


def take_rows(data: Data, indices: jax.Array) -> Rows:
    """The rows at the given indices, which must be in range."""
    if isinstance(data, ShardedRows):
        return _exchange(data, indices)
    if isinstance(data, StoredRows):
        return data.at(indices)
    return jax.tree.map(lambda leaf: leaf.at[indices].get(mode="promise_in_bounds"), data)


def sum_rows(body: Body, data: Data, sizes: tuple[int, ...], chunk_bytes: float, *arguments: Any) -> Any:
    """Sum `body(rows, mask, member, *arguments)` over all rows of a family, about `chunk_bytes` of them at a time.

    The rows of a chunk belong to one member; the mask (None: all) says which of them count. Whatever traced values `body` needs
    must be among the arguments: each device has its own view of them.
    """
    if isinstance(data, ShardedRows):
        return on_each_device(
            lambda rows, mask, *given: _sum_chunks(body, rows, mask, chunk_bytes, given), data, *arguments
        )
    if isinstance(data, StoredRows):
        return _sum_blocks(lambda rows, mask: _sum_chunks(body, rows, mask, chunk_bytes, arguments), data, sizes[0])
    if len(sizes) == 1:
        return _sum_chunks(body, data, None, chunk_bytes, arguments)
    return _sum_members(body, data, sizes, _rows_of(data, chunk_bytes), arguments)


def all_rows(data: Data, sizes: tuple[int, ...]) -> tuple[Rows, np.ndarray, np.ndarray]:
    """All rows at once, the member of each, and its share of that member's mean: for what fits into memory."""
    members = np.repeat(np.arange(len(sizes)), sizes)
    shares = np.repeat([1 / size for size in sizes], sizes)
    if isinstance(data, StoredRows):
        return data.block(jnp.int32(0), sizes[0]), members, shares
    if not isinstance(data, ShardedRows):
        return data, members, shares
    at = data.placement
    counted = np.concatenate([np.arange(at.rows) < count for count in at.counts])
    return data.rows, np.zeros(len(counted), int), counted / sizes[0]


def on_each_device(body: Callable, data: ShardedRows, *arguments: Any) -> Any:
    """`body(rows, mask, *arguments)` on every device's own rows, summed over the devices; no mask where all rows count."""
    at = data.placement

    def local(rows, *given):
        mask = None
        if not at.even:
            mine = jnp.asarray(at.counts, jnp.int32)[jax.lax.axis_index(AXIS)]
            mask = jnp.arange(at.rows, dtype=jnp.int32) < mine
        return jax.lax.psum(body(rows, mask, *given), AXIS)

    incoming = PartitionSpec(AXIS), *(PartitionSpec() for _ in arguments)
    return _over(at, local, incoming, PartitionSpec())(data.rows, *arguments)


def replicated(tree: Any, data: tuple[Any, ...]) -> Any:
    """The tree, held whole by every device of the mesh over which a population is spread."""
    meshes = [rows.placement.mesh for rows in data if isinstance(rows, ShardedRows)]
    if not meshes:
        return tree
    return jax.lax.with_sharding_constraint(tree, NamedSharding(meshes[0], PartitionSpec()))


def _exchange(data: ShardedRows, indices: jax.Array) -> Rows:
    at, count = data.placement, indices.shape[0]
    devices = len(at.counts)
    spread = count % devices == 0

    def local(rows, wanted):
        d = jax.lax.axis_index(AXIS)
        own = wanted - jnp.asarray(at.starts, jnp.int32)[d]
        here = (own >= 0) & (own < jnp.asarray(at.counts, jnp.int32)[d])
        own = jnp.where(here, own, 0)

        def give(leaf):
            taken = leaf.at[own].get(mode="promise_in_bounds")
            taken = taken.astype(jnp.int8) if leaf.dtype == bool else taken
            taken = jnp.where(here.reshape(here.shape + (1,) * (taken.ndim - 1)), taken, 0)
            if spread:
                taken = jax.lax.psum_scatter(taken, AXIS, tiled=True)
            else:
                taken = jax.lax.psum(taken, AXIS)
            return taken.astype(leaf.dtype)

        return jax.tree.map(give, rows)

    specs = (PartitionSpec(AXIS), PartitionSpec())
    return _over(at, local, specs, PartitionSpec(AXIS) if spread else PartitionSpec())(data.rows, indices)


def _over(at: Placement, local: Callable, incoming: Any, outgoing: Any) -> Callable:
    # Without `check_vma`, derivatives taken inside are those of a device's own part; the one sum over devices is explicit.
    return jax.shard_map(local, mesh=at.mesh, in_specs=incoming, out_specs=outgoing, check_vma=False)


def _rows_of(rows: Any, chunk_bytes: float) -> int:
    """How many rows have about so many bytes."""
    leaves = jax.tree.leaves(rows)
    size = leaves[0].shape[0]
    return max(1, int(chunk_bytes) // max(1, sum(leaf.size * leaf.dtype.itemsize // size for leaf in leaves)))


def _sum_chunks(body: Body, rows: Any, mask: jax.Array | None, chunk_bytes: float, arguments: Any) -> Any:
    """Over the rows of one device, which belong to one member and some of which may not count."""
    size, chunk = jax.tree.leaves(rows)[0].shape[0], _rows_of(rows, chunk_bytes)
    if mask is None:
        return sum_over_rows(lambda taken, within: body(taken, within, 0, *arguments), rows, size, chunk)

    def counted(taken, within):
        part, keep = taken
        return body(part, keep if within is None else keep & within, 0, *arguments)

    return sum_over_rows(counted, (rows, mask), size, chunk)


def _sum_members(body: Body, rows: Any, sizes: tuple[int, ...], chunk: int, arguments: Any) -> Any:
    """Over the rows of several members, which lie one after the other: chunks of one size, each of one member.

    What a chunk holds of other rows, because its member has no more, does not count.
    """
    total, chunk = sum(sizes), min(chunk, max(sizes))
    table, begin = [], 0
    for member, size in enumerate(sizes):
        for start in range(begin, begin + size, chunk):
            table.append((min(start, total - chunk), start, min(start + chunk, begin + size), member))
        begin += size
    first, low, high, members = (jnp.asarray(column, jnp.int32) for column in np.asarray(table).T)
    positions = jnp.arange(chunk, dtype=jnp.int32)

    def part(i):
        taken = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first[i], chunk), rows)
        at = first[i] + positions
        return body(taken, (at >= low[i]) & (at < high[i]), members[i], *arguments)

    return sum_over(part, 0, len(table))


def _sum_blocks(body: Callable, data: StoredRows, size: int) -> Any:
    """Blocks of one size from disk; the last one is moved back to end with the last row, and masked."""
    block = data.block_rows(size)
    steps = -(-size // block)
    block = -(-size // steps)
    positions = jnp.arange(block, dtype=jnp.int32)

    def part(i):
        first = jnp.minimum(i * block, size - block)
        mask = None if steps * block == size else first + positions >= i * block
        return body(data.block(first, block), mask)

    return sum_over(part, 0, steps)


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

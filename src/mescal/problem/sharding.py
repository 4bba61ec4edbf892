"""Populations over many devices: every device of a mesh holds a block of the rows, parameters are replicated.

Row i of the population is row i - start_d of the device d with start_d <= i < start_d + count_d; blocks are padded to one
length, and what pads them is never counted. With several processes each holds its own rows: the population is their
concatenation, in the order in which the processes first appear in the mesh. Setting up, the processes tell each other how
many rows they have; after that, compiled programs exchange nothing but sums.
"""

import zlib
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from ..errors import InputError, InputTypeError
from .digest import digest_blocks, digest_of
from .program import Rows
from .row_checks import CHECK_ROWS, check_rows, check_weights, refuse_unless_finite
from .source import placed_type

AXIS = "rows"
LARGEST = 2**31 - 1  # rows of a population: indices are 32-bit


@dataclass(frozen=True)
class Placement:
    """Where rows are: a mesh of one axis, the rows of a padded block, and how many of them count on each device."""

    mesh: Mesh
    rows: int
    starts: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def even(self) -> bool:
        """Whether no block is padded."""
        return min(self.counts) == self.rows

    @property
    def size(self) -> int:
        """Rows of the population."""
        return sum(self.counts)

    @property
    def sharding(self) -> NamedSharding:
        """Blocks of rows, one per device."""
        return NamedSharding(self.mesh, PartitionSpec(AXIS))

    @cached_property
    def mine(self) -> list[int]:
        """Positions in the mesh of the devices of this process."""
        here = jax.process_index()
        return [q for q, device in enumerate(self.mesh.devices.flat) if device.process_index == here]

    def place(self, leaf: Any) -> jax.Array:
        """This process's rows as its part of one array over the mesh, in their own type."""
        host, first = np.asarray(leaf), self.starts[self.mine[0]]
        pieces = []
        with jax.enable_x64(True):  # float64 rows stay what they are: the judge looks at them
            for q in self.mine:
                piece = host[self.starts[q] - first : self.starts[q] - first + self.counts[q]]
                missing = self.rows - len(piece)
                if missing:
                    last = (
                        piece[-1:] if len(piece) else host[:1]
                    )  # a row like any other: what pads is computed with, too
                    piece = np.concatenate([piece, np.repeat(last, missing, axis=0)])
                pieces.append(
                    jax.device_put(np.array(piece), self.mesh.devices.flat[q])
                )  # a copy: a CPU may share memory
            shape = (self.rows * len(self.counts), *host.shape[1:])
            return jax.make_array_from_single_device_arrays(shape, self.sharding, pieces)


class ShardedRows(eqx.Module):
    """Rows over a mesh as compiled programs see them: padded arrays, and where the rows are in them."""

    rows: Rows
    placement: Placement = eqx.field(static=True)


class Sharded:
    """A finite population over the devices of a mesh; made by `shard`."""

    def __init__(self, arrays: Any, placement: Placement, weights: jax.Array | None = None, alive: Any = None):
        self.arrays, self.placement, self.weights = arrays, placement, weights
        self._alive = alive
        self._identity = ("sharded", id(arrays), id(alive))

    @property
    def size(self) -> int:
        """Rows over all devices and processes."""
        return self.placement.size

    @property
    def weighted(self) -> bool:
        """Whether rows count differently."""
        return self.weights is not None

    @property
    def key(self) -> tuple:
        """What makes two sources the same source: the same sharded arrays and weights."""
        return self._identity

    def with_weights(self, weights: Any) -> "Sharded":
        """The same rows, weighted: one weight for each row that this process gave."""
        check_weights(weights, sum(self.placement.counts[q] for q in self.placement.mine))
        given = np.asarray(weights, np.float64)
        largest = _from_all([given.max()], np.float64).max()
        shares = given / largest  # whose sum cannot overflow
        scaled = shares * (self.size / _from_all([shares.sum()], np.float64).sum())
        return Sharded(self.arrays, self.placement, self.placement.place(scaled), (self._alive, weights))

    def sample_shape(self) -> Any:
        """Shapes and types of one row."""
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.arrays)

    def check(self):
        """Nothing: rows are looked at before they are placed."""

    @cached_property
    def digest(self) -> str:
        """Of every row and weight, over however many devices; asked for by all processes together."""
        leaves, structure = jax.tree.flatten(Rows(self.arrays, self.weights))
        own = digest_of(str(structure), [self._digest(leaf) for leaf in leaves])
        told = _from_all(list(np.frombuffer(bytes.fromhex(own), np.uint32)), np.uint32)
        return own if len(told) == 1 else digest_of(told.tolist())

    def _digest(self, leaf: jax.Array) -> str:
        """Of the rows of one array that this process has, without what pads them."""
        parts = {shard.device: shard.data for shard in leaf.addressable_shards}
        places = [(self.placement.mesh.devices.flat[q], self.placement.counts[q]) for q in self.placement.mine]
        blocks = (np.asarray(parts[device])[:count] for device, count in places)
        return digest_blocks(leaf.dtype, (sum(count for _, count in places), *leaf.shape[1:]), blocks)

    def at(self, indices: np.ndarray) -> Rows:
        """The rows at the given indices, and their weights, on the host; where one process has them all."""
        place = np.zeros(len(indices), np.int64)
        for q, (start, count) in enumerate(zip(self.placement.starts, self.placement.counts, strict=True)):
            here = (indices >= start) & (indices < start + count)
            place[here] = q * self.placement.rows + indices[here] - start
        with jax.enable_x64(True):
            return jax.tree.map(lambda leaf: np.asarray(leaf[place]), Rows(self.arrays, self.weights))

    def placed(self, dtype: Any) -> ShardedRows:
        """The rows on the devices, floating columns in `dtype` (None: in their own); those that have it are not copied."""

        def cast(leaf, kind):
            return leaf if leaf.dtype == kind else _cast(leaf, kind)

        kinds = jax.tree.map(
            lambda leaf: placed_type(leaf.dtype, dtype), Rows(self.arrays, self.weights)
        )  # before 64-bit types are let in
        with jax.enable_x64(True):
            return ShardedRows(jax.tree.map(cast, Rows(self.arrays, self.weights), kinds), self.placement)

    def __repr__(self) -> str:
        devices = len(self.placement.counts)
        return f"Sharded({self.size} rows over {devices} devices{', weighted' if self.weighted else ''})"


def shard(arrays: Any, mesh: Mesh) -> Sharded:
    """Rows over the devices of a mesh, for `E(fn, over=mescal.shard(arrays, mesh))`.

    **Arguments:**

    - `arrays`: a pytree of arrays with one leading axis. With several processes (`jax.distributed`) every process gives
      its own rows, not all of them; there must be at least one, in arrays of equal types.
    - `mesh`: a `jax.sharding.Mesh`; rows are spread over all of its axes.

    **Returns:** a population. Estimates, work and certificates are those of the same rows on one device, to rounding.
    """
    if not isinstance(mesh, Mesh):
        raise InputTypeError(
            f"shard got {type(mesh).__name__} as its mesh",
            "a jax.sharding.Mesh",
            'write mesh = jax.make_mesh((jax.device_count(),), ("rows",))',
        )
    for leaf in jax.tree.leaves(arrays):
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            raise InputError(
                "shard got an array that spans several processes",
                "the rows of this process alone",
                "pass every process its own rows, as numpy arrays",
            )
    fault, rows, size = None, arrays, 0
    try:
        rows, size = check_rows(arrays)
        for start in range(0, size, CHECK_ROWS):
            refuse_unless_finite(jax.tree.map(lambda leaf, s=start: leaf[s : s + CHECK_ROWS], rows), start)
    except InputError as error:
        fault = error
    placement = _agree(mesh, size, rows, fault)
    placed = jax.tree.map(placement.place, rows)
    return Sharded(placed, placement, None, arrays)


def _agree(mesh: Mesh, size: int, rows: Any, fault: InputError | None) -> Placement:
    """Where every process's rows go; raised by all processes alike if one of them cannot go on."""
    devices = list(mesh.devices.flat)
    order = list(dict.fromkeys(device.process_index for device in devices))
    kind = zlib.crc32(repr([(leaf.shape[1:], str(leaf.dtype)) for leaf in jax.tree.leaves(rows)]).encode()) >> 1
    told = _from_all([size, fault is not None, 0 if fault else kind], np.int32)
    if fault is not None:
        raise fault
    faulty = np.flatnonzero(told[:, 1])
    if len(faulty):
        raise InputError(
            f"the rows of process {faulty[0]} cannot be used",
            "usable rows in every process",
            "see what that process says",
        )
    if len(set(told[:, 2].tolist())) > 1:
        raise InputError(
            "processes gave rows of different shapes or types", "rows of one kind", "read them alike in every process"
        )
    if sorted(order) != list(range(jax.process_count())):
        raise InputError(
            f"a mesh over the devices of processes {sorted(order)}",
            f"devices of all {jax.process_count()} processes",
            "make the mesh of jax.devices()",
        )
    sizes = told[:, 0].astype(np.int64)
    if sizes.sum() > LARGEST:
        raise InputError(f"{sizes.sum()} rows", f"at most {LARGEST}", "split them into several expectations")
    offsets = dict(zip(order, np.cumsum([0, *(int(sizes[p]) for p in order)])[:-1].tolist(), strict=True))
    owners = [device.process_index for device in devices]
    shares = {p: -(-int(sizes[p]) // owners.count(p)) for p in order}
    starts, counts, seen = [], [], dict.fromkeys(order, 0)
    for p in owners:
        count = min(shares[p], int(sizes[p]) - seen[p])
        starts.append(offsets[p] + seen[p])
        counts.append(count)
        seen[p] += count
    flat = Mesh(mesh.devices.reshape(-1), (AXIS,), axis_types=(AxisType.Auto,))
    return Placement(flat, max(counts), tuple(starts), tuple(counts))


def _from_all(values: list, dtype: Any) -> np.ndarray:
    """One row of values from every process."""
    own = np.asarray([values], dtype)
    if jax.process_count() == 1:
        return own
    with jax.enable_x64(True):
        return np.asarray(multihost_utils.process_allgather(own[0])).reshape(-1, len(values))


@partial(jax.jit, static_argnums=1)
def _cast(leaf: jax.Array, kind: np.dtype) -> jax.Array:
    return leaf.astype(kind)

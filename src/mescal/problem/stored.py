"""Populations that stay on disk: rows are read when they are needed, and memory holds a block of them at most.

A batch is gathered on the host from the indices that its key draws, and handed to the compiled program as the result of a
callback: one call per micro-batch, a pure function of the indices. Exact passes read blocks in order. Rows are read with
`pread`, not through the memory map: a map counts every page it has touched as memory of the process, reads ahead where
access is random, and ends the process where the file is cut short; measured, see benchmarks/large_population.py.
"""

import itertools
import os
import threading
import weakref
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, InputTypeError
from .digest import digest_array, digest_blocks, digest_of
from .program import Rows
from .row_checks import count_rows, describe, first_line, real_array, refuse_unless_finite, refuse_unless_numbers
from .source import placed_type

BLOCK_BYTES = 16 << 20  # of the rows that one callback reads in order
LOOKED = 8192  # rows of which weights are looked at together
LARGEST = 2**31 - 1  # rows of a population: indices are 32-bit
_numbers = itertools.count()
_open: "weakref.WeakValueDictionary[int, OnDisk | Selected]" = weakref.WeakValueDictionary()


class Column:
    """One array in a file: `size` rows of one shape and type, one after the other from a byte on."""

    def __init__(self, path: Path, dtype: np.dtype, shape: tuple[int, ...], offset: int):
        self.path, self.dtype, self.shape, self.offset = path, dtype, shape, offset
        self.width = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
        self.file = open(path, "rb")  # noqa: SIM115 - closed with the object
        self.lock, self.checked = threading.Lock(), False
        weakref.finalize(self, self.file.close)
        there, needed = os.fstat(self.file.fileno()).st_size, offset + shape[0] * self.width
        if there < needed:
            raise InputError(
                f"{path.name} has {there} bytes",
                f"{needed}, for {shape[0]} rows of {self.width} bytes",
                "was it cut short while it was written or copied?",
            )

    def read(self, start: int, count: int) -> bytes:
        """`count` bytes from the byte `start` of the rows on."""
        if hasattr(os, "pread"):
            found = os.pread(self.file.fileno(), count, self.offset + start)
        else:  # systems without it: one reader at a time
            with self.lock:
                self.file.seek(self.offset + start)
                found = self.file.read(count)
        if len(found) < count:
            raise OSError(f"{self.path.name} ends within the rows: it was cut short since it was opened")
        return found

    def block(self, first: int, count: int) -> np.ndarray:
        """`count` rows from the row `first` on."""
        parts, start, left = [], first * self.width, count * self.width
        while left:  # one call reads 2 GB at most
            parts.append(self.read(start, min(left, 1 << 30)))
            start, left = start + len(parts[-1]), left - len(parts[-1])
        return np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), self.dtype).reshape(-1, *self.shape[1:])

    @cached_property
    def digest(self) -> str:
        """Of all rows: one pass over the file, the first time."""
        rows = max(1, BLOCK_BYTES // max(1, self.width))
        blocks = (self.block(first, min(rows, self.shape[0] - first)) for first in range(0, self.shape[0], rows))
        return digest_blocks(self.dtype, self.shape, blocks)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """The rows at the given indices."""
        starts = (indices.astype(np.int64) * self.width).tolist()
        return np.frombuffer(b"".join([self.read(start, self.width) for start in starts]), self.dtype).reshape(
            -1, *self.shape[1:]
        )


class StoredRows(eqx.Module):
    """Rows on disk as compiled programs see them: the number of an open population, and what its rows look like."""

    number: Any
    shapes: Any = eqx.field(static=True)  # of one row, in the types of the program; a Rows of shapes, as a hashable
    treedef: Any = eqx.field(static=True)

    def block_rows(self, size: int) -> int:
        """Rows of a population of this size that are read together."""
        width = sum(np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)) for shape, dtype in self.shapes)
        return min(size, max(1, BLOCK_BYTES // max(1, width)))

    def at(self, indices: jax.Array) -> Rows:
        """The rows at the given indices, by a callback; traceable, and derivatives pass it by."""
        return self._call(_gather, indices, indices.shape[0])

    def block(self, first: jax.Array, count: int) -> Rows:
        """`count` rows from the row `first` on."""

        def read(number, first):
            return _read(number, first, count)

        return self._call(read, jnp.asarray(first, jnp.int32), count)

    def _call(self, function, argument: jax.Array, count: int) -> Rows:
        types = tuple(np.dtype(dtype) for _, dtype in self.shapes)

        def on_host(number, given):
            return [
                _words(leaf.astype(dtype, copy=False))
                for leaf, dtype in zip(function(number, given), types, strict=True)
            ]

        shapes = [_words_shape((count, *shape), dtype) for (shape, _), dtype in zip(self.shapes, types, strict=True)]
        words = jax.pure_callback(on_host, shapes, self.number, argument, vmap_method="sequential")
        return jax.tree.unflatten(
            self.treedef, [_of_words(part, dtype) for part, dtype in zip(words, types, strict=True)]
        )


# What a callback returns is rounded to 32 bits where its thread has not let 64-bit types in, as under `jax.enable_x64` it has
# not: such columns come as two words for every number.


def _words_shape(shape: tuple[int, ...], dtype: np.dtype) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((*shape, 2), np.uint32) if dtype.itemsize == 8 else jax.ShapeDtypeStruct(shape, dtype)


def _words(leaf: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(leaf).view(np.uint32).reshape(*leaf.shape, 2) if leaf.dtype.itemsize == 8 else leaf


def _of_words(words: jax.Array, dtype: np.dtype) -> jax.Array:
    return jax.lax.bitcast_convert_type(words, dtype) if dtype.itemsize == 8 else words


def _gather(number: Any, indices: Any) -> list[np.ndarray]:
    return jax.tree.leaves(_open[int(number)].at(np.asarray(indices)))


def _read(number: Any, first: Any, count: int) -> list[np.ndarray]:
    return jax.tree.leaves(_open[int(number)].block(int(first), count))


class OnDisk:
    """A finite population whose rows stay on disk; made by `on_disk`."""

    def __init__(self, columns: list[Column], treedef: Any, weights: Any = None):
        self.columns, self.treedef = columns, treedef
        self.size = count_rows([column.shape for column in columns])
        if self.size > LARGEST:
            raise InputError(f"{self.size} rows", f"at most {LARGEST}", "split them into several populations")
        self.weights, self.factor, self._given = weights, 1.0, weights
        if weights is not None:
            self.factor = _check_stored_weights(weights, self.size)
            self.weights = weights if isinstance(weights, np.memmap) else np.array(weights)  # in memory: a copy
        self._number = next(_numbers)
        _open[self._number] = self

    @property
    def weighted(self) -> bool:
        """Whether rows count differently."""
        return self.weights is not None

    @property
    def key(self) -> tuple:
        """What makes two sources the same source: one object of `on_disk`, with one object of weights."""
        return ("on disk", *map(id, self.columns), None if self._given is None else id(self._given))

    def with_weights(self, weights: Any) -> "OnDisk":
        """The same rows, weighted; weights may be a `numpy.memmap` too."""
        return OnDisk(self.columns, self.treedef, weights)

    def sample_shape(self) -> Any:
        """Shapes and types of one row."""
        return self.treedef.unflatten([jax.ShapeDtypeStruct(c.shape[1:], c.dtype) for c in self.columns])

    @property
    def block_rows(self) -> int:
        """Rows that are read together in an exact pass."""
        return min(self.size, max(1, BLOCK_BYTES // max(1, sum(column.width for column in self.columns))))

    def check(self):
        """Refuse NaN and infinity: one pass over the file, the first time."""
        if not self.columns[0].checked:
            for first in range(0, self.size, self.block_rows):
                refuse_unless_finite(self.block(first, min(self.block_rows, self.size - first)).samples, first)
            for column in self.columns:
                column.checked = True

    @cached_property
    def digest(self) -> str:
        """Of every row and weight."""
        parts = [column.digest for column in self.columns]
        return digest_of(str(self.treedef), parts, None if self.weights is None else digest_array(self.weights))

    def block(self, first: int, count: int) -> Rows:
        """`count` rows from the row `first` on, and their weights."""
        weights = (
            None if self.weights is None else self.factor * np.asarray(self.weights[first : first + count], np.float64)
        )
        return Rows(self.treedef.unflatten([column.block(first, count) for column in self.columns]), weights)

    def at(self, indices: np.ndarray) -> Rows:
        """The rows at the given indices, and their weights."""
        weights = None if self.weights is None else self.factor * np.asarray(self.weights[indices], np.float64)
        return Rows(self.treedef.unflatten([column.at(indices) for column in self.columns]), weights)

    def placed(self, dtype: Any) -> StoredRows:
        """What compiled programs are given: no rows, but where to ask for them; floating columns in `dtype` (None: their own)."""

        def kind(leaf):
            return leaf.shape, str(placed_type(leaf.dtype, dtype))

        kind_of_weights = np.dtype(dtype or np.float64)
        one = Rows(self.sample_shape(), jax.ShapeDtypeStruct((), kind_of_weights) if self.weighted else None)
        leaves, treedef = jax.tree.flatten(one)
        return StoredRows(np.int32(self._number), tuple(map(kind, leaves)), treedef)

    def __repr__(self) -> str:
        return f"OnDisk({self.size} rows{', weighted' if self.weighted else ''})"


class Selected:
    """Some rows of a population that stays on disk."""

    def __init__(self, population: OnDisk, rows: np.ndarray):
        self.population, self.rows, self.size = population, rows, len(rows)
        self.factor = 1.0
        if population.weights is not None:
            parts = (population.at(rows[i : i + LOOKED]).weights.sum() for i in range(0, self.size, LOOKED))
            self.factor = self.size / float(sum(parts))
        self._number = next(_numbers)
        _open[self._number] = self

    def at(self, indices: np.ndarray) -> Rows:
        """Those of the rows at the given indices, and their weights, of mean one over all that were selected."""
        samples, weights = self.population.at(self.rows[indices])
        return Rows(samples, None if weights is None else weights * self.factor)

    def block(self, first: int, count: int) -> Rows:
        """`count` of the rows from the row `first` on."""
        return self.at(np.arange(first, first + count))

    def placed(self, dtype: Any) -> StoredRows:
        """As compiled programs see them; see `OnDisk.placed`."""
        like = self.population.placed(dtype)
        return StoredRows(np.int32(self._number), like.shapes, like.treedef)


def on_disk(rows: Any) -> OnDisk:
    """Rows that stay on disk, for `E(fn, over=mescal.on_disk(rows))`: populations larger than memory.

    **Arguments:**

    - `rows`: a pytree whose leaves are paths of `.npy` files or `numpy.memmap` arrays with one leading axis; or the path of
      a folder that `mescal.datasets.convert_parquet` made.

    **Returns:** a population. Estimates, work and certificates are those of the same rows in memory.
    """
    if isinstance(rows, (str, os.PathLike)) and Path(rows).is_dir():
        found = sorted(Path(rows).glob("*.npy"))
        if not found:
            raise InputError(f"the folder {Path(rows).name} holds no .npy file", "one file per column", "convert first")
        rows = {path.stem: path for path in found}
    leaves, treedef = jax.tree.flatten(rows)
    columns = [_column(leaf) for leaf in leaves]
    for column in columns:
        refuse_unless_numbers(column.dtype)
    return OnDisk(columns, treedef)


def _column(leaf: Any) -> Column:
    if isinstance(leaf, (str, os.PathLike)):
        try:
            leaf = np.load(leaf, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{Path(leaf).name} cannot be read: {first_line(error)}",
                "a .npy file of numbers",
                "write it with numpy.save or numpy.lib.format.open_memmap",
            ) from error
    if isinstance(leaf, np.memmap):
        count_rows([leaf.shape])
    root = leaf
    while isinstance(root, np.memmap) and isinstance(root.base, np.memmap):
        root = root.base
    if not isinstance(leaf, np.memmap) or root.filename is None or not np.may_share_memory(leaf, root):
        raise InputTypeError(
            f"on_disk got {describe(leaf)}",
            "paths of .npy files, or numpy.memmap arrays",
            "give arrays that are in memory to over= as they are",
        )
    if not leaf.flags.c_contiguous:
        raise InputError(
            f"a view of {Path(root.filename).name} whose rows are not stored one after the other",
            "a memory map in C order with one leading axis",
            "store those columns in a file of their own",
        )
    moved = leaf.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return Column(Path(root.filename), leaf.dtype, leaf.shape, root.offset + moved)


def _check_stored_weights(weights: Any, size: int) -> float:
    """size / (sum of the weights), after looking at them block by block."""
    if getattr(weights, "shape", None) != (size,):
        shape = getattr(weights, "shape", type(weights).__name__)
        raise InputError(
            f"weights have shape {shape}", f"one weight per row, an array of shape ({size},)", "check their number"
        )
    real_array(weights[:1], "weights", truths=True)
    total = 0.0
    for first in range(0, size, 1 << 20):
        part = np.asarray(weights[first : first + (1 << 20)], np.float64)
        if not np.isfinite(part).all() or (part < 0).any():
            raise InputError("weights hold a negative or non-finite number", "finite weights >= 0", "check them")
        total += float(part.sum())
    if not 0 < total < np.inf:
        raise InputError(f"weights sum to {total}", "a positive finite sum", "check how the weights were made")
    return size / total

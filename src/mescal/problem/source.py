"""Where samples come from: a finite population of rows, or a stream drawn from a key.

- `Population`: a pytree of arrays with one leading axis; E is the (weighted) mean over its rows.
- `Sampler`: a pure function `draw(key) -> one sample`; E is the expectation over keys.

Populations over many devices are in `sharding`, those that stay on disk in `stored`; `over` tells them apart.

Populations are sampled i.i.d. with replacement: the U-statistic surrogate needs independent draws.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np

from ..checks import refuse_mixed_keys
from ..errors import InputError, InputTypeError
from .digest import digest_array, digest_of
from .program import Rows
from .row_checks import (
    CHECK_ROWS,
    check_rows,
    check_weights,
    describe,
    first_line,
    refuse_unless_finite,
    refuse_unless_numbers,
)
from .traced import Reading, trace

ALIGNMENT = 64  # bytes: memory that begins elsewhere is copied by XLA (its CPU client's kMinAlign)

_numbers = count()


class Sampler:
    """A stream of samples: `draw(key)` returns one sample, a pytree of arrays, and depends on nothing but the key.

    ```python
    gaussian = mescal.Sampler(lambda key: jax.random.normal(key, (3,)))
    ```

    Two expectations over the same `Sampler` object see the same draws. Its law is that of `draw` in the precision that JAX had
    when the sampler was made, whoever draws: solvers in 32 bits and the judge in 64 see one distribution.
    """

    weighted = False

    def __init__(self, draw: Callable[[jax.Array], Any]):
        if not callable(draw):
            raise InputTypeError(
                f"Sampler got {describe(draw)}",
                "a function draw(key) that returns one sample",
                "wrap the sampling code in a function of a JAX random key",
            )
        self.draw = draw
        self.wide = bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]
        self._refuse_unless_pure()

    def _refuse_unless_pure(self):
        """Trace twice and compare: a sampler must be a pure function of its key."""
        try:
            first, second = self.traced(), self.traced()
        except Exception as error:
            raise InputError(
                f"the sampler's draw(key) raised {type(error).__name__}: {first_line(error)}",
                "a function that takes one JAX key and returns one sample",
                "call draw(jax.random.key(0)) by hand and mend what it says",
            ) from error
        for leaf in jax.tree.leaves(first.function.out):
            refuse_unless_numbers(leaf.dtype)
        if first.function is not second.function or not _same(first.constants, second.constants):
            raise InputError(
                "the sampler gave two different samples for the same key",
                "a pure function of its key",
                "draw with jax.random and the key that is passed in, not with numpy.random or a counter",
            )

    def traced(self) -> Reading:
        """`draw`, traced anew in the precision of the sampler."""
        with jax.enable_x64(self.wide):
            return trace(self.draw, random_key())

    def check(self):
        """Nothing: a sampler is looked at when it is made."""

    @property
    def key(self) -> tuple:
        """What makes two sources the same source."""
        return ("sampler", id(self))

    @property
    def size(self) -> None:
        """A stream has no size."""
        return None

    def placed(self, dtype: Any) -> None:
        """A stream has no rows to place on a device."""
        return

    @property
    def digest(self) -> str:
        """A stream has no rows either; what it draws is known by its function."""
        return "stream"

    def sample_shape(self) -> Any:
        """Shapes and types of one sample."""
        with jax.enable_x64(self.wide):
            return jax.eval_shape(lambda key: self.draw(key), random_key())

    def __repr__(self) -> str:
        return f"Sampler({getattr(self.draw, '__qualname__', self.draw)})"


def random_key() -> Any:
    """What a sampler draws from: the shape and type of one key."""
    return jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))


class Population:
    """A finite population: the rows of a pytree of arrays, with weights if they do not count alike.

    With weights w the expectation is sum_i w_i fn(x, row_i) / sum_i w_i. Arrays of numpy are copied: what is written into them
    later changes nothing here. Those of JAX cannot be written into.
    """

    def __init__(self, arrays: Any, weights: Any = None):
        rows, self.size = check_rows(arrays)
        self.weights = None if weights is None else check_weights(weights, self.size)
        self._number, self._first = next(_numbers), 0
        with jax.enable_x64(True):
            self._kept = jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.Array) else _copied(leaf), rows)

    @classmethod
    def of(cls, arrays: Any, weights: Any = None) -> "Population":
        """The population of these arrays: the one that was made of the same objects before, unless they were written into since.

        So two expectations over the same arrays are over one source, and share one copy.
        """
        refuse_mixed_keys(arrays, "over")
        objects = (*map(id, jax.tree.leaves(arrays)), None if weights is None else id(weights))
        known = _known.get(objects)
        if known is None or not known._holds(arrays, weights):  # another object may live at the same place by now
            known = _known[objects] = cls(arrays, weights)
        return known

    def _holds(self, arrays: Any, weights: Any) -> bool:
        """Whether these are its rows and weights, bit for bit."""
        rows, size = check_rows(arrays)
        given = None if weights is None else check_weights(weights, size)
        own = self.weights
        alike = given is None if own is None else given is not None and np.array_equal(given, own)
        if size != self.size or not alike or jax.tree.structure(rows) != jax.tree.structure(self._kept):
            return False
        pairs = zip(jax.tree.leaves(rows), jax.tree.leaves(self.arrays), strict=True)
        return all(leaf is own or _are_same(leaf, own) for leaf, own in pairs)

    @property
    def arrays(self) -> Any:
        """Its rows: arrays of its own, or a part of those that it is joined into."""
        if jax.tree.leaves(self._kept)[0].shape[0] == self.size:
            return self._kept
        cut = slice(self._first, self._first + self.size)
        return jax.tree.map(lambda leaf: _on_host(leaf)[cut], self._kept)

    def join(self, whole: Any, first: int):
        """Rows `first`, ... of larger arrays are this population's from now on: they need not be kept twice."""
        self._kept, self._first = whole, first

    @property
    def weighted(self) -> bool:
        """Whether rows count differently."""
        return self.weights is not None

    @property
    def key(self) -> tuple:
        """What makes two sources the same source: being one; see `of`."""
        return ("population", self._number)

    def sample_shape(self) -> Any:
        """Shapes and types of one row."""
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self._kept)

    def check(self, drawn: bool = False):
        """Refuse NaN and infinity, looking at a bounded number of rows at a time; `drawn` says that a sampler made them."""
        for start in range(0, self.size, CHECK_ROWS):
            rows = jax.tree.map(lambda leaf, s=start: _on_host(leaf)[s : s + CHECK_ROWS], self.arrays)
            refuse_unless_finite(rows, start, drawn)

    @cached_property
    def digest(self) -> str:
        """Of every row and weight; rows that only other processes have are left out."""
        leaves, structure = jax.tree.flatten(self.arrays)
        parts = [digest_array(leaf) for leaf in leaves if getattr(leaf, "is_fully_addressable", True)]
        return digest_of(str(structure), parts, None if self.weights is None else digest_array(self.weights))

    def at(self, indices: np.ndarray) -> Rows:
        """The rows at the given indices, and their weights, on the host."""
        weights = None if self.weights is None else self.weights[indices]
        return Rows(jax.tree.map(lambda leaf: np.asarray(leaf)[indices], self.arrays), weights)

    def placed(self, dtype: Any) -> Rows:
        """The rows on the device, floating columns in `dtype` (None: in their own type)."""
        kinds = jax.tree.map(lambda leaf: placed_type(leaf.dtype, dtype), self.arrays)
        with jax.enable_x64(True):
            weights = None if self.weights is None else _copied(self.weights.astype(dtype or np.float64))
            samples = jax.tree.map(lambda leaf, t: leaf if leaf.dtype == t else leaf.astype(t), self.arrays, kinds)
            return Rows(jax.tree.map(jnp.asarray, samples), weights)

    def __repr__(self) -> str:
        return f"Population({self.size} rows{', weighted' if self.weighted else ''})"


_known: WeakValueDictionary[Any, Population] = WeakValueDictionary()


def placed_type(own: Any, dtype: Any) -> np.dtype:
    """The type in which programs that compute in `dtype` see a column of the type `own`; with None, that type itself."""
    if dtype is None:
        return np.dtype(own)
    return np.dtype(dtype if jnp.issubdtype(own, jnp.floating) else jax.dtypes.canonicalize_dtype(own))


def _copied(array: Any) -> jax.Array:
    """On the device, and nobody else's: a CPU may share the memory of what it is given, and is given a copy then."""
    placed = jax.device_put(array).block_until_ready()
    shared = isinstance(host := _on_host(placed), np.ndarray) and np.may_share_memory(host, array)
    return joined([array]) if shared else placed


def joined(parts: Sequence[Any]) -> jax.Array:
    """Rows one after the other, on the device; on the host they are in a place that a CPU need not copy them from."""
    parts = [np.asarray(part) for part in parts]
    shape = sum(len(part) for part in parts), *parts[0].shape[1:]
    size = int(np.prod(shape)) * parts[0].dtype.itemsize
    room = np.empty(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    whole = room[start : start + size].view(parts[0].dtype).reshape(shape)
    np.concatenate(parts, out=whole)
    return jax.device_put(whole)


def _are_same(one: Any, other: Any) -> bool:
    """Whether two arrays hold the same bits, looking at a bounded number of rows at a time."""
    here = all(getattr(array, "is_fully_addressable", True) for array in (one, other))
    if not here or one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = _on_host(one), _on_host(other)
    cuts = (slice(start, start + CHECK_ROWS) for start in range(0, len(one), CHECK_ROWS))
    return all(np.asarray(one[cut]).tobytes() == np.asarray(other[cut]).tobytes() for cut in cuts)


def _on_host(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return leaf
    if leaf.is_fully_addressable and all(d.platform == "cpu" for d in leaf.devices()):
        return np.asarray(leaf)  # a view: slicing it copies nothing
    return leaf


def _same(first: Any, second: Any) -> bool:
    left, right = jax.tree.leaves(first), jax.tree.leaves(second)
    return jax.tree.structure(first) == jax.tree.structure(second) and all(
        np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True) for a, b in zip(left, right, strict=True)
    )

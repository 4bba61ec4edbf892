"""Where samples come from: a finite population of rows, or a stream drawn from a key.

- `Population`: a pytree of arrays with one leading axis; E is the (weighted) mean over its rows.
- `Sampler`: a pure function `draw(key) -> one sample`; E is the expectation over keys.

Populations are sampled i.i.d. with replacement: the U-statistic surrogate needs independent draws.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, InputTypeError

CHECK_ROWS = 1 << 16  # rows looked at together when data are checked: bounds the memory of the check


class Sampler:
    """A stream of samples: `draw(key)` returns one sample, a pytree of arrays, and depends on nothing but the key.

    ```python
    gaussian = mescal.Sampler(lambda key: jax.random.normal(key, (3,)))
    ```

    Two expectations over the same `Sampler` object see the same draws.
    """

    weighted = False

    def __init__(self, draw: Callable[[jax.Array], Any]):
        if not callable(draw):
            raise InputTypeError(
                f"Sampler got {_describe(draw)}",
                "a function draw(key) that returns one sample",
                "wrap the sampling code in a function of a JAX random key",
            )
        self.draw = draw
        self.check()

    def check(self):
        """Draw twice with one key and compare: a sampler must be a pure function of its key."""
        key = jax.random.key(0, impl="threefry2x32")
        try:
            first, second = self.draw(key), self.draw(key)
        except Exception as error:
            raise InputError(
                f"the sampler's draw(key) raised {type(error).__name__}: {first_line(error)}",
                "a function that takes one JAX key and returns one sample",
                "call draw(jax.random.key(0)) by hand and mend what it says",
            ) from error
        if not _same(first, second):
            raise InputError(
                "the sampler gave two different samples for the same key",
                "a pure function of its key",
                "draw with jax.random and the key that is passed in, not with numpy.random or a counter",
            )

    @property
    def key(self) -> tuple:
        """What makes two sources the same source."""
        return ("sampler", id(self))

    @property
    def size(self) -> None:
        """A stream has no size."""
        return None

    def sample_shape(self) -> Any:
        """Shapes and types of one sample."""
        return jax.eval_shape(self.draw, jax.random.key(0, impl="threefry2x32"))

    def __repr__(self) -> str:
        return f"Sampler({getattr(self.draw, '__qualname__', self.draw)})"


class Population:
    """A finite population: the rows of a pytree of arrays, with weights if they do not count alike.

    With weights w the expectation is sum_i w_i fn(x, row_i) / sum_i w_i.
    """

    def __init__(self, arrays: Any, weights: Any = None):
        leaves, treedef = jax.tree.flatten(arrays)
        if not leaves:
            raise InputError("the data hold no arrays", "a pytree of arrays with one leading axis", "pass the rows")
        leaves = [_as_array(leaf) for leaf in leaves]
        scalars = [leaf for leaf in leaves if leaf.ndim == 0]
        if scalars:
            raise InputError(
                "the data hold a scalar, which has no rows",
                "arrays whose first axis counts the samples",
                "close over constants in the function, or repeat them along the first axis",
            )
        sizes = sorted({leaf.shape[0] for leaf in leaves})
        if len(sizes) > 1:
            raise InputError(
                f"the arrays of one population have unequal leading axes: {sizes}",
                "one number of rows for all arrays of a population",
                "check how the arrays were cut, or give each its own E",
            )
        if sizes[0] == 0:
            raise InputError("the data are empty (0 rows)", "at least one row", "check the filter that made them")
        self.arrays = jax.tree.unflatten(treedef, leaves)
        self.size = sizes[0]
        self.weights = None if weights is None else _check_weights(weights, self.size)
        self._identity = ("population", *map(id, jax.tree.leaves(arrays)), None if weights is None else id(weights))
        self._alive = (arrays, weights)  # identities are of living objects only

    @property
    def weighted(self) -> bool:
        """Whether rows count differently."""
        return self.weights is not None

    @property
    def key(self) -> tuple:
        """What makes two sources the same source: the same array objects and weights."""
        return self._identity

    def sample_shape(self) -> Any:
        """Shapes and types of one row."""
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.arrays)

    def check(self):
        """Refuse NaN and infinity, looking at a bounded number of rows at a time."""
        for path, leaf in jax.tree.leaves_with_path(self.arrays):
            if not np.issubdtype(leaf.dtype, np.inexact):
                continue
            for start in range(0, self.size, CHECK_ROWS):
                bad = ~np.isfinite(np.asarray(leaf[start : start + CHECK_ROWS]))
                if bad.any():
                    row = start + int(np.argwhere(bad)[0][0])
                    where = f" (leaf {jax.tree_util.keystr(path)})" if path else ""
                    raise InputError(
                        f"the data hold NaN or infinity, first in row {row}{where}",
                        "finite numbers",
                        "drop or fill those rows before building the problem",
                    )

    def __repr__(self) -> str:
        return f"Population({self.size} rows{', weighted' if self.weighted else ''})"


Source = Population | Sampler


def as_source(over: Any, weights: Any = None) -> Source:
    """The source that `E(..., over=...)` was given."""
    if isinstance(over, Sampler):
        if weights is not None:
            raise InputError(
                "weights were given together with a Sampler",
                "weights only for a finite population",
                "multiply inside the function, or draw from the weighted distribution",
            )
        return over
    if callable(over):
        raise InputTypeError(
            f"over={_describe(over)} is a function",
            "arrays with one leading axis, or a mescal.Sampler",
            "write over=mescal.Sampler(draw) for a stream",
        )
    return Population(over, weights)


def _as_array(leaf: Any):
    if isinstance(leaf, (np.ndarray, jax.Array)):
        array = leaf
    else:
        try:
            array = np.asarray(leaf)
        except Exception as error:
            raise InputTypeError(
                f"the data hold {_describe(leaf)}, which numpy cannot read: {first_line(error)}",
                "numeric arrays",
                "convert to a numpy array first",
            ) from error
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == bool or jnp.issubdtype(array.dtype, jnp.number)):
        raise InputTypeError(
            f"the data hold entries of type {array.dtype}",
            "numbers or booleans",
            "encode categories and text as numbers first",
        )
    return array


def _check_weights(weights: Any, size: int) -> np.ndarray:
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (size,):
        raise InputError(
            f"weights have shape {array.shape}", f"one weight per row, shape ({size},)", "check the order of arguments"
        )
    if not np.isfinite(array).all() or (array < 0).any() or array.sum() <= 0:
        raise InputError(
            "weights hold a negative or non-finite number, or sum to zero",
            "finite weights >= 0 with a positive sum",
            "check how the weights were made",
        )
    return array * (size / array.sum())


def _same(first: Any, second: Any) -> bool:
    left, right = jax.tree.leaves(first), jax.tree.leaves(second)
    return jax.tree.structure(first) == jax.tree.structure(second) and all(
        np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True) for a, b in zip(left, right, strict=True)
    )


def _describe(thing: Any) -> str:
    return f"{type(thing).__name__} {str(thing)[:40]!r}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, cut to fit into another one's."""
    return (str(error).strip().splitlines() or [""])[0][:200]

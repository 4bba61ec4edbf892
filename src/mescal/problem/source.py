"""Where samples come from: a finite population of rows, or a stream drawn from a key.

- `Population`: a pytree of arrays with one leading axis; E is the (weighted) mean over its rows.
- `Sampler`: a pure function `draw(key) -> one sample`; E is the expectation over keys.

Populations over many devices are in `sharding`, those that stay on disk in `stored`; `over` tells them apart.

Populations are sampled i.i.d. with replacement: the U-statistic surrogate needs independent draws.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, InputTypeError
from .checks import CHECK_ROWS, check_rows, check_weights, describe, first_line, refuse_unless_finite
from .program import Rows


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
                f"Sampler got {describe(draw)}",
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

    def placed(self, dtype: Any) -> None:
        """A stream has no rows to place on a device."""
        return

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
        self.arrays, self.size = check_rows(arrays)
        self.weights = None if weights is None else check_weights(weights, self.size)
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
        for start in range(0, self.size, CHECK_ROWS):
            refuse_unless_finite(jax.tree.map(lambda leaf, s=start: leaf[s : s + CHECK_ROWS], self.arrays), start)

    def block(self, first: int, count: int) -> Rows:
        """`count` rows from the row `first` on, and their weights; views where that is possible."""
        weights = None if self.weights is None else self.weights[first : first + count]
        return Rows(jax.tree.map(lambda leaf: _cut(leaf, first, count), self.arrays), weights)

    def at(self, indices: np.ndarray) -> Rows:
        """The rows at the given indices, and their weights, on the host."""
        weights = None if self.weights is None else self.weights[indices]
        return Rows(jax.tree.map(lambda leaf: np.asarray(leaf)[indices], self.arrays), weights)

    def placed(self, dtype: Any) -> Rows:
        """The rows on the device, floating columns in `dtype`."""

        def place(leaf):
            return jnp.asarray(leaf, dtype if jnp.issubdtype(leaf.dtype, jnp.floating) else None)

        weights = None if self.weights is None else jnp.asarray(self.weights, dtype)
        return Rows(jax.tree.map(place, self.arrays), weights)

    def __repr__(self) -> str:
        return f"Population({self.size} rows{', weighted' if self.weighted else ''})"


def _cut(leaf: Any, first: int, count: int) -> Any:
    if isinstance(leaf, jax.Array) and leaf.is_fully_addressable and all(d.platform == "cpu" for d in leaf.devices()):
        leaf = np.asarray(leaf)  # a view: slicing it copies nothing
    return leaf if count == leaf.shape[0] else leaf[first : first + count]


def _same(first: Any, second: Any) -> bool:
    left, right = jax.tree.leaves(first), jax.tree.leaves(second)
    return jax.tree.structure(first) == jax.tree.structure(second) and all(
        np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True) for a, b in zip(left, right, strict=True)
    )

"""The structure of the parameters: any pytree of floating arrays, seen as one flat vector.

Solvers and the judge work on flat vectors; users' functions and sets see the pytree. Leaves that are no arrays (the
activation of an equinox module, say) are kept aside and put back unchanged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..checks import refuse_mixed_keys
from ..errors import InputError, InputTypeError
from .row_checks import refuse_masked, refuse_traced


@dataclass(frozen=True)
class Parameters:
    """Shapes, types and static leaves of a pytree of parameters.

    Compiled programs are keyed by it, and compare what they depend on: structure and shapes, and neither the types in which a
    result is handed back nor the leaves that are no arrays.
    """

    treedef: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...] = field(compare=False)
    static_treedef: Any = field(compare=False)
    static_leaves: tuple[Any, ...] = field(compare=False)

    @property
    def key(self) -> tuple:
        """Everything: what a problem is bound to."""
        return self.treedef, self.shapes, self.dtypes, self.static_treedef, self.static_leaves

    @property
    def size(self) -> int:
        """The number of scalar parameters."""
        return sum(prod(shape) for shape in self.shapes)

    def arrays(self, vector: Any) -> Any:
        """The pytree of arrays alone (None where a leaf is static), in the vector's type."""
        leaves, start = [], 0
        for shape in self.shapes:
            stop = start + prod(shape)
            leaves.append(vector[start:stop].reshape(shape))
            start = stop
        return jax.tree.unflatten(self.treedef, leaves)

    def unflatten(self, vector: Any) -> Any:
        """The user's pytree, in the vector's type."""
        return self._whole(self.arrays(vector))

    def restore(self, vector: Any) -> Any:
        """The user's pytree in its own types: what a result hands back.

        JAX's arrays, as far as JAX is set to have such types; what was given and computed in a wider one stays so, in numpy's.
        """
        vector = np.asarray(vector)
        held = [jax.dtypes.canonicalize_dtype(dtype) for dtype in self.dtypes]
        types = [own if str(vector.dtype) == own else kind for own, kind in zip(self.dtypes, held, strict=True)]
        return self._whole(jax.tree.map(_placed, self._cast(vector, types)))

    def typed(self, vector: Any) -> Any:
        """The pytree of arrays alone, on the host and in its own types."""
        return self._cast(vector, self.dtypes)

    def flatten(self, arrays: Any) -> jax.Array:
        """The flat vector of a pytree of arrays with this structure."""
        leaves = [jnp.ravel(leaf) for leaf in jax.tree.leaves(arrays)]
        return leaves[0] if len(leaves) == 1 else jnp.concatenate(leaves)

    @property
    def bare(self) -> bool:
        """Whether the parameters are a single array."""
        return self.treedef == jax.tree.structure(0)

    def _cast(self, vector: Any, types: Sequence[Any]) -> Any:
        leaves = jax.tree.leaves(self.arrays(np.asarray(vector)))
        return jax.tree.unflatten(self.treedef, [leaf.astype(t) for leaf, t in zip(leaves, types, strict=True)])

    def _whole(self, arrays: Any) -> Any:
        return arrays if self.bare else eqx.combine(arrays, jax.tree.unflatten(self.static_treedef, self.static_leaves))


def _placed(leaf: np.ndarray) -> Any:
    return jax.device_put(leaf) if jax.dtypes.canonicalize_dtype(leaf.dtype) == leaf.dtype else leaf


def is_rounded(x: Any, dtype: Any) -> bool:
    """Whether arrays of `x` hold numbers that `dtype` does not; plain Python numbers ask for no type."""
    typed = [leaf for leaf in jax.tree.leaves(x) if isinstance(leaf, (np.ndarray, np.generic, jax.Array))]
    wide = [np.asarray(leaf) for leaf in typed if leaf.dtype == np.float64]
    return any(not np.array_equal(leaf, leaf.astype(dtype)) for leaf in wide)


def flatten_parameters(x: Any, name: str = "x") -> tuple[Parameters, np.ndarray]:
    """Split `x` into its structure and a flat vector (numpy, in the widest of its floating types)."""
    refuse_mixed_keys(x, name)
    refuse_traced(x, name)
    leaves = jax.tree.leaves(x)
    for leaf in leaves:
        refuse_masked(leaf, name)
    if (leaves and not any(eqx.is_array_like(leaf) for leaf in leaves)) or not leaves:
        raise InputTypeError(
            f"{name} holds no numbers ({type(x).__name__})",
            "a pytree of floating-point arrays",
            "pass the initial parameters",
        )
    if not any(isinstance(leaf, (np.ndarray, np.generic, jax.Array)) for leaf in leaves):
        x = jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, (int, float, complex)) else leaf, x)
    x = jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, np.generic) else leaf, x)
    for path, leaf in jax.tree.leaves_with_path(x):
        if isinstance(leaf, (np.ndarray, jax.Array)) and not jnp.issubdtype(leaf.dtype, jnp.floating):
            where = f" at {jax.tree_util.keystr(path)}" if path else ""
            raise InputTypeError(
                f"{name} holds an array of type {leaf.dtype}{where}",
                "real floating-point parameters",
                f"convert it: {name}.astype(float), or make it a static field",
            )
    arrays, static = eqx.partition(x, _is_float_array)
    leaves, treedef = jax.tree.flatten(arrays)
    static_leaves, static_treedef = jax.tree.flatten(static)
    spec = Parameters(
        treedef,
        tuple(tuple(leaf.shape) for leaf in leaves),
        tuple(str(leaf.dtype) for leaf in leaves),
        static_treedef,
        tuple(static_leaves),
    )
    vector = np.concatenate([np.ravel(np.asarray(leaf)) for leaf in leaves])
    if not np.isfinite(vector).all():
        raise InputError(
            f"{name} holds NaN or infinity",
            "finite numbers",
            "check where the parameters come from",
        )
    return spec, vector


def refuse_too_large(vector: np.ndarray, dtype: Any, name: str):
    """Raise where numbers are too large for the floating type in which they are needed."""
    largest, limit = float(np.max(np.abs(vector), initial=0)), float(jnp.finfo(dtype).max)
    if largest > limit:
        raise InputError(
            f"{name} holds {largest:.3g}",
            f"numbers up to {limit:.2g}, the largest of {np.dtype(dtype)}",
            "start nearer to 0, or measure the parameters in larger units",
        )


def _is_float_array(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, jax.Array)) and jnp.issubdtype(leaf.dtype, jnp.floating)

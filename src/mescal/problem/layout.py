"""Flat vectors: how parameters, any pytree of floating arrays, and the rows of constraints lie in them.

Solvers and the judge work on flat vectors; users' functions and sets see the pytree. Leaves that are no arrays (the
activation of an equinox module, say) are kept aside and put back unchanged. Rows of constraints have names, shapes and kinds;
inequalities among them have slacks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..checks import refuse_mixed_keys
from ..errors import InputError, InputTypeError
from .row_checks import real_array, refuse_masked, refuse_traced


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


@dataclass(frozen=True)
class Layout:
    """The rows of c(x): one block per named constraint, in the order in which they were given."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    kinds: tuple[str, ...]

    @cached_property
    def size(self) -> int:
        """m, the number of scalar constraints."""
        return sum(prod(shape) for shape in self.shapes)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The rows of each named constraint."""
        stops = np.cumsum([0, *(prod(shape) for shape in self.shapes)])
        return tuple(slice(int(a), int(b)) for a, b in pairwise(stops))

    @cached_property
    def inequality(self) -> np.ndarray:
        """bool (m,): the rows that are inequalities."""
        flags = [np.full(prod(shape), kind == "<=") for shape, kind in zip(self.shapes, self.kinds, strict=True)]
        rows = np.concatenate([np.zeros(0, bool), *flags])
        rows.flags.writeable = False
        return rows

    @cached_property
    def slack_size(self) -> int:
        """The number of slack variables: one per inequality row."""
        return int(self.inequality.sum())

    def by_name(self, rows: Any) -> dict[str, np.ndarray]:
        """A vector of m rows as a dict by constraint name, each in its own shape."""
        rows = np.asarray(rows)
        return {
            name: rows[rows_of].reshape(shape)
            for name, rows_of, shape in zip(self.names, self.slices, self.shapes, strict=True)
        }

    def rows(self, values: Any, what: str) -> np.ndarray:
        """The vector of m rows of a dict by constraint name (or of a flat array), checked."""
        if not isinstance(values, dict):
            flat = real_array(values, what).ravel()
            if flat.shape != (self.size,):
                raise InputError(
                    f"{what} has {flat.size} numbers",
                    f"{self.size}, one per constraint row, or a dict by constraint name",
                    f"pass {what}={{{', '.join(repr(n) + ': ...' for n in self.names)}}}",
                )
        else:
            unknown, missing = set(values) - set(self.names), set(self.names) - set(values)
            if unknown or missing:
                raise InputError(
                    f"{what} names {sorted(values)}",
                    f"the constraints {list(self.names)}",
                    "name every constraint of the problem once",
                )
            flat = np.zeros(self.size)
            for name, rows_of, shape in zip(self.names, self.slices, self.shapes, strict=True):
                given = real_array(values[name], f"{what}[{name!r}]")
                if given.size != prod(shape):
                    raise InputError(f"{what}[{name!r}] has shape {given.shape}", f"shape {shape}", "check its length")
                flat[rows_of] = given.ravel()
        if not np.isfinite(flat).all():
            raise InputError(f"{what} holds NaN or infinity", "finite numbers", "check where they come from")
        return flat

    def slack_rows(self, values: Any) -> np.ndarray:
        """Slacks given by the names of inequalities (or flat, one per inequality) as a vector of m rows, checked."""
        flags = self.inequality
        if isinstance(values, dict):
            named = {name for name, kind in zip(self.names, self.kinds, strict=True) if kind == "<="}
            if set(values) != named:
                raise InputError(
                    f"slack names {sorted(values)}", f"the inequalities {sorted(named)}", "name every inequality once"
                )
            zero = {name: np.zeros(shape) for name, shape in zip(self.names, self.shapes, strict=True)}
            rows = self.rows(zero | values, "slack")
        else:
            flat = real_array(values, "slack").ravel()
            if flat.shape != (self.slack_size,):
                raise InputError(
                    f"slack has {flat.size} numbers", f"{self.slack_size}, one per inequality", "or pass a dict by name"
                )
            rows = np.zeros(self.size)
            rows[flags] = flat
        if not np.isfinite(rows).all() or (rows < 0).any():
            raise InputError(
                f"slack holds {rows.min():.3g}", "finite numbers >= 0", "an inequality is c(x) + s = 0 with s >= 0"
            )
        return rows

    def spread_slack(self, slack: Any) -> Any:
        """Slacks (one per inequality) as a vector of m rows, zero on equalities; traceable."""
        if self.slack_size == self.size:
            return slack
        if self.slack_size == 0:
            return jnp.zeros(self.size, slack.dtype)
        flags = self.inequality
        position = np.where(flags, np.cumsum(flags) - 1, self.slack_size)
        return jnp.concatenate([slack, jnp.zeros(1, slack.dtype)])[position]

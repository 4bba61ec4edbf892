"""Arrays of points and of sets: a point's rounding, norm and flat vector, and the numbers that define a set.

Those are stored in float64 as array leaves, and matched with a point's structure and dtype. Everything here casts before jax sees
the numbers. jax 0.10 remembers what it made of a numpy array for as long as a compiled function holds it, whatever `enable_x64`
says later: a stored float64 array that has once been a constant of a float32 program would come back in float32. `astype` makes a
new array each time.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PyTree

from ..checks import refuse_mixed_keys
from ..errors import InputError, InputTypeError

ROUNDINGS = 8
"""Units of rounding within which a norm or an inner product still counts as equal to what it was projected to.

Measured in tests/sets/test_sets_tangent.py: projecting in float32 misses by less than half of this. For n up to 10^6
it was 0.9 units of R + |x| for a ball and 0.6 units of |a|'|x| + |b| for a half-space.
"""


def rounding(x: PyTree) -> float:
    """`ROUNDINGS` units of the coarsest dtype in `x`, relative."""
    return ROUNDINGS * max((float(jnp.finfo(leaf.dtype).eps) for leaf in jax.tree.leaves(x)), default=0.0)


def norm(x: PyTree) -> Float[Array, ""]:
    """|x| over all leaves, without overflow and with the derivative 0 at 0; NaN for infinite points."""
    flat, _ = jax.flatten_util.ravel_pytree(x)
    largest = jax.lax.stop_gradient(jnp.max(jnp.abs(flat), initial=0))
    unit = flat / jnp.where(largest > 0, largest, 1)
    return largest * jnp.sqrt(jnp.where(largest > 0, jnp.sum(unit * unit), 1))


def ravel_pair(x: PyTree, v: PyTree) -> tuple[Array, Array, Callable[[Array], PyTree]]:
    """`x` and `v` as flat vectors in the wider of their dtypes, and the way back to a pytree like `v`."""
    (flat_x, _), (flat_v, unravel) = jax.flatten_util.ravel_pytree(x), jax.flatten_util.ravel_pytree(v)
    wide = jnp.promote_types(flat_x.dtype, flat_v.dtype)
    return flat_x.astype(wide), flat_v.astype(wide), lambda flat: unravel(flat.astype(flat_v.dtype))


def host_leaves(x: PyTree) -> list[np.ndarray]:
    """The leaves of `x` as flat numpy vectors in their own dtypes."""
    return [np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(x)]


def host_flat(x: PyTree) -> Float[np.ndarray, " n"]:
    """All of `x` as one float64 vector on the host."""
    return np.concatenate([np.zeros(0), *(leaf.astype(np.float64) for leaf in host_leaves(x))])


def size(x: PyTree) -> int:
    """The number of coordinates of `x`."""
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(x))


def stored(value: PyTree, name: str) -> PyTree:
    """`value` with float64 numpy arrays as leaves. A (nested) list of plain numbers counts as one array.

    **Raises:** `InputTypeError` for what is not a number, `InputError` for NaN.
    """
    if _is_numbers(value):
        return _stored_leaf(value, name)
    refuse_mixed_keys(value, name)
    if not jax.tree.leaves(value):
        raise InputTypeError(
            f"{name} that is {value!r}, without a number",
            "a real number, an array, or a pytree of arrays",
            "write -inf or inf where there is no bound",
        )
    return jax.tree.map(lambda leaf: _stored_leaf(leaf, name), value)


def stored_array(value: Any, name: str) -> np.ndarray:
    """`value` as one float64 array; an error for a pytree of several."""
    array = stored(value, name)
    if not isinstance(array, np.ndarray):
        raise InputTypeError(f"{name} of type {type(value).__name__}", "a number or an array", f"give one {name}")
    return array


def matched(parameter: PyTree, x: PyTree, name: str) -> PyTree:
    """`parameter` as a pytree like `x`, in the dtypes of `x`: a number goes to every leaf, an array to an array.

    **Raises:** `InputError` where the structures differ or a shape does not broadcast to the leaf's.
    """
    if _is_number(parameter):
        return jax.tree.map(lambda leaf: parameter.astype(leaf.dtype), x)
    if jax.tree.structure(parameter) != jax.tree.structure(x):
        raise InputError(
            f"{name} with the structure {_outline(parameter)} for a point with the structure {_outline(x)}",
            "a number, or the structure of the point (an array for an array; a list of numbers is one array)",
            f"give {name} as a pytree of arrays with the same keys as the point",
        )
    return jax.tree.map(lambda value, leaf: _matched_leaf(value, leaf, name), parameter, x)


def flattened(parameter: PyTree, x: PyTree, flat: Any, name: str) -> Any:
    """`parameter` over the flattened `x`: a number, or a vector like `flat` in its dtype and on its side.

    **Arguments:**

    - `parameter`: a number, a pytree like `x`, or one vector of the length of `flat`.
    - `x`: the point.
    - `flat`: the flattened point, on the device or as a numpy array on the host.
    """
    xp = flat.__array_namespace__()
    if getattr(parameter, "shape", None) in ((), flat.shape):
        return xp.asarray(parameter.astype(flat.dtype))
    structure_of = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, flat.dtype), x)
    leaves = jax.tree.leaves(matched(parameter, structure_of, name))
    shapes = [leaf.shape for leaf in jax.tree.leaves(x)]
    return xp.concatenate(
        [xp.ravel(xp.broadcast_to(xp.asarray(leaf), s)) for leaf, s in zip(leaves, shapes, strict=True)]
    )


def require_size(parameter: PyTree, x: PyTree, name: str) -> None:
    """Raises `InputError` unless `parameter` has one number for every coordinate of `x`: nothing is broadcast."""
    if size(parameter) != size(x):
        raise InputError(
            f"{name} with {size(parameter)} entries for a point with {size(x)}",
            f"one entry of {name} for every coordinate of the point",
            f"give {name} as a pytree like the point, or as one vector in the order of jax.flatten_util.ravel_pytree",
        )


def shown(value: Any) -> str:
    """`value` for a `__repr__`: numbers and short arrays in full, long arrays by their shape."""
    if isinstance(value, np.ndarray):
        short = jax.tree.map(lambda number: float(f"{number:.6g}"), value.tolist())
        return str(short) if value.size <= 6 else f"array{value.shape}"
    if isinstance(value, eqx.Module):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {shown(item)}" for key, item in value.items()) + "}"
    if type(value) in (tuple, list):
        left, right = "()" if isinstance(value, tuple) else "[]"
        return left + ", ".join(shown(item) for item in value) + right
    return getattr(value, "__name__", None) or eqx.tree_pformat(value)


def _stored_leaf(value: Any, name: str) -> np.ndarray:
    if isinstance(value, Tracer):
        raise InputTypeError(
            f"{name} that is a traced value",
            "numbers that are known when the set is made",
            "make the set outside of the compiled function and pass it as an argument",
        )
    if isinstance(value, np.ma.MaskedArray):
        raise InputTypeError(
            f"{name} that is a masked array", "a plain array", "fill it: array.filled(value), inf for an absent bound"
        )
    try:
        array = np.array(value)
        if not (np.issubdtype(array.dtype, np.number) or jnp.issubdtype(array.dtype, np.floating)):
            raise TypeError
        if np.iscomplexobj(array):
            raise TypeError
    except Exception:  # what numpy calls may raise anything
        raise InputTypeError(
            f"{name} of type {type(value).__name__}",
            "a real number, an array, or a pytree of arrays",
            f"convert {name} with np.asarray(..., float)",
        ) from None
    array = array.astype(np.float64)
    if np.isnan(array).any():
        raise InputError(
            f"NaN in {name}", "numbers", f"look at where {name} was computed; an absent bound is -inf or inf"
        )
    return array


def _matched_leaf(value: Any, leaf: Any, name: str) -> Any:
    try:
        fits = np.broadcast_shapes(value.shape, leaf.shape) == leaf.shape
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            f"{name} of shape {value.shape} for an array of shape {leaf.shape}",
            f"a shape that broadcasts to {leaf.shape}",
            f"give {name} the shape of the point, or a number for all of it",
        )
    return value.astype(leaf.dtype)


def _is_number(parameter: PyTree) -> bool:
    return getattr(parameter, "shape", None) == ()


def _is_numbers(value: Any) -> bool:
    """Whether `value` is a nonempty (nested) list or tuple of plain numbers."""
    if type(value) not in (list, tuple) or not value:
        return False
    return all(isinstance(item, int | float | np.generic) or _is_numbers(item) for item in value)


def _outline(tree: PyTree) -> str:
    return eqx.tree_pformat(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree), width=10**6)

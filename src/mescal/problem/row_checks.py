"""What rows must be, wherever they are kept: numbers, one leading axis, finite; and their weights."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..checks import real_number
from ..errors import InputError, InputTypeError

CHECK_ROWS = 1 << 16  # rows looked at together when data are checked: bounds the memory of the check


def check_rows(arrays: Any) -> tuple[Any, int]:
    """A pytree of arrays with one leading axis, and its length."""
    refuse_traced(arrays, "the data")
    leaves, treedef = jax.tree.flatten(arrays)
    leaves = [_as_array(leaf) for leaf in leaves]
    return jax.tree.unflatten(treedef, leaves), count_rows([leaf.shape for leaf in leaves])


def count_rows(shapes: list[tuple[int, ...]]) -> int:
    """The one number of rows of arrays of these shapes."""
    if not shapes:
        raise InputError("the data hold no arrays", "a pytree of arrays with one leading axis", "pass the rows")
    if () in shapes:
        raise InputError(
            "the data hold a scalar, which has no rows",
            "arrays whose first axis counts the samples",
            "make arrays of lists of numbers (numpy.asarray); close over constants, or repeat them along the first axis",
        )
    sizes = sorted({shape[0] for shape in shapes})
    if len(sizes) > 1:
        raise InputError(
            f"the arrays of one population have unequal leading axes: {sizes}",
            "one number of rows for all arrays of a population",
            "check how the arrays were cut, or give each its own E",
        )
    if sizes[0] == 0:
        raise InputError("the data are empty (0 rows)", "at least one row", "check the filter that made them")
    return sizes[0]


def real_array(value: Any, what: str, truths: bool = False) -> np.ndarray:
    """Real numbers in float64; an error for text, complex numbers, truth values (unless `truths`), masked and ragged arrays."""
    refuse_masked(value, what)
    number = real_number(value)
    if number is not None:
        return np.asarray(number)
    try:
        array = np.asarray(value)
        kinds = "iufb" if truths else "iuf"
        if array.dtype.kind not in kinds and not jnp.issubdtype(array.dtype, jnp.floating):
            raise TypeError(f"entries of type {array.dtype}")
        return array.astype(np.float64)
    except Exception as error:
        raise InputTypeError(
            f"{what}: {describe(value)}, which is no array of real numbers ({first_line(error)})",
            "real numbers, or an array of them with rows of one length",
            "convert it with numpy.asarray(..., float), and look at what that says",
        ) from None


def refuse_traced(value: Any, what: str):
    """Raise for values that JAX traces, and inside of a function that it compiles, where all that is computed is traced."""
    inside = isinstance(jax.device_put(np.float32(0)), Tracer)
    if inside or any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value)):
        found = "mescal was called inside of jit or scan" if inside else "JAX traces it (vmap or grad)"
        raise InputTypeError(
            f"{what}: {found}",
            "arrays of numbers, outside of JAX's transformations: mescal decides on the host, and compiles what it needs itself",
            "state the problem and call mescal outside of jit, grad, vmap and scan; loop over starts and data in Python",
        )


def refuse_masked(value: Any, what: str):
    """Raise for a masked array: what it hides would be seen."""
    if isinstance(value, np.ma.MaskedArray):
        raise InputTypeError(
            f"{what}: a masked array, whose hidden entries would count like the others",
            "a plain array",
            "fill it (array.filled(value)), or leave those rows out",
        )


def refuse_unless_finite(rows: Any, start: int = 0, drawn: bool = False):
    """Raise where rows hold NaN, infinity, or integers that wrap in 32 bits.

    `start` is the number of the first row, `drawn` says that a sampler made them.
    """
    for path, leaf in jax.tree.leaves_with_path(rows):
        _refuse_wrapping(leaf, start, path)
        if np.issubdtype(leaf.dtype, np.inexact) and not (finite := np.isfinite(np.asarray(leaf))).all():
            row = start + int(np.argwhere(~finite)[0][0])
            where = f" (leaf {jax.tree_util.keystr(path)})" if path else ""
            if drawn:
                raise InputError(
                    f"a sampler drew NaN or infinity{where}, first as draw {row} of those that were looked at",
                    "finite samples",
                    "mend draw(key): look at its logarithms, roots and divisions, and bound what it returns",
                )
            raise InputError(
                f"the data hold NaN or infinity, first in row {row}{where}",
                "finite numbers",
                "drop or fill those rows before building the problem",
            )


def _refuse_wrapping(leaf: Any, start: int, path: Any):
    """Raise where 64-bit integers are no 32-bit ones, which is what JAX makes of them unless it is told otherwise."""
    seen = jax.dtypes.canonicalize_dtype(leaf.dtype)
    if not np.issubdtype(leaf.dtype, np.integer) or seen == leaf.dtype:
        return
    array, limits = np.asarray(leaf), np.iinfo(seen)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        row = start + int(np.argwhere((array < limits.min) | (array > limits.max))[0][0])
        where = f" (leaf {jax.tree_util.keystr(path)})" if path else ""
        raise InputError(
            f"the data hold integers of type {leaf.dtype} that {seen} does not hold, first in row {row}{where}",
            f"integers from {limits.min} to {limits.max}, as solvers compute in 32 bits",
            "convert the column to floating point, or take an offset off it",
        )


def refuse_unless_numbers(dtype: Any):
    """Raise where a column's type is not one of numbers or booleans that JAX has."""
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        raise InputTypeError(
            "the data hold random keys",
            "numbers or booleans",
            "give jax.random.key_data(keys), or use a mescal.Sampler",
        )
    if not (np.issubdtype(dtype, np.number) or np.issubdtype(dtype, np.bool_) or jnp.issubdtype(dtype, jnp.number)):
        raise InputTypeError(
            f"the data hold entries of type {dtype}",
            "numbers or booleans",
            "encode categories and text as numbers first",
        )
    if np.issubdtype(dtype, np.inexact) and np.dtype(dtype).itemsize > 8 * (
        1 + np.issubdtype(dtype, np.complexfloating)
    ):
        raise InputTypeError(
            f"the data hold entries of type {dtype}", "at most 64-bit floats", "convert: .astype(float)"
        )


def _as_array(leaf: Any):
    refuse_masked(leaf, "the data")
    if isinstance(leaf, (np.ndarray, jax.Array)):
        array = leaf
    else:
        try:
            array = np.asarray(leaf)
        except Exception as error:
            raise InputTypeError(
                f"the data hold {describe(leaf)}, which numpy cannot read: {first_line(error)}",
                "numeric arrays",
                "convert to a numpy array first",
            ) from error
    refuse_unless_numbers(array.dtype)
    return array


def check_weights(weights: Any, size: int) -> np.ndarray:
    """Weights of rows, scaled to a mean of one."""
    array = real_array(weights, "weights", truths=True)
    if array.shape != (size,):
        raise InputError(
            f"weights have shape {array.shape}", f"one weight per row, shape ({size},)", "check the order of arguments"
        )
    largest = float(array.max())
    if not np.isfinite(array).all() or (array < 0).any() or largest <= 0:
        raise InputError(
            "weights hold a negative or non-finite number, or sum to zero",
            "finite weights >= 0 with a positive sum",
            "check how the weights were made",
        )
    scaled = array / largest  # the sum of weights of any size is a number then
    return scaled * (size / scaled.sum())


def describe(thing: Any) -> str:
    """A thing's type and the beginning of its text, for messages."""
    return f"{type(thing).__name__} {str(thing)[:40]!r}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, cut to fit into another one's, which ends it."""
    return (str(error).strip().splitlines() or [""])[0][:200].rstrip(".")

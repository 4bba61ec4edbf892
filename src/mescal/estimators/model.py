"""What is minimised, one row at a time, and the default model.

    loss(theta; row)  = p softplus(-z) + q softplus(z),       z = theta(features)
    rates(theta; row) = r sigma(k z)                          one entry per constraint
    ridge(theta)      = 1/2 |theta|^2, scalars (an intercept) left out

p, q and r are columns of the data: a row's weight in the loss as a positive and as a negative, and in every rate. Functions
live at module level and take from the data all that differs between fits, so that all estimators share compiled programs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError, InputTypeError
from ..problem.row_checks import first_line
from .buckets import POWERS, bucket_rows

ARRAYS = (np.ndarray, jax.Array)


class Row(NamedTuple):
    """One row, or all of them with a leading axis."""

    features: Any
    loss: Any  # (2,): weights of the losses as a positive and as a negative
    rates: Any  # (m,): weights in the constraints
    sharpness: Any


class Linear(eqx.Module):
    """z = w'x + b."""

    weights: Any
    bias: Any

    def __call__(self, x):
        return x @ self.weights + self.bias


class Planes(eqx.Module):
    """z = W'x + b, one column per class."""

    weights: Any
    bias: Any

    def __call__(self, x):
        return x @ self.weights + self.bias


def linear(width: int, intercept: float | np.ndarray, dtype: str) -> Linear | Planes:
    """The start: a constant, one number or one per class."""
    kind = Planes if np.ndim(intercept) else Linear
    return kind(np.zeros((width, *np.shape(intercept)), dtype), np.asarray(intercept, dtype))


def loss(model: Callable, row: Row) -> jax.Array:
    """The weighted logistic loss."""
    z = logit(model, row.features)
    return row.loss[0] * jax.nn.softplus(-z) + row.loss[1] * jax.nn.softplus(z)


def rates(model: Callable, row: Row) -> jax.Array:
    """The row's part in every constraint."""
    return row.rates * jax.nn.sigmoid(row.sharpness * logit(model, row.features))


def ridge(model: Any) -> jax.Array:
    """Half the squared length of all parameters that are not scalars; of intercepts that are several, that of their mean."""
    if isinstance(model, Planes):
        return (jnp.sum(model.weights**2) + jnp.sum(model.bias) ** 2 / len(model.bias)) / 2
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    return sum((jnp.sum(leaf**2) for leaf in leaves if leaf.ndim), jnp.zeros(())) / 2


def logit(model: Callable, features: jax.Array) -> jax.Array:
    """The model's one number."""
    return jnp.reshape(model(features), ())


@eqx.filter_jit
def logits(model: Callable, features: jax.Array) -> jax.Array:
    """The model on many rows: its numbers for each."""
    return jax.vmap(lambda x: jnp.ravel(model(x)))(features)


def make_model(model: Any, width: int, seed: int, dtype: Any, outputs: int = 1) -> Any:
    """The start of the model that the user asked for, checked on one row of zeros."""
    if not callable(model):
        raise InputTypeError(
            f"model={model!r:.60}",
            "None (linear), or a function (key, n_features) -> model, a pytree that maps one row to one number",
            "write for example model=lambda key, d: equinox.nn.MLP(d, 'scalar', 16, 1, key=key)",
        )
    try:
        start = model(jax.random.key(seed), width)
    except TypeError as error:
        raise InputTypeError(
            f"model(key, n_features) raised TypeError: {first_line(error)}",
            "a function (key, n_features) -> model",
            "pass what makes the model, not the model: lambda key, d: equinox.nn.MLP(d, 'scalar', 16, 1, key=key)",
        ) from error
    if not any(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(start)):
        raise InputError(
            f"the model that was made, {type(start).__name__}, holds no floating arrays",
            "a pytree whose arrays are the parameters",
            "return an equinox module, or jax.tree_util.Partial(apply, parameters)",
        )
    start = jax.tree.map(lambda leaf: np.asarray(leaf).astype(dtype) if eqx.is_inexact_array(leaf) else leaf, start)
    if not callable(start):
        raise InputTypeError(
            f"the model that was made is {type(start).__name__}, which cannot be called",
            "a pytree that maps one row to one number",
            "return an equinox module, or jax.tree_util.Partial(apply, parameters)",
        )
    out = jax.eval_shape(lambda x: start(x), jax.ShapeDtypeStruct((width,), jax.dtypes.canonicalize_dtype(dtype)))
    fits = getattr(out, "size", None) == outputs and (outputs == 1 or out.ndim == 1)
    if not fits:
        raise InputError(
            f"the model maps one row of {width} features to {out}",
            "one number, of a classifier the logit of the positive class"
            if outputs == 1
            else f"{outputs} numbers, one per class",
            f"end the model with {'one output' if outputs == 1 else f'{outputs} outputs'}",
        )
    return start


def numbers(tree: Any) -> list[np.ndarray]:
    """The arrays of a pytree, in order."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if isinstance(leaf, ARRAYS)]


def with_numbers(tree: Any, held: list[np.ndarray]) -> Any:
    """The pytree with other arrays."""
    given = iter(held)
    return jax.tree.map(lambda leaf: next(given) if isinstance(leaf, ARRAYS) else leaf, tree)


def scores_of(model: Any, features: np.ndarray) -> np.ndarray:
    """The model's number for every row, or its numbers where it has one per class."""
    parts = []
    with jax.enable_x64(True):
        for start in range(0, len(features), POWERS):
            rows = features[start : start + POWERS]
            padded = np.concatenate([rows, np.repeat(rows[:1], bucket_rows(len(rows)) - len(rows), axis=0)])
            parts.append(np.asarray(logits(model, jnp.asarray(padded)), np.float64)[: len(rows)])
    scores = np.concatenate(parts)
    return scores[:, 0] if scores.shape[1] == 1 else scores

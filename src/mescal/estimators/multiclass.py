"""More than two classes: what is minimised and constrained, one row at a time, its rows, and its start.

    loss(theta; row)  = sum_c p_c (log sum_e exp z_e - z_c),        z = theta(features), one number per class
    rates(theta; row) = sum_c r_c softmax(k z)_c                    one entry per constraint

p_c is the row's weight in the loss as one of class c (0 but for its own), r_c in every constraint as one that is predicted to
be c. With two classes and z = (0, z_1) this is the logistic loss. A constant added to all z_e changes nothing; of a linear
model's intercepts the ridge therefore holds the mean, which nothing else does.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import softmax

from .rates import RateConstraint, Subset
from .statement import Kind, Labelled

MIXED = np.linspace(0, 1, 65)  # starts: the shares of the classes mixed with equal ones


class ClassRow(NamedTuple):
    """One row, or all of them with a leading axis."""

    features: Any
    loss: Any  # (K,): weights of the losses as one of every class
    rates: Any  # (m * K,): weights in the constraints as one predicted to be of every class
    sharpness: Any


def loss(model: Callable, row: ClassRow) -> jax.Array:
    """The weighted cross-entropy."""
    return -row.loss @ _log_softmax(model(row.features))


def rates(model: Callable, row: ClassRow) -> jax.Array:
    """The row's part in every constraint."""
    return row.rates.reshape(-1, row.loss.shape[-1]) @ jnp.exp(_log_softmax(row.sharpness * model(row.features)))


def _log_softmax(z: jax.Array) -> jax.Array:
    """By sums of two at a time, which have no maximum in them: beside one the judge would have to look for kinks."""
    return z - reduce(jnp.logaddexp, list(z))


def _smoothed(subset: Subset, data: Labelled, raw: np.ndarray, sharpness: float) -> np.ndarray:
    return softmax(sharpness * raw, axis=1)[:, data.code(subset.predicted)]


def _counted(subset: Subset, data: Labelled, raw: np.ndarray) -> np.ndarray:
    return (raw.argmax(axis=1) == data.code(subset.predicted)).astype(float)


CLASSES = Kind(loss, rates, _smoothed, _counted)


def make_class_rows(data: Labelled, constraints: dict[str, RateConstraint], sharpness: float) -> ClassRow:
    """The columns of weights."""
    share, count = data.weights / data.weights.sum(), len(data.classes)
    weights = np.zeros((len(share), len(constraints), count))
    for j, constraint in enumerate(constraints.values()):
        for factor, subset in constraint.body.terms:
            weights[:, j, data.code(subset.predicted)] += factor * data.shares(subset)
    losses = share[:, None] * np.eye(count)[data.y]
    return ClassRow(data.features, losses, weights.reshape(len(share), -1), np.asarray(sharpness))


def best_constant_classes(rows: ClassRow, constraints: dict[str, RateConstraint]) -> tuple[np.ndarray, float]:
    """Between the shares of the classes and equal ones, the constant model that violates least, then loses least; its loss."""
    shares = rows.loss.sum(axis=0)
    total = rows.rates.sum(axis=0).reshape(-1, len(shares))
    bounds = np.asarray([constraint.body.constant for constraint in constraints.values()])
    found = []
    for mixed in MIXED:
        z = np.log(np.maximum((1 - mixed) * shares + mixed / len(shares), 1e-12))
        violation = float(np.max(total @ softmax(float(rows.sharpness) * z) + bounds, initial=0.0))
        found.append((max(0.0, violation), float(-shares @ np.log(softmax(z))), float(mixed), z - z.mean()))
    _, height, _, z = min(found, key=lambda one: one[:3])
    return z, height

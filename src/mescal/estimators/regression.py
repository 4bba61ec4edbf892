"""What a regressor minimises and constrains, one row at a time, and its rows.

    squared(theta; row) = w (z - y)^2 / 2,                            z = theta(features)
    pinball(theta; row) = w [q (y - z) + softplus(k (z - y)) / k]     whose minimiser covers a share q of the rows
    means(theta; row)   = r (z - y)^2 + s sigma(k (z - y))            one entry per constraint

y is the target in standard deviations from its mean, so that k, errors and tolerances have no units. w, r and s are columns of
the data: a row's weight in the loss, in every error and in every coverage. As k grows the second becomes
q (y - z) + max(0, z - y), the quantile loss, and sigma the step that says whether y lies below z.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import expit

from .model import logit
from .rates import RateConstraint, Subset
from .statement import Kind, Labelled, shares_in

GRID = 128  # constants that are tried as a start: quantiles of the target


class TargetRow(NamedTuple):
    """One row, or all of them with a leading axis."""

    features: Any
    target: Any
    loss: Any  # (1,): weight in the loss
    errors: Any  # (m,): weights of the squared error in the constraints
    covered: Any  # (m,): weights of the coverage in the constraints
    sharpness: Any
    level: Any  # q; of the pinball loss alone


def squared(model: Callable, row: TargetRow) -> jax.Array:
    """Half the squared error."""
    return row.loss[0] * (logit(model, row.features) - row.target) ** 2 / 2


def pinball(model: Callable, row: TargetRow) -> jax.Array:
    """The smoothed quantile loss."""
    over = logit(model, row.features) - row.target
    return row.loss[0] * (jax.nn.softplus(row.sharpness * over) / row.sharpness - row.level * over)


def means(model: Callable, row: TargetRow) -> jax.Array:
    """The row's part in every constraint."""
    over = logit(model, row.features) - row.target
    return row.errors * over**2 + row.covered * jax.nn.sigmoid(row.sharpness * over)


def _smoothed(subset: Subset, data: Labelled, raw: np.ndarray, sharpness: float) -> np.ndarray:
    over = raw - data.y
    return over**2 if subset.what == "error" else expit(sharpness * over)


def _counted(subset: Subset, data: Labelled, raw: np.ndarray) -> np.ndarray:
    over = raw - data.y
    return over**2 if subset.what == "error" else (over >= 0).astype(float)


SQUARED = Kind(squared, means, _smoothed, _counted)
PINBALL = Kind(pinball, means, _smoothed, _counted)


def make_target_rows(
    data: Labelled, constraints: dict[str, RateConstraint], sharpness: float, level: float
) -> TargetRow:
    """The columns of targets and weights."""
    share = (data.weights / data.weights.sum())[:, None]
    errors, covered = (shares_in(data, constraints, what) for what in ("error", "coverage"))
    return TargetRow(data.features, data.y, share, errors, covered, np.asarray(sharpness), np.asarray(level))


def best_constant_target(
    kind: Kind, data: Labelled, rows: TargetRow, constraints: dict[str, RateConstraint]
) -> tuple[float, float]:
    """Among constant models that meet the constraints, or violate them least, the one of least loss; and its loss."""
    found = []
    for constant in np.quantile(data.y, np.linspace(0, 1, GRID)):
        over, k = constant - data.y, float(rows.sharpness)
        loss = over**2 / 2 if kind is SQUARED else np.logaddexp(0, k * over) / k - float(rows.level) * over
        step = expit(k * over)
        left = over**2 @ rows.errors + step @ rows.covered
        excess = left + np.asarray([constraint.body.constant for constraint in constraints.values()])
        found.append((max(0.0, float(excess.max(initial=0.0))), float(rows.loss[:, 0] @ loss), float(constant)))
    _, height, constant = min(found)
    return constant, height

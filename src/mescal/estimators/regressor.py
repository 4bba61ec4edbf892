"""A regressor under constraints on errors and coverage in groups; what it minimises and constrains, one row at a time; its rows.

    squared(theta; row) = w (z - y)^2 / 2,                            z = theta(features)
    pinball(theta; row) = w [q (y - z) + softplus(k (z - y)) / k]     whose minimiser covers a share q of the rows
    means(theta; row)   = r (z - y)^2 + s sigma(k (z - y))            one entry per constraint

y is the target in standard deviations from its mean, so that k, errors and tolerances have no units. w, r and s are columns of
the data: a row's weight in the loss, in every error and in every coverage. As k grows the second becomes
q (y - z) + max(0, z - y), the quantile loss, and sigma the step that says whether y lies below z.
"""

from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import expit
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .buckets import Scaling
from .estimator import Constrained, parameters
from .groups import check_groups
from .inputs import check_fraction, check_weights
from .model import logit
from .rates import RateConstraint, Subset, check_constraints
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


@parameters
class ConstrainedRegressor(RegressorMixin, Constrained):
    """Least squares, or a quantile, under constraints on the error and the coverage in groups.

    $$\\min_\\theta \\; \\text{mean}_i \\, \\ell(z_i, y_i) + \\frac{\\rho}{2} |\\theta|^2 \\quad \\text{subject to linear
    inequalities between} \\quad \\text{mean}_{i \\in S} (z_i - y_i)^2 \\;\\; \\text{and} \\;\\;
    \\text{mean}_{i \\in S} \\, \\sigma(k (z_i - y_i))$$

    The target is brought to zero mean and unit variance. An error is therefore a share of its variance: `error()` is 1 - R^2.
    A coverage is the share of rows whose target is at most the prediction; like rates it is smoothed, by sigma(k z), and
    `constraint_report` has the shares themselves.

    ```python
    from mescal.estimators import ConstrainedRegressor, coverage, error

    fair = ConstrainedRegressor({"b": error(group="b") <= 1.1 * error()}).fit(X, y, sensitive_features=groups)
    bounds = {f"covered {g}": coverage(group=g) >= 0.9 for g in ("a", "b")}
    upper = ConstrainedRegressor(bounds, quantile=0.9).fit(X, y, sensitive_features=groups)
    ```

    **Arguments:**

    - `constraints`: a dict from names to comparisons of `error(group=...)` and `coverage(group=...)`; None: no constraints.
    - `quantile`: q: the prediction is the q-quantile of the target, by the smoothed quantile loss; None: its mean, by squares.
    - `sharpness`: k, per standard deviation of the target: of coverages and of the quantile loss.
    - all others: see `ConstrainedClassifier`, as for the attributes that are not about classes. `coef_` and `intercept_` are
      in the units of X and y; `target_mean_` and `target_scale_` are what the target was brought to unit variance by.
    """

    constraints: Any = field(default=None, kw_only=False)
    quantile: float | None = None
    sharpness: float = 10.0

    target_mean_: float = field(init=False)
    target_scale_: float = field(init=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> "ConstrainedRegressor":
        """Fit; `sensitive_features` holds the group of every row, in one column or several, where a constraint names groups."""
        constraints = check_constraints(self.constraints, ("error", "coverage"))
        if self.quantile is not None:
            check_fraction("quantile", self.quantile)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        weights, groups = self._check_rows(X, sample_weight, sensitive_features)
        y = np.asarray(y, np.float64)
        units = Scaling.of(y[:, None], weights)
        self.target_mean_, self.target_scale_ = float(units.mean[0]), float(units.scale[0])
        data = Labelled(X, self._scaled(y), weights, groups)
        data = data if (weights > 0).all() else data.taken(weights > 0)
        kind = SQUARED if self.quantile is None else PINBALL
        rows = make_target_rows(data, constraints, self.sharpness, 0.5 if self.quantile is None else self.quantile)
        self._minimise(kind, rows, data, constraints, best_constant_target(kind, data, rows, constraints))
        if self._plane is not None:
            slopes, intercept = self._plane
            self.coef_ = self.target_scale_ * slopes
            self.intercept_ = self.target_mean_ + self.target_scale_ * float(intercept)
        self._warn_of_counts(kind, data)
        return self

    def _scaled(self, y: np.ndarray) -> np.ndarray:
        return (y - self.target_mean_) / self.target_scale_

    def predict(self, X: Any) -> np.ndarray:
        """The prediction for every row, in the units of y."""
        raw = self._raw(self._features(X))
        return self.target_mean_ + self.target_scale_ * raw

    def constraint_report(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Any:
        """How the constraints fare on data: a pandas DataFrame with one row per constraint.

        `value` and `bound` are the left and the right side with shares of rows that are covered; `smooth_value` and
        `smooth_bound` have the smoothed ones that were constrained. `met` compares the first two, and `margin` is what chance
        can do to their difference: half of its 95 per cent interval, were as many rows drawn anew. Errors are in units of the
        variance that the target had in the fit.
        """
        check_is_fitted(self)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=False)
        weights, groups = check_weights(sample_weight, X), check_groups(sensitive_features, len(X))
        data = Labelled(X, self._scaled(np.asarray(y, np.float64)), weights, groups)
        return self._table(SQUARED, data, self._raw(X), 0.0)

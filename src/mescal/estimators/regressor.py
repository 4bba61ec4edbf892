"""A regressor under constraints on errors and coverage in groups."""

from dataclasses import field
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .base import Constrained, parameters
from .groups import check_groups
from .inputs import check_fraction, check_weights
from .rates import check_constraints
from .regression import PINBALL, SQUARED, best_constant_target, make_target_rows
from .rows import Scaling
from .statement import Labelled


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

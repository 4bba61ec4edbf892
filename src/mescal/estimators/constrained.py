"""A classifier under any constraints on its rates."""

from dataclasses import field
from typing import Any

from .classifier import RateClassifier
from .estimator import parameters
from .inputs import check_fraction
from .rates import RateConstraint, check_constraints


@parameters
class ConstrainedClassifier(RateClassifier):
    """Logistic regression under constraints on rates of positive predictions.

    $$\\min_\\theta \\; \\frac{\\sum_i w_i \\log(1 + e^{-y_i z_i})}{\\sum_i w_i} + \\frac{\\rho}{2} |\\theta|^2 \\quad
    \\text{subject to linear inequalities between rates} \\quad
    \\frac{\\sum_{i \\in S} w_i \\sigma(k z_i)}{\\sum_{i \\in S} w_i}$$

    The loss is the logistic one: convex, what users of logistic regression expect, and exactly that where no constraint
    binds. A rate of predictions has no useful derivative, so the constraints see mean probabilities, sigma(k z); what the
    predictions themselves do is in `constraint_report`.

    ```python
    from mescal.estimators import ConstrainedClassifier, rate

    bounds = {"alarms": rate(of="negatives") <= 0.05, "share": rate(group="b") >= 0.8 * rate()}
    model = ConstrainedClassifier(bounds).fit(X, y, sensitive_features=groups)
    model.constraint_report(X_test, y_test, sensitive_features=groups_test)
    ```

    **Arguments:**

    - `constraints`: a dict from names to comparisons of `rate(of=..., group=...)`; None: no constraints.
    - `threshold`: the probability of the positive class above which it is predicted.
    - `pos_label`: the positive class, one of those of y; None: of two the one that sorts last, of more none, so that rates say
      `predicted=`. With more than two classes the loss is the cross-entropy, sigma the softmax, and the most probable class is
      predicted.
    - `ridge`: rho; scalar parameters (the intercept) are left out. Positive: separable data have no minimiser without it.
    - `model`: None for a linear one, or a function `(key, n_features) -> model`, where a model is a pytree (an equinox
      module, or `jax.tree_util.Partial(apply, parameters)`) that maps one row to one number, the logit.
    - `standardize`: bring columns to zero mean and unit variance first, so that ridge and tolerance do not depend on units.
    - `sharpness`: k. Larger ones bring mean probabilities closer to rates of predictions, and make the problem harder.
    - `solver`: `"auto"`: exact Newton-CG on up to 2^24 numbers (500,000 rows of 32 columns), SPIDER beyond; or any name or
      settings of `mescal.solvers`.
    - `tol`: of the certificate: stationarity, feasibility and curvature.
    - `feasibility`: by how much constraints may be violated, where that is not to be `tol`; 0: not at all.
    - `max_outer`: outer iterations.
    - `verbose`: show a bar while a fit goes on.
    - `random_state`: of the solver's samples and of the model's initial parameters.

    **Attributes:** `classes_`, `pos_label_`, `feasible_` (whether the constraints are met to the tolerance), `certified_` (whether
    the certificate passes: feasible, stationary, and no negative curvature), `certificate_` (of the fitted model, in standardized
    columns; what pads the data counts in it: rows that stand there once more, and for the linear model columns, whose
    curvature is ridge), `multipliers_` (by constraint), `groups_`, `model_`, `threshold_` (a logit), `result_` (the run),
    and for the linear model `coef_` and `intercept_` in the units of X.
    """

    constraints: Any = field(default=None, kw_only=False)

    @property
    def _only_two(self) -> str | None:
        """More than two classes are taken where every rate says of which class it is."""
        given = self.constraints.values() if isinstance(self.constraints, dict) else ()
        rates = [each for one in given if isinstance(one, RateConstraint) for _, each in one.body.terms]
        if self.pos_label is not None or all(each.of == "all" and each.predicted is not None for each in rates):
            return None
        return "say which class: rate(true=..., predicted=...), or pos_label=... for all rates that do not say it"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> "ConstrainedClassifier":
        """Fit; `sensitive_features` holds the group of every row, in one column or several, where a constraint names groups."""
        constraints = check_constraints(self.constraints)
        check_fraction("threshold", self.threshold)
        data = self._check(X, y, sample_weight, sensitive_features)
        threshold = self._one_threshold(self.threshold)
        self._fit(data, constraints)
        self.threshold_ = threshold
        self._warn_of_counts(self._kind, data, threshold)
        return self

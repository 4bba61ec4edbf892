"""What the classifiers share: checked input, the fit, predictions, and a report on the constraints."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from ..certificate import Tolerance
from . import model as models
from .inputs import check_groups, check_known, check_positive, check_target, check_weights, labels_of
from .predict import scores_of
from .rates import RateConstraint, Subset
from .rows import Scaling, bucket_columns, bucket_rows, pad
from .solve import by_name, looked_at_whole, report_failure, solve
from .start import best_constant, penalties
from .statement import Labelled, apart, make_problem, make_rows


class RateClassifier(ClassifierMixin, BaseEstimator):
    """Abstract: a classifier that minimises the logistic loss under constraints on rates.

    A final class has the parameters below, and a `fit` that says which constraints.
    """

    ridge: float
    model: Any
    standardize: bool
    sharpness: float
    solver: Any
    tol: float
    feasibility: float | None
    max_outer: int
    verbose: Any
    random_state: Any
    threshold_: float
    n_features_in_: int

    def _check(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> Labelled:
        """The data of a fit, checked; rows of weight zero are left out."""
        for name in ("threshold_", "calibration_negatives_"):  # a fit that is refused leaves nothing to predict with
            vars(self).pop(name, None)
        for name in ("tol", "sharpness"):
            check_positive(self, name)
        check_positive(self, "ridge", zero=True)
        X, y = validate_data(self, X, y, dtype=np.float64)
        weights = check_weights(sample_weight, X)
        groups = check_groups(sensitive_features, len(X))
        kept = weights > 0
        self.classes_, labels = check_target(y, kept)
        self.groups_ = None if groups is None else np.asarray(sorted(set(groups.tolist()), key=str), dtype=object)
        data = Labelled(X, labels, weights, groups)
        return data if kept.all() else data.taken(kept)

    def _fit(self, data: Labelled, constraints: dict[str, RateConstraint], negatives: float = 1.0):
        """Scale, pad, solve, finish, judge; then what scikit-learn's users look for."""
        rows, width = bucket_rows(len(data.y)), data.features.shape[1]
        columns = bucket_columns(width) if self.model is None else width
        whole = looked_at_whole(self.solver, rows, columns)
        dtype = "float64" if whole else "float32"
        self.scaling_ = Scaling.of(data.features, data.weights) if self.standardize else Scaling.none(width)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        weighted = make_rows(data, constraints, negatives, self.sharpness)
        intercept, height = best_constant(weighted.loss.sum(axis=0), constraints, self.sharpness)
        if self.model is None:
            start = models.linear(columns, intercept, dtype)
        else:
            start = models.make_model(self.model, width, seed, dtype)
        weighted = weighted._replace(features=self.scaling_(data.features))
        sources = [pad(part, columns, dtype) for part in ([weighted] if whole else apart(weighted, data, constraints))]
        tol = Tolerance(self.tol, self.tol, feasibility=self.feasibility)
        solved = solve(
            make_problem(sources, constraints, float(self.ridge)),
            start,
            rows,
            whole=whole,
            solver=self.solver,
            tol=tol,
            penalties=penalties(height, whole),
            max_outer=self.max_outer,
            seed=seed,
            progress=bool(self.verbose),
        )
        self.result_, self.certificate_ = (by_name(told, constraints) for told in (solved.result, solved.certificate))
        self.model_ = solved.model
        self.constraints_ = dict(constraints)
        self.multipliers_ = dict(zip(constraints, solved.multipliers.tolist(), strict=True))
        if self.model is None:
            weights = np.asarray(solved.model.weights, np.float64)[:width] / self.scaling_.scale
            self.coef_ = weights[None]
            self.intercept_ = np.asarray([float(solved.model.bias) - weights @ self.scaling_.mean])
        else:  # an earlier fit of the linear model may have left them
            for name in ("coef_", "intercept_"):
                vars(self).pop(name, None)
        smooth = expit(self.sharpness * self._logits(data.features))
        report_failure(solved, constraints, lambda subset: float(data.shares(subset) @ smooth), tol)

    def _logits(self, X: np.ndarray) -> np.ndarray:
        if isinstance(self.model_, models.Linear):
            return X @ self.coef_[0] + self.intercept_[0]
        return scores_of(self.model_, self.scaling_(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """The logit of the positive class less the threshold's: positive where `classes_[1]` is predicted."""
        return self._scores(X) - self.threshold_

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._logits(np.asarray(validate_data(self, X, dtype=np.float64, reset=False)))

    def predict(self, X: Any) -> np.ndarray:
        """The predicted class of every row."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The model's probabilities of `classes_`; the threshold does not enter."""
        positive = expit(self._scores(X))
        return np.stack([1 - positive, positive], axis=1)

    def constraint_report(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Any:
        """How the constraints fare on data: a pandas DataFrame with one row per constraint.

        `value` and `bound` are the left and the right side with rates of predictions (0 or 1); `smooth_value` and
        `smooth_bound` have the mean probabilities that were constrained. `met` compares the first two.
        """
        import pandas as pd

        check_is_fitted(self)
        X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
        weights = check_weights(sample_weight, X)
        groups = check_groups(sensitive_features, len(X))
        check_known(groups, self.groups_)
        data = Labelled(X, labels_of(y, self.classes_), weights, groups)
        raw = self._logits(X)
        predicted, smooth = (raw - self.threshold_ > 0).astype(float), expit(self.sharpness * raw)

        def sides(constraint: RateConstraint, values: np.ndarray) -> tuple[float, float]:
            def rate_of(subset: Subset) -> float:
                return float(data.shares(subset) @ values)

            return constraint.left.value(rate_of), constraint.right.value(rate_of)

        report = {}
        for name, constraint in self.constraints_.items():
            (value, bound), (smooth_value, smooth_bound) = sides(constraint, predicted), sides(constraint, smooth)
            met = value <= bound if constraint.sign == "<=" else value >= bound
            report[name] = {
                "constraint": str(constraint),
                "value": value,
                "bound": bound,
                "met": met,
                "smooth_value": smooth_value,
                "smooth_bound": smooth_bound,
                "multiplier": self.multipliers_[name],
            }
        columns = ["constraint", "value", "bound", "met", "smooth_value", "smooth_bound", "multiplier"]
        return pd.DataFrame.from_dict(report, orient="index", columns=columns)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "threshold_")

    def __getstate__(self) -> dict[str, Any]:
        """Of a model by argument the numbers alone: it may hold functions that cannot be pickled, and `model` makes them."""
        state: Any = super().__getstate__()
        if self.model is None or "model_" not in state:
            return state
        held = {"model_": models.numbers(state["model_"]), "result_": models.numbers(state["result_"].x)}
        return state | {"model_": None, "result_": replace(state["result_"], x=None), "_numbers": held}

    def __setstate__(self, state: dict[str, Any]):
        held = state.pop("_numbers", None)
        super().__setstate__(state)
        if held is not None:
            made = models.make_model(self.model, self.n_features_in_, 0, np.float64)
            self.model_ = models.with_numbers(made, held["model_"])
            self.result_ = replace(self.result_, x=models.with_numbers(made, held["result_"]))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def logit_of(threshold: float) -> float:
    """A probability as a logit."""
    return float(logit(threshold))

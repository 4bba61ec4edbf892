"""A classifier whose positive predictions reach every sensitive group at a comparable rate."""

import warnings
from dataclasses import field
from typing import Any

from ..errors import InputError
from .classifier import RateClassifier
from .estimator import parameters
from .groups import called
from .inputs import check_fraction, check_positive
from .rates import RateConstraint, Subset, rate
from .statement import Labelled


@parameters
class FairClassifier(RateClassifier):
    """Logistic regression whose rate of positive predictions in a group is at least a fraction of everybody's.

    $$\\min_\\theta \\; \\text{logistic loss} + \\frac{\\rho}{2} |\\theta|^2 \\quad \\text{subject to} \\quad
    \\text{mean}_{i \\in g} \\, \\sigma(k z_i) \\ge \\tau \\, \\text{mean}_i \\, \\sigma(k z_i)$$

    The constraint of the paper's first experiment, for one group or for each. Groups are passed to `fit` as
    `sensitive_features` and are no features: predictions do not need them. In pipelines and searches they travel by
    metadata routing: `FairClassifier().set_fit_request(sensitive_features=True)`.

    **Arguments:**

    - `group`: the group to protect; None: every group that `fit` finds in `sensitive_features`, where those have several columns
      every combination. Without groups nothing is constrained, and a warning says so.
    - `min_rate_ratio`: tau; 0.8 is the four-fifths rule. Of more than two classes it holds for the rate of predictions of
      each, or of `pos_label` alone.
    - `sharpness`: k; larger here than for the other classifiers, since a bound on ratios of mean probabilities leaves ratios
      of predictions short of it.
    - all others: see `ConstrainedClassifier`, as for the attributes.
    """

    group: Any = field(default=None, kw_only=False)
    min_rate_ratio: float = 0.8
    sharpness: float = 4.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> "FairClassifier":
        """Fit; `sensitive_features` holds the group of every row."""
        check_fraction("threshold", self.threshold)
        check_positive(self, "min_rate_ratio")
        data = self._check(X, y, sample_weight, sensitive_features)
        constraints = self._constraints(data)
        threshold = self._one_threshold(self.threshold)
        self._fit(data, constraints)
        self.threshold_ = threshold
        self._warn_of_counts(self._kind, data, threshold)
        if constraints and len(data.classes) == 2 and not (self._raw(data.features) > self.threshold_).any():
            warnings.warn(
                "Nobody is predicted to be positive, so that every ratio of rates holds and says nothing: lower "
                "min_rate_ratio or threshold.",
                stacklevel=2,
            )
        return self

    def _constraints(self, data: Labelled) -> dict[str, RateConstraint]:
        groups = [self.group]
        if data.groups is not None and isinstance(self.group, float) and not data.groups.has(self.group).any():
            raise InputError(
                f"group={self.group!r}",
                "a group that is there, or None for every one",
                f"name the ratio: FairClassifier(min_rate_ratio={self.group!r})",
            )
        if self.group is None:
            if data.groups is None:
                warnings.warn(
                    "No sensitive_features were passed to fit, and no group to the constructor: nothing is constrained.",
                    stacklevel=3,
                )
                return {}
            groups = data.groups.all
            if len(groups) < 2:
                raise InputError(
                    f"sensitive_features holds the group {groups[0]!r} alone",
                    "two groups or more",
                    "check how the rows were filtered, or name the group to protect and pass all rows",
                )
        self._refuse_impossible(data)
        if data.positive is not None:
            return {f"group {called(group)}": rate(group=group) >= self.min_rate_ratio * rate() for group in groups}
        return {
            f"group {called(group)}, {label}": rate(group=group, predicted=label)
            >= self.min_rate_ratio * rate(predicted=label)
            for group in groups
            for label in data.classes
        }

    def _refuse_impossible(self, data: Labelled):
        """Raise where no rates but zeros have the ratio: those meet it, and say nothing."""
        most, reason = 1.0, "not every group can be above everybody's rate"
        if self.group is not None:
            most = data.weights.sum() / data.weights[data.members(Subset(group=self.group))].sum()
            reason = f"everybody's rate is at least that of the group {self.group!r} times its share of the rows"
        if self.min_rate_ratio > most * (1 + 1e-9):
            raise InputError(
                f"min_rate_ratio={self.min_rate_ratio!r}",
                f"at most {most:.4g}: {reason}",
                "0.8 is the four-fifths rule",
            )

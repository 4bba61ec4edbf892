"""What the classifiers share: checked labels, the fit, predictions, and a report on the constraints."""

from dataclasses import field, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import InputError
from .estimator import Constrained, parameters
from .groups import check_groups
from .inputs import check_target, check_weights, labels_of
from .multiclass import CLASSES, best_constant_classes, make_class_rows
from .rates import RateConstraint, Rates
from .start import best_constant
from .statement import RATES, Kind, Labelled, make_rows


@parameters
class RateClassifier(ClassifierMixin, Constrained):
    """Abstract: a classifier that minimises the logistic loss under constraints on rates.

    Of two classes, the model's number is the logit of the positive one, `pos_label_`; what scikit-learn's users see is that of
    `classes_[1]`. Of more, it has a number for each.
    """

    threshold: Any = 0.5
    pos_label: Any = None

    threshold_: float = field(init=False)

    def _check(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> Labelled:
        """The data of a fit, checked; rows of weight zero are left out."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        weights, groups = self._check_rows(X, sample_weight, sensitive_features)
        kept = weights > 0
        self.classes_, self.pos_label_, codes = check_target(y, kept, self.pos_label, self._only_two)
        data = self._labelled(X, codes, weights, groups)
        return data if kept.all() else data.taken(kept)

    def _labelled(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray, groups: Any) -> Labelled:
        classes, positive = tuple(self.classes_.tolist()), 1
        if len(classes) > 2:
            positive = None if self.pos_label_ is None else int(np.flatnonzero(self.classes_ == self.pos_label_)[0])
        elif self._sign < 0:
            classes = classes[::-1]
        return Labelled(X, codes, weights, groups, classes, positive)

    def _fit(self, data: Labelled, constraints: dict[str, RateConstraint], negatives: float = 1.0):
        """The model; `negatives` is the factor on the losses of negatives."""
        if len(data.classes) > 2:
            rows = make_class_rows(data, constraints, self.sharpness)
            self._minimise(CLASSES, rows, data, constraints, best_constant_classes(rows, constraints))
        else:
            constraints = {
                name: each.with_terms(lambda side: of_positive(side, data)) for name, each in constraints.items()
            }
            rows = make_rows(data, constraints, negatives, self.sharpness)
            start = best_constant(rows.loss.sum(axis=0), constraints, self.sharpness)
            self._minimise(RATES, rows, data, constraints, start)
        if self._plane is not None:
            weights, intercept = self._plane
            self.coef_ = np.atleast_2d(self._sign * weights.T)
            self.intercept_ = np.atleast_1d(self._sign * intercept)

    def _one_threshold(self, threshold: float) -> float:
        """A given probability as a logit; of more than two classes the most probable one is predicted."""
        if len(self.classes_) == 2:
            return float(logit(threshold))
        if threshold != 0.5:
            raise InputError(
                f"threshold={threshold} with {len(self.classes_)} classes",
                "0.5, the default: the most probable class is predicted",
                "bound how often a class is predicted: rate(predicted=...) <= ...",
            )
        return 0.0

    @property
    def _kind(self) -> Kind:
        return CLASSES if len(self.classes_) > 2 else RATES

    @property
    def _only_two(self) -> str | None:
        """What to do with more than two classes, where those are not taken."""
        return None

    @property
    def _even(self) -> float:
        """The model's number at which two classes are called equally probable."""
        return 0.0

    @property
    def _sign(self) -> float:
        """-1 where the positive class of two is `classes_[0]`, else 1."""
        return -1.0 if len(self.classes_) == 2 and self.pos_label_ == self.classes_[0] else 1.0

    def decision_function(self, X: Any) -> np.ndarray:
        """Of two classes positive where `classes_[1]` is predicted: the logit of `pos_label_` less the threshold's, or the
        negative of it. Of more the model's numbers, of which the largest is predicted.
        """
        raw = self._raw(self._features(X))
        return self._sign * (raw - self.threshold_)

    def predict(self, X: Any) -> np.ndarray:
        """The predicted class of every row; of two classes `pos_label_` where its logit is above the threshold's."""
        raw = self._raw(self._features(X))
        if raw.ndim == 2:
            return self.classes_[raw.argmax(axis=1)]
        positive = raw > self.threshold_
        return self.classes_[(positive == (self._sign > 0)).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The model's probabilities of `classes_`; a `threshold` that was given as a number does not enter."""
        raw = self._raw(self._features(X)) - self._even
        if raw.ndim == 2:
            return softmax(raw, axis=1)
        last = expit(self._sign * raw)
        return np.stack([1 - last, last], axis=1)

    def constraint_report(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Any:
        """How the constraints fare on data: a pandas DataFrame with one row per constraint.

        `value` and `bound` are the left and the right side with rates of predictions (0 or 1); `smooth_value` and
        `smooth_bound` have the mean probabilities that were constrained. `met` compares the first two, and `margin` is what
        chance can do to their difference: half of its 95 per cent interval, were as many rows drawn anew. A constraint on
        nobody in these data has no value.
        """
        check_is_fitted(self)
        X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
        codes, weights = labels_of(y, self.classes_, self.pos_label_), check_weights(sample_weight, X)
        data = self._labelled(X, codes, weights, check_groups(sensitive_features, len(X)))
        return self._table(self._kind, data, self._raw(X), self.threshold_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "threshold_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._only_two is None
        return tags


def of_positive(side: Rates, data: Labelled) -> Rates:
    """Rates of two classes in those of positive predictions: the other class is predicted at one less that rate."""
    constant, terms = side.constant, []
    for factor, subset in side.terms:
        other = data.code(subset.predicted) == 0
        constant += factor * other
        terms.append((-factor if other else factor, replace(subset, predicted=None)))
    return Rates(tuple(terms), constant)

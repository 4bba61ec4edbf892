"""What the classifiers share: checked labels, the fit, predictions, and a report on the constraints."""

from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .base import Constrained
from .groups import check_groups
from .inputs import check_target, check_weights, labels_of
from .rates import RateConstraint
from .start import best_constant
from .statement import RATES, Labelled, make_rows


class RateClassifier(ClassifierMixin, Constrained):
    """Abstract: a classifier that minimises the logistic loss under constraints on rates.

    The model's number is the logit of the positive class, `pos_label_`; what scikit-learn's users see is that of `classes_[1]`.
    """

    pos_label: Any
    threshold_: float

    def _check(self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any) -> Labelled:
        """The data of a fit, checked; rows of weight zero are left out."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        weights, groups = self._check_rows(X, sample_weight, sensitive_features)
        kept = weights > 0
        self.classes_, self.pos_label_, labels = check_target(y, kept, self.pos_label)
        data = Labelled(X, labels, weights, groups)
        return data if kept.all() else data.taken(kept)

    def _fit(self, data: Labelled, constraints: dict[str, RateConstraint], negatives: float = 1.0):
        """The model; `negatives` is the factor on the losses of negatives."""
        rows = make_rows(data, constraints, negatives, self.sharpness)
        start = best_constant(rows.loss.sum(axis=0), constraints, self.sharpness)
        self._minimise(RATES, rows, data, constraints, start)
        if self._plane is not None:
            weights, intercept = self._plane
            self.coef_, self.intercept_ = self._sign * weights[None], np.asarray([self._sign * intercept])

    @property
    def _even(self) -> float:
        """The model's number at which both classes are called equally probable."""
        return 0.0

    @property
    def _sign(self) -> float:
        """1 where the positive class is `classes_[1]`, -1 where it is `classes_[0]`."""
        return 1.0 if self.pos_label_ == self.classes_[1] else -1.0

    def decision_function(self, X: Any) -> np.ndarray:
        """Positive where `classes_[1]` is predicted: the logit of `pos_label_` less the threshold's, or the negative of it."""
        raw = self._raw(self._features(X))
        return self._sign * (raw - self.threshold_)

    def predict(self, X: Any) -> np.ndarray:
        """The predicted class of every row: `pos_label_` where its logit is above the threshold's."""
        raw = self._raw(self._features(X))
        positive = raw > self.threshold_
        return self.classes_[(positive == (self._sign > 0)).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The model's probabilities of `classes_`; a `threshold` that was given as a number does not enter."""
        raw = self._raw(self._features(X)) - self._even
        last = expit(self._sign * raw)
        return np.stack([1 - last, last], axis=1)

    def constraint_report(self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None) -> Any:
        """How the constraints fare on data: a pandas DataFrame with one row per constraint.

        `value` and `bound` are the left and the right side with rates of predictions (0 or 1); `smooth_value` and
        `smooth_bound` have the mean probabilities that were constrained. `met` compares the first two.
        """
        check_is_fitted(self)
        X, y = validate_data(self, X, y, dtype=np.float64, reset=False)
        labels = labels_of(y, self.classes_, self.pos_label_)
        data = Labelled(X, labels, check_weights(sample_weight, X), check_groups(sensitive_features, len(X)))
        return self._table(RATES, data, self._raw(X), self.threshold_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "threshold_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def logit_of(threshold: float) -> float:
    """A probability as a logit."""
    return float(logit(threshold))

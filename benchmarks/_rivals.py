"""What the estimators are measured beside: logistic regression, the same with moved thresholds, fairlearn's reductions.

A rival is a function of the training data that returns a function of (X, groups), the predictions. Moved thresholds are
chosen on the training data: one for a false-positive rate, one per group for a ratio of rates, which then needs the group to
predict. fairlearn bounds differences and ratios between groups; it has no bound on a false-positive rate as such.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from fairlearn.reductions import DemographicParity, ExponentiatedGradient, GridSearch, TruePositiveRateParity
from sklearn.linear_model import LogisticRegression

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]


def plain(X: np.ndarray, y: np.ndarray, ridge: float) -> LogisticRegression:
    """With the ridge that the estimators have."""
    return LogisticRegression(C=1 / (len(y) * ridge), max_iter=5000, tol=1e-6).fit(X, y)


def unconstrained(X: np.ndarray, y: np.ndarray, groups: np.ndarray, bound: float, ridge: float) -> Predict:
    """Logistic regression."""
    model = plain(X, y, ridge)
    return lambda X, groups: np.asarray(model.predict(X))


def moved_for_alarms(X: np.ndarray, y: np.ndarray, groups: np.ndarray, bound: float, ridge: float) -> Predict:
    """The smallest threshold at which at most `bound` of the training negatives lie above it."""
    model = plain(X, y, ridge)
    scores = np.sort(model.decision_function(X[y == 0]))
    threshold = scores[int(np.ceil((1 - bound) * len(scores))) - 1]
    return lambda X, groups: (model.decision_function(X) > threshold).astype(int)


def moved_for_ratio(X: np.ndarray, y: np.ndarray, groups: np.ndarray, bound: float, ridge: float) -> Predict:
    """Thresholds lowered, in groups whose rate is too small, until it is `bound` times that of everybody."""
    model = plain(X, y, ridge)
    scores = model.decision_function(X)
    thresholds = dict.fromkeys(np.unique(groups), 0.0)
    for _ in range(20):  # raising one group raises the rate of everybody a little: repeated until it settles
        overall = np.mean(scores > np.asarray([thresholds[g] for g in groups]))
        for group in thresholds:
            own = np.sort(scores[groups == group])[::-1]
            if np.mean(own > thresholds[group]) < bound * overall:
                thresholds[group] = own[min(len(own) - 1, int(np.ceil(bound * overall * len(own))))]
    return lambda X, groups: (model.decision_function(X) > np.asarray([thresholds[g] for g in groups])).astype(int)


def exponentiated_gradient(X: np.ndarray, y: np.ndarray, groups: np.ndarray, bound: float, ridge: float) -> Predict:
    """fairlearn's reduction to a randomised classifier, at its defaults."""
    model = _reduced(ExponentiatedGradient, X, y, groups, bound, ridge)
    return lambda X, groups: np.asarray(model.predict(X, random_state=0))


def grid_search(X: np.ndarray, y: np.ndarray, groups: np.ndarray, bound: float, ridge: float) -> Predict:
    """fairlearn's search over a grid of multipliers, at its defaults."""
    model = _reduced(GridSearch, X, y, groups, bound, ridge)
    return lambda X, groups: np.asarray(model.predict(X))


def equal_opportunity(X: np.ndarray, y: np.ndarray, groups: np.ndarray, bound: float, ridge: float) -> Predict:
    """fairlearn's reduction under ratios of true-positive rates."""
    model = _reduced(ExponentiatedGradient, X, y, groups, bound, ridge, TruePositiveRateParity)
    return lambda X, groups: np.asarray(model.predict(X, random_state=0))


def _reduced(
    kind: Any,
    X: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray,
    bound: float,
    ridge: float,
    moment: Any = DemographicParity,
) -> Any:
    base = LogisticRegression(C=1 / (len(y) * ridge), max_iter=5000)
    model = kind(base, moment(ratio_bound=bound))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # pandas' opinion of fairlearn's own frames
        model.fit(X, y, sensitive_features=groups)
    return model

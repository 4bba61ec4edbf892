"""A classifier with a bound on its false-positive rate."""

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_random_state

from ..errors import InputError
from .classifier import RateClassifier, logit_of
from .inputs import check_fraction
from .quantile import quantile_threshold, spent
from .rates import Subset, rate
from .statement import Labelled
from .umbrella import smallest_sample, umbrella_threshold

UMBRELLA, QUANTILE = "umbrella", "quantile"
WASTED = (
    0.5  # of alpha: a threshold that spends less on the rows of the fit, where another one spends more, is worth a word
)


class NeymanPearsonClassifier(RateClassifier):
    """Fewest misses among the positives at a false-positive rate of at most alpha.

    $$\\min_\\theta \\; \\text{logistic loss of the positives} + \\frac{\\rho}{2} |\\theta|^2 \\quad \\text{subject to} \\quad
    \\text{mean}_{i: y_i = 0} \\, \\sigma(k z_i) \\le \\alpha$$

    The paper's second experiment with the convex logistic loss in place of the sigmoid. Negatives enter through the
    constraint alone: false alarms below alpha cost nothing, so all of alpha is spent on catching positives.

    The constraint is on mean probabilities of the data that were fitted. Where few are sure, those at 0.5 and above are far
    fewer than alpha: the threshold is therefore the one that spends all of alpha on the rows of the fit. That promises
    nothing about predictions on unseen data; `threshold="umbrella"` does: part of the negatives is held out, and the
    threshold is the order statistic of their scores above which at most a fraction alpha of all negatives to come will lie,
    with probability at least 1 - delta (`mescal.estimators.umbrella_rank` has the formula).

    **Arguments:**

    - `max_false_positive_rate`: alpha.
    - `threshold`: `"quantile"`, the smallest one at which at most alpha of the negatives of the fit are predicted positive;
      `"umbrella"`; or the probability above which the positive class is predicted, with a warning where that spends less
      than half of alpha.
    - `delta`: of the umbrella: the probability with which the promise may fail.
    - `calibration_size`: of the umbrella: the share of the negatives that is held out.
    - `random_state`: also of the choice of the negatives that are held out.
    - all others: see `ConstrainedClassifier`, as for the attributes.
    """

    def __init__(
        self,
        max_false_positive_rate: float = 0.05,
        *,
        threshold: Any = "quantile",
        delta: float = 0.05,
        calibration_size: float = 0.5,
        pos_label: Any = None,
        ridge: float = 1e-4,
        model: Any = None,
        standardize: bool = True,
        sharpness: float = 1.0,
        solver: Any = "auto",
        tol: float = 1e-4,
        feasibility: float | None = None,
        max_outer: int = 100,
        verbose: bool = False,
        random_state: Any = None,
    ):
        self.max_false_positive_rate = max_false_positive_rate
        self.threshold = threshold
        self.delta = delta
        self.calibration_size = calibration_size
        self.pos_label = pos_label
        self.ridge = ridge
        self.model = model
        self.standardize = standardize
        self.sharpness = sharpness
        self.solver = solver
        self.tol = tol
        self.feasibility = feasibility
        self.max_outer = max_outer
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NeymanPearsonClassifier":
        """Fit, and choose the threshold on held-out negatives where it is the umbrella."""
        check_fraction("max_false_positive_rate", self.max_false_positive_rate)
        if self.threshold not in (UMBRELLA, QUANTILE):
            check_fraction("threshold", self.threshold)
        check_fraction("delta", self.delta)
        check_fraction("calibration_size", self.calibration_size)
        data = self._check(X, y, sample_weight, None)
        held = self._hold_out(data) if self.threshold == UMBRELLA else None
        constraints = {"false positives": rate(of="negatives") <= self.max_false_positive_rate}
        self._fit(data if held is None else data.taken(~held), constraints, negatives=0.0)
        if held is None:
            self.threshold_ = self._chosen(data)
        else:
            scores = self._raw(data.features[held])
            self.threshold_ = umbrella_threshold(scores, self.max_false_positive_rate, self.delta)
            self.calibration_negatives_ = int(held.sum())
        return self

    @property
    def _even(self) -> float:
        """The threshold where data chose it: negatives have no part in the loss, so that 0.5 by itself means nothing."""
        return self.threshold_ if self.threshold in (UMBRELLA, QUANTILE) else 0.0

    def _chosen(self, data: Labelled) -> float:
        """The threshold on the rows of the fit, with a warning where it leaves most of the rate unspent."""
        alpha = self.max_false_positive_rate
        scores, negatives = self._raw(data.features), data.shares(Subset("negatives"))
        best = quantile_threshold(scores, negatives, alpha)
        if self.threshold == QUANTILE:
            return best
        given = logit_of(float(self.threshold))
        used, most = (spent(scores, negatives, threshold) for threshold in (given, best))
        if used < WASTED * alpha and most > used:
            warnings.warn(
                f"threshold={self.threshold} gives a false-positive rate of {used:.3g} on the rows of the fit, of {alpha:g} that "
                f"are allowed, where threshold='quantile' gives {most:.3g} and finds more positives.",
                stacklevel=3,
            )
        return given

    def _hold_out(self, data: Labelled) -> np.ndarray:
        """bool (n,): the negatives on which the threshold is chosen."""
        if np.ptp(data.weights) > 0:
            raise InputError(
                "unequal sample weights with threshold='umbrella'",
                "weights that are all equal, or zero: the promise is about rows drawn alike",
                "leave the weights out, or give threshold a number",
            )
        negatives = np.flatnonzero(data.y == 0)
        count = int(np.floor(self.calibration_size * len(negatives)))
        needed = smallest_sample(self.max_false_positive_rate, self.delta)
        if count < needed or count == len(negatives):
            raise InputError(
                f"{len(negatives)} negatives, of which calibration_size={self.calibration_size:g} holds out {count}",
                f"at least {needed} held out, to promise a false-positive rate of {self.max_false_positive_rate:g} with"
                f" probability {1 - self.delta:g}, and at least one left to fit",
                "collect more negatives, raise calibration_size, or ask for a larger rate or a larger delta",
            )
        held = np.zeros(len(data.y), bool)
        held[check_random_state(self.random_state).permutation(negatives)[:count]] = True
        return held

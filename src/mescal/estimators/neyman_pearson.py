"""A classifier with a bound on its false-positive rate."""

import warnings
from dataclasses import field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_random_state

from ..errors import InputError
from .classifier import RateClassifier
from .estimator import parameters
from .groups import called
from .inputs import check_fraction
from .rates import Subset, rate
from .statement import Labelled
from .thresholds import quantile_threshold, smallest_sample, spent, umbrella_threshold

UMBRELLA, QUANTILE = "umbrella", "quantile"
WASTED = (
    0.5  # of alpha: a threshold that spends less on the rows of the fit, where another one spends more, is worth a word
)


@parameters
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

    With `sensitive_features` in `fit` the bound is on the rate in every group, with one threshold for all: the largest that a
    group needs. Under the umbrella each of m groups has delta / m, so that by the union bound all m promises hold at once with
    probability at least 1 - delta.

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

    max_false_positive_rate: float = field(default=0.05, kw_only=False)
    threshold: Any = "quantile"
    delta: float = 0.05
    calibration_size: float = 0.5

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None
    ) -> "NeymanPearsonClassifier":
        """Fit, and choose the threshold; with `sensitive_features` the bound is on every group's rate."""
        check_fraction("max_false_positive_rate", self.max_false_positive_rate)
        if isinstance(self.threshold, str) and self.threshold not in (UMBRELLA, QUANTILE):
            raise InputError(
                f"threshold={self.threshold!r}",
                f"{QUANTILE!r}, {UMBRELLA!r}, or a probability",
                f"{QUANTILE!r}, the default, spends the rate on the rows of the fit; {UMBRELLA!r} promises it for new ones",
            )
        if self.threshold not in (UMBRELLA, QUANTILE):
            check_fraction("threshold", self.threshold)
        check_fraction("delta", self.delta)
        check_fraction("calibration_size", self.calibration_size)
        data = self._check(X, y, sample_weight, sensitive_features)
        subsets = {"false positives": Subset("negatives")}
        if data.groups is not None:
            subsets = {f"false positives of {called(group)}": Subset("negatives", group) for group in data.groups.all}
        held = self._hold_out(data, list(subsets.values())) if self.threshold == UMBRELLA else []
        kept = np.ones(len(data.y), bool)
        kept[np.concatenate([np.zeros(0, int), *held])] = False
        bounds = {name: rate(each.of, each.group) <= self.max_false_positive_rate for name, each in subsets.items()}
        self._fit(data if kept.all() else data.taken(kept), bounds, negatives=0.0)
        scores = self._raw(data.features)
        if held:
            alpha, delta = self.max_false_positive_rate, self.delta / len(held)
            self.threshold_ = max(umbrella_threshold(scores[rows], alpha, delta) for rows in held)
            self.calibration_negatives_ = sum(map(len, held))
        else:
            self.threshold_ = self._chosen(scores, [data.shares(subset) for subset in subsets.values()])
        return self

    @property
    def _only_two(self) -> str:
        return "wrap the estimator in sklearn.multiclass.OneVsRestClassifier, whose every problem has two"

    @property
    def _even(self) -> float:
        """The threshold where data chose it: negatives have no part in the loss, so that 0.5 by itself means nothing."""
        return self.threshold_ if self.threshold in (UMBRELLA, QUANTILE) else 0.0

    def _chosen(self, scores: np.ndarray, negatives: list[np.ndarray]) -> float:
        """The threshold on the rows of the fit, with a warning where it leaves most of the rate unspent."""
        alpha = self.max_false_positive_rate
        best = max(quantile_threshold(scores, share, alpha) for share in negatives)
        if self.threshold == QUANTILE:
            return best
        given = self._one_threshold(float(self.threshold))
        used, most = (max(spent(scores, share, at) for share in negatives) for at in (given, best))
        if used < WASTED * alpha and most > used:
            warnings.warn(
                f"threshold={self.threshold} gives a false-positive rate of {used:.3g} on the rows of the fit, of {alpha:g} that "
                f"are allowed, where threshold='quantile' gives {most:.3g} and finds more positives.",
                stacklevel=3,
            )
        return given

    def _hold_out(self, data: Labelled, subsets: list[Subset]) -> list[np.ndarray]:
        """Of every subset the negatives on which the threshold is chosen."""
        if np.ptp(data.weights) > 0:
            raise InputError(
                "unequal sample weights with threshold='umbrella'",
                "weights that are all equal, or zero: the promise is about rows drawn alike",
                "leave the weights out, or give threshold a number",
            )
        rng, held = check_random_state(self.random_state), []
        needed = smallest_sample(self.max_false_positive_rate, self.delta / len(subsets))
        for subset in subsets:
            negatives = np.flatnonzero(data.members(subset))
            count = int(np.floor(self.calibration_size * len(negatives)))
            if count < needed or count == len(negatives):
                where = "" if subset.group is None else f" in the group {subset.group!r}"
                raise InputError(
                    f"{len(negatives)} negatives{where}, of which calibration_size={self.calibration_size:g} holds out {count}",
                    f"at least {needed} held out, to promise a false-positive rate of {self.max_false_positive_rate:g} with"
                    f" probability {1 - self.delta:g}{' in all groups at once' if where else ''}, and at least one left to fit",
                    "collect more negatives, raise calibration_size, or ask for a larger rate or a larger delta",
                )
            held.append(rng.permutation(negatives)[:count])
        return held

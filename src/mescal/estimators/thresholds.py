"""Thresholds that data choose: the one that spends a false-positive rate on the rows of the fit, and the umbrella's.

On the rows of the fit, a weighted quantile of the scores of negatives:

    t = min { score s of a negative : (weight of negatives with scores above s) / (weight of negatives) <= alpha }

Between t and the next score above it any number makes the same predictions on these rows; it is the one halfway, so that
rounding in the score of another batch moves nobody across. It promises nothing about other rows: those of the fit are
the ones that the model was chosen for. The umbrella's does, with a stated probability.

Scores of n negatives that the scores do not depend on, sorted: t_1 <= ... <= t_n. A negative drawn later is above t_k with
probability R_k = 1 - F(t_k), itself random, and for scores without ties (with ties it is smaller still)

    P(R_k > alpha) = sum_{j >= k} C(n, j) (1 - alpha)^j alpha^(n - j).

The threshold is t_k with the smallest k for which this is at most delta: then R_k <= alpha with probability >= 1 - delta,
whatever the distribution. Even k = n needs (1 - alpha)^n <= delta, that is n >= log delta / log(1 - alpha).

X. Tong, Y. Feng and J. J. Li, "Neyman-Pearson classification algorithms and NP receiver operating characteristics", Science
Advances 4 (2018), Proposition 1.
"""

import math

import numpy as np
from scipy.stats import binom

from ..errors import InputError

ROUNDING = 1e-9  # scores that differ by less, relative to max(1, |s|), are one
SUMMED = 1e-12  # what sums of weights may be off


def quantile_threshold(scores: np.ndarray, negatives: np.ndarray, alpha: float) -> float:
    """The threshold: predict positive above it. `negatives` has the share of each row in the rate, 0 for positives."""
    held = negatives > 0
    own, share = scores[held], negatives[held]
    order = np.argsort(own)
    above = share.sum() - np.cumsum(share[order])
    lowest = own[order][np.argmax(above <= alpha + SUMMED)]
    higher = scores[scores > lowest + ROUNDING * max(1.0, abs(lowest))]
    return float((lowest + higher.min()) / 2 if higher.size else lowest)


def spent(scores: np.ndarray, negatives: np.ndarray, threshold: float) -> float:
    """The false-positive rate of a threshold on these rows."""
    return float(negatives @ (scores > threshold))


def violation_probability(n: int, k: int, alpha: float) -> float:
    """P(R_k > alpha) for continuous scores: that at least k of n negatives lie below the (1 - alpha)-quantile."""
    return float(binom.sf(k - 1, n, 1 - alpha))


def smallest_sample(alpha: float, delta: float) -> int:
    """The fewest held-out negatives for which the promise can be made."""
    return max(1, math.ceil(math.log(delta) / math.log1p(-alpha)))


def umbrella_rank(n: int, alpha: float, delta: float) -> int:
    """The smallest k (counted from 1) with P(R_k > alpha) <= delta; an error where there is none."""
    ranks = np.arange(1, n + 1)
    allowed = ranks[binom.sf(ranks - 1, n, 1 - alpha) <= delta]
    if allowed.size == 0:
        needed = smallest_sample(alpha, delta)
        raise InputError(
            f"{n} held-out negatives for a false-positive rate of {alpha:g} with probability {1 - delta:g}",
            f"at least {needed} = log(delta) / log(1 - alpha), rounded up",
            "collect more negatives, raise calibration_size, or ask for a larger rate or a larger delta",
        )
    return int(allowed[0])


def umbrella_threshold(scores: np.ndarray, alpha: float, delta: float) -> float:
    """t_k of held-out scores of negatives: predict positive strictly above it."""
    return float(np.sort(scores)[umbrella_rank(len(scores), alpha, delta) - 1])

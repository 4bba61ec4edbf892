"""The threshold that spends a false-positive rate on the rows of the fit: a weighted quantile of the scores of negatives.

    t = min { score s of a negative : (weight of negatives with scores above s) / (weight of negatives) <= alpha }

Between t and the next score above it any number makes the same predictions on these rows; it is the one halfway, so that
rounding in the score of another batch moves nobody across. It promises nothing about other rows: those of the fit are
the ones that the model was chosen for. `umbrella` does.
"""

import numpy as np

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

"""What repeated independent runs prove about a success probability (Definition 1.2): exact one-sided Clopper-Pearson bounds."""

import math

from ..errors import InputError
from .counts import check_probability, count
from .units import Count, Number


def lower_bound(successes: Count, runs: Count, confidence: Number = 0.95, verification_error: Number = 0.0) -> Number:
    """p_low with P(Binomial(R, p_low) >= S) = 1 - confidence: the quantile BetaInv(1 - confidence; S, R - S + 1).

    Claim: the success probability is >= p_low at this confidence; 0 if S = 0. If a failed run passes for a success with
    probability up to `verification_error`, that is subtracted. Runs must have independent keys; iterates of one run are
    not runs.
    """
    check_probability(confidence=confidence)
    if not 0 <= successes <= runs or runs < 1:
        raise InputError(
            f"{successes} successes of {runs} runs", "0 <= successes <= runs, and a run", "count the runs again"
        )
    if successes == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(100):  # bisection; the tail grows with p
        middle = (low + high) / 2
        if _tail(successes, runs, middle) < 1 - confidence:
            low = middle
        else:
            high = middle
    return max(0.0, low - verification_error)


def runs_needed(probability: Number, confidence: Number = 0.95) -> Count:
    """ceil(log(1 - confidence) / log p): so many runs, all successful, prove a success probability >= p.

    At 95 %: 5 runs for 1/2, 7 for 5/8, 8 for 2/3, 29 for 0.9, 59 for 0.95.
    """
    check_probability(probability=probability, confidence=confidence)
    return count(math.log1p(-confidence) / math.log(probability))


def _tail(successes: Count, runs: Count, p: Number) -> Number:
    """P(Binomial(runs, p) >= successes) for 0 < p < 1; each term from logarithms of factorials."""
    if p <= 0 or p >= 1:
        return float(p >= 1)
    log_p, log_q, whole = math.log(p), math.log1p(-p), math.lgamma(runs + 1)
    return math.fsum(
        math.exp(whole - math.lgamma(k + 1) - math.lgamma(runs - k + 1) + k * log_p + (runs - k) * log_q)
        for k in range(successes, runs + 1)
    )

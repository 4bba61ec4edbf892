"""Where a fit starts: at the best constant model, with a penalty under which it cannot run away from the constraints.

A model that gives everybody the probability p has all rates equal to p (to sigma(k logit p)), so that a constraint on rates
is a condition on p. Among the p that meet all of them (or violate them least), the one of least loss is the start.

A rate is bounded, so a quadratic penalty on it is too: from a small one, descent can buy a large violation where the
sigmoids are saturated, and no way leads back from there. Descent never rises above L(start) = the loss there, so penalties
of at least 2 L(start) / v^2 keep every violation that it can reach below v.
"""

import numpy as np
from scipy.special import expit, logit

from ..run import Outer
from .rates import RateConstraint

REACH = 0.1  # v: of a rate
STIFFER = (1, 10, 100)  # factors on the penalty that follows from it
PLAIN = Outer().penalty
GRID = logit(np.concatenate([np.geomspace(1e-6, 0.5, 200), 1 - np.geomspace(0.5, 1e-6, 200)]))


def best_constant(losses: np.ndarray, constraints: dict[str, RateConstraint], sharpness: float) -> tuple[float, float]:
    """The logit of the best constant model and its loss; `losses` are the weights of positives and of negatives."""
    values = losses[0] * np.logaddexp(0, -GRID) + losses[1] * np.logaddexp(0, GRID)
    violation = np.zeros_like(GRID)
    for constraint in constraints.values():
        body = constraint.body
        excess = body.constant + expit(sharpness * GRID) * sum(factor for factor, _ in body.terms)
        violation = np.maximum(violation, excess)
    best = np.flatnonzero(violation <= violation.min() + 1e-12)
    chosen = best[np.argmin(values[best])]
    return float(GRID[chosen]), float(values[chosen])


def penalties(height: float, whole: bool) -> list[float]:
    """First penalties to try, in order: the one that keeps violations below v, and stiffer ones.

    Where rows are drawn, a stiff penalty multiplies the noise of the constraints: there the default of `minimize` comes first.
    """
    safe = max(PLAIN, 2 * height / REACH**2)
    tried = [safe * factor for factor in STIFFER]
    return tried if whole else [PLAIN, *tried]

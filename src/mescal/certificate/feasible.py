"""How far a point is from feasible: what a user means by it, what is left of complementarity, and the paper's measure of both.

With slacks s >= 0 of the inequalities and r = c + s:

    violation = |v|, v_j = max(c_j, 0) for inequalities, c_j for equalities;    complementarity = |r - v|;    feasibility = |r|

An inequality that is met, c_j < 0, with a positive multiplier and so s_j = 0 violates nothing: its r_j = c_j is complementarity's.
"""

from typing import NamedTuple

import numpy as np

from .certificate import Measured
from .rounded import FLUSHED, widened


class Feasible(NamedTuple):
    """The three measures; feasibility^2 is the sum of the squares of the others."""

    feasibility: Measured
    violation: Measured
    complementarity: Measured


def feasible(
    constraint: np.ndarray, slack: np.ndarray, inequality: np.ndarray, off: np.ndarray, radius: float, how: str
) -> Feasible:
    """The measures where entries of c are off by at most `off` (rounding), and c as a whole by `radius` more (sampling).

    A violation of zero is proven where every inequality is met by more than its entry may be off.
    """
    residual = constraint + slack
    violated = np.where(inequality, np.maximum(constraint, 0), constraint)
    off = off + FLUSHED
    error = float(np.linalg.norm(off)) + radius
    entry = off + radius
    most = np.where(inequality, np.maximum(constraint + entry, 0), np.abs(constraint) + entry)
    violation = widened(float(np.linalg.norm(violated)), error, how)
    upper = min(violation.upper, float(np.linalg.norm(most)))
    return Feasible(
        feasibility=widened(float(np.linalg.norm(residual)), error, how),
        violation=Measured(violation.value, violation.lower, upper, how),
        complementarity=widened(float(np.linalg.norm(residual - violated)), error, how),
    )

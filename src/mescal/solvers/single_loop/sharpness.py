"""How sharp a reset of the single loop is: thetas by the residuals of the one before, by the tolerance where these are small."""

import numpy as np

from ...oracle.subproblem import Subproblem
from ..base import Goal
from ..reset import NORM_TEST, SMALLEST_RESET, VERIFY
from .known import Known, with_slack

ACCURACY = 1 / 3  # of what is left of a tolerance on a stream: the standard error of a reset that makes a candidate ...
SHARPEST = 1 << 21  # ... within so many thetas


def thetas(sub: Subproblem, before: Known | None, goal: Goal, failures: int) -> int:
    """Thetas of the next reset: with errors of half the last residuals; where these are small, as the tolerance asks for."""
    if sub.population is not None:
        return goal.large_batch
    if before is None:
        return min(goal.large_batch, SMALLEST_RESET)
    slope, violation = float(before.stationarity), sub.violation(with_slack(sub, before))
    if slope <= closeness(sub) * goal.gradient and violation <= goal.ready:
        return sharpest(sub, before, goal)
    slope = max(slope, goal.gradient)
    errors = NORM_TEST * np.asarray([slope, max(violation, goal.ready * slope / goal.gradient)])
    wanted = float((before.noise / errors**2).max()) * 4.0 ** min(failures, 12)
    least = min(SMALLEST_RESET, goal.large_batch)
    return int(np.clip(wanted, least, goal.large_batch)) if np.isfinite(wanted) else goal.large_batch


def closeness(sub: Subproblem) -> float:
    """Of the tolerance: what a candidate's stationarity may be; less on streams, where the judge adds his own error."""
    return VERIFY if sub.population is not None else 1 - ACCURACY


def sharpest(sub: Subproblem, at: Known, goal: Goal) -> int:
    """Thetas of a reset that a candidate must stand: far fewer than the judge will look at, who is asked for nothing else."""
    if sub.population is not None:
        return goal.large_batch
    errors = ACCURACY * np.asarray([goal.gradient, goal.ready])
    wanted = float((at.noise / errors**2).max())
    return int(np.clip(wanted, SMALLEST_RESET, SHARPEST)) if np.isfinite(wanted) else SHARPEST

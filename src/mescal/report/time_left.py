"""How long a run may still take: from how fast its violation falls, outer iteration by outer iteration.

Inner solves bring stationarity and curvature to their tolerances each time; what falls over outer iterations is the
violation, by a factor that hardly changes. With that factor q and the mean time t of the last iterations, log(tol/c)/log q
iterations of t seconds are left. It is a guess, and it is said to be one.
"""

import math

from ..certificate import Tolerance
from ..run import Row

WINDOW = 4  # outer iterations looked back


class TimeLeft:
    """Fed with rows; `seconds` is None where nothing can be said."""

    def __init__(self, tolerance: float | Tolerance, limit: float | None = None):
        self.tolerance, self.limit = tolerance, limit
        self.rows: list[Row] = []

    def add(self, row: Row):
        """One more outer iteration."""
        self.rows = [*self.rows, row][-WINDOW:]

    @property
    def seconds(self) -> float | None:
        """Seconds left after the last row."""
        if len(self.rows) < 2:
            return None
        first, last = self.rows[0], self.rows[-1]
        (check,) = (check for check in last.checks(self.tolerance) if check.name == "feasibility")
        per_iteration = (last.seconds - first.seconds) / (len(self.rows) - 1)
        estimate = None
        if check.met:
            estimate = per_iteration
        elif 0 < last.feasibility < first.feasibility:
            rate = math.log(first.feasibility / last.feasibility) / (len(self.rows) - 1)
            estimate = per_iteration * max(1.0, math.log(check.share) / rate)
        if self.limit is not None:
            left = max(0.0, self.limit - last.seconds)
            estimate = left if estimate is None else min(estimate, left)
        return estimate


def about(seconds: float) -> str:
    """How long is left, in words."""
    if seconds < 1:
        return "under a second left"
    if seconds < 90:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"

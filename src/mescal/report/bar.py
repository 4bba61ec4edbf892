"""`minimize(progress=True)`: one line that says how far a run is, in a notebook, on a terminal, or as lines of a log.

How far: of each measure that has a tolerance, the way from the worst share of it that was seen to all of it, on a logarithmic
scale; the bar shows the least of them. It may go back: a larger penalty, or the judge, may show that something is still to be done.
"""

import math
import sys
from importlib import import_module
from typing import Any

from ..certificate import Tolerance
from ..run import Row
from .cards import card
from .markup import tag, text
from .numbers import number, seconds, work_tick

CELLS = 24
WINDOW = 4  # outer iterations looked back


def gone(share: float, worst: float) -> float:
    """How much of the way from the worst share of a tolerance to all of it lies behind: 1 where it is met."""
    if math.isnan(share) or math.isinf(share):
        return 0.0
    way = 1.0 if share <= 1 else 1 - math.log(share) / math.log(worst) if worst > 1 else 0.0
    return min(max(way, 0.0), 1.0)


class Way:
    """How far a run is, from its rows."""

    def __init__(self, tolerance: float | Tolerance):
        self.tolerance = tolerance
        self.worst: dict[str, float] = {}

    def add(self, row: Row) -> dict[str, float]:
        """One more row; how far each measure is."""
        far = {}
        for check in row.checks(self.tolerance):
            if math.isfinite(check.share):
                self.worst[check.name] = max(self.worst.get(check.name, 1.0), check.share)
            known = math.isfinite(check.bound)  # a curvature that nobody has searched for yet is no reason to wait
            far[check.name] = gone(check.share, self.worst.get(check.name, 1.0)) if known else 1.0
        return far


class TimeLeft:
    """How long a run may still take, from its rows; `seconds` is None where nothing can be said.

    Inner solves bring stationarity and curvature to their tolerances each time; what falls over outer iterations is the
    violation, by a factor that hardly changes. With that factor q and the mean time t of the last iterations, log(tol/c)/log q
    iterations of t seconds are left. It is a guess, and it is said to be one.
    """

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


class Bar:
    """Called with every row of a run; `begin` names what comes next, `ended` leaves the last line as it is."""

    def __init__(self, tolerance: Tolerance, limit: float | None = None, screen: Any = None):
        self.tolerance, self.limit = tolerance, None if limit is None or math.isinf(limit) else limit
        self.screen = sys.stderr if screen is None else screen
        self.notebook = screen is None and _is_notebook()
        self.handle: Any = None
        self.open = False
        self.begin("")

    def begin(self, title: str):
        """A run of that name comes next."""
        self.title, self.way, self.left = title, Way(self.tolerance), TimeLeft(self.tolerance, self.limit)

    def __call__(self, row: Row):
        """One more outer iteration."""
        far = min(self.way.add(row).values(), default=0.0)
        self.left.add(row)
        self.open = True
        if self.notebook:
            self._display(card([tag("p", f"{_drawn(far)} {text(self.words(row))}")]))
        elif self.screen.isatty():
            full = round(CELLS * far)
            self.screen.write(f"\r\x1b[2K{'━' * full}{'╌' * (CELLS - full)} {self.words(row)}")
        else:
            self.screen.write(f"{100 * far:3.0f} % {self.words(row)}\n")
        self.screen.flush()

    def words(self, row: Row) -> str:
        """The row in words."""
        told = [
            f"{self.title}{', ' if self.title else ''}outer iteration {row.outer + 1}",
            f"{work_tick(row.work)} evaluations",
        ]
        told += [
            f"{check.name} {number(check.bound)} ({'✓' if check.met else '✗'} {check.sign} {number(check.limit)})"
            for check in row.checks(self.tolerance)
            if math.isfinite(check.bound)
        ]
        told.append(f"{seconds(row.seconds)} s")
        if self.left.seconds is not None:
            told.append(about(self.left.seconds))
        return ", ".join(told)

    def ended(self):
        """The run is over; what is printed next begins a line of its own."""
        if self.open and not self.notebook and self.screen.isatty():
            self.screen.write("\n")
            self.screen.flush()
        self.open = False

    def _display(self, markup: str):
        display = import_module("IPython.display")
        if self.handle is None:
            self.handle = display.display(display.HTML(markup), display_id=True)
        else:
            self.handle.update(display.HTML(markup))


def _drawn(far: float) -> str:
    return tag("span", f'<i style="width:{100 * far:.0f}%"></i>', class_="bar")


def _is_notebook() -> bool:
    """Whether a kernel shows what is displayed; IPython is not imported to find out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")

"""A stored run as the report reads it: what was asked, what came out, and its curves against work; those of several seeds.

What a run records at the end of an outer iteration holds until the end of the next one, so a curve is a step function; after
its last row it keeps its last value, for that is the point the run returned. The common grid of several seeds is the union of
their recorded works, on which steps are exact and nothing is interpolated away.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..certificate import Check, Tolerance
from ..experiments.result_file import About
from ..experiments.store import StoredRun
from ..experiments.task import asked_of
from ..forms import typed
from ..run import Result
from ..run.settings import Outer

# The three measures of the paper's figures, in their order.
MEASURES = ("curvature", "stationarity", "feasibility")
MARKERS = 60  # markers of one seed in a panel; of longer runs some are left out
LARGEST = 600  # points of a drawn curve: more than the columns of pixels of a panel


@dataclass(frozen=True, eq=False)
class Curve:
    """Values recorded at increasing works; NaN where nothing was measured."""

    work: np.ndarray
    values: np.ndarray

    def at(self, grid: np.ndarray) -> np.ndarray:
        """The step function on a grid; NaN before the first row."""
        index = np.searchsorted(self.work, grid, side="right") - 1
        values = np.append(self.values, np.nan)  # index -1, before the first row, reads this one
        return values[index]

    def finite(self) -> "Curve":
        """The rows that can be drawn against a logarithmic work axis."""
        keep = np.isfinite(self.values) & np.isfinite(self.work) & (self.work > 0)
        return Curve(self.work[keep], self.values[keep])


@dataclass(frozen=True, eq=False)
class Band:
    """Median and range over seeds at every work of a grid, where at least half of the seeds have a value."""

    work: np.ndarray
    median: np.ndarray
    low: np.ndarray
    high: np.ndarray
    seeds: int


def band(curves: Sequence[Curve]) -> Band:
    """The median and the smallest and largest value over curves."""
    drawn = [curve.finite() for curve in curves]
    grid = np.unique(np.concatenate([np.zeros(0), *(curve.work for curve in drawn)]))
    stack = np.stack([curve.at(grid) for curve in drawn]) if drawn else np.zeros((0, 0))
    enough = 2 * np.isfinite(stack).sum(axis=0) >= len(drawn)
    grid, stack = grid[enough], stack[:, enough]
    keep = columns(grid)
    grid, stack = grid[keep], stack[:, keep]
    if grid.size == 0:
        return Band(grid, grid, grid, grid, len(drawn))
    low, high = np.nanmin(stack, axis=0), np.nanmax(stack, axis=0)
    return Band(grid, np.nanmedian(stack, axis=0), low, high, len(drawn))


def columns(work: np.ndarray, largest: int = LARGEST) -> np.ndarray:
    """Which points to draw: all if they are few, otherwise the last of each column of a logarithmic axis."""
    if work.size <= largest:
        return np.arange(work.size)
    span = np.log(work / work[0])
    column = np.floor(span / max(span[-1], 1e-300) * (largest - 1)).astype(int)
    return np.flatnonzero(np.append(np.diff(column) > 0, True))


@dataclass(frozen=True, eq=False)
class RunView:
    """One stored run."""

    run: StoredRun

    @property
    def config(self) -> Mapping[str, Any]:
        """What was asked."""
        return self.run.config

    @property
    def result(self) -> Result | None:
        """What came out, or nothing yet."""
        return self.run.result

    @property
    def about(self) -> About | None:
        """What is said beside the result."""
        return self.run.about

    @property
    def ended(self) -> bool:
        """Whether there is a result."""
        return self.run.result is not None

    @property
    def certified(self) -> bool:
        """Whether the run ended with a certificate."""
        return self.run.converged

    @property
    def problem(self) -> str:
        """The name of the problem."""
        return self.config["problem"]

    @property
    def solver(self) -> str:
        """The name of the solver, with the settings that are not its defaults."""
        name = self.config.get("solver") or ("unknown" if self.result is None else self.result.solver)
        asked = asked_of(self.config.get("options", {}), typed(Outer, self.config.get("outer", {})))
        return name + "".join(f", {key}={value}" for key, value in asked.items())

    @property
    def seed(self) -> int:
        """The seed."""
        return self.run.seed

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of the problem."""
        return self.config.get("parameters", {})

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance that the run had to meet."""
        return self.run.tolerance

    @cached_property
    def checks(self) -> dict[str, Check]:
        """The measures of its certificate that its tolerance says something about, by name."""
        if self.result is None:
            return {}
        return {check.field: check for check in self.result.certificate.checks(self.tolerance)}

    @property
    def status(self) -> str:
        """How the run ended, in words."""
        return "no result yet" if self.result is None else self.result.status.word

    @property
    def place(self) -> str:
        """The folder, seen from the working folder; of a folder elsewhere the last two parts, without people's names."""
        path = self.run.path
        if path.is_absolute():
            path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(*path.parts[-2:])
        return path.as_posix()

    def number(self, of: Callable[[Result], Any]) -> float:
        """A number of the result; NaN where there is none yet."""
        return math.nan if self.result is None else float(of(self.result))

    @cached_property
    def history(self) -> dict[str, list[Any]]:
        """The columns of the history."""
        return {} if self.result is None else self.result.history.table()

    @property
    def exact(self) -> bool:
        """Whether the history holds the judge's measures."""
        return all(f"exact:{name}" in self.history for name in MEASURES)

    def curve(self, name: str, against: str = "work") -> Curve:
        """A column of the history against work or seconds, the judge's where there is one; `multipliers` is their norm."""
        work = np.asarray(self.history.get(against, ()), np.float64)
        if name == "multipliers":
            columns = [values for column, values in self.history.items() if column.startswith("multiplier:")]
            values = np.linalg.norm(np.asarray(columns, np.float64), axis=0) if columns else np.full(work.shape, np.nan)
        else:
            column = f"exact:{name}" if self.exact and f"exact:{name}" in self.history else name
            values = self.history.get(column, np.full(work.shape, np.nan))
        return Curve(work, np.asarray(values, np.float64))

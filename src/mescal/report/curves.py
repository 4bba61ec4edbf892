"""Curves against work: each seed's steps on a common grid, their median and range.

What a run records at the end of an outer iteration holds until the end of the next one, so a curve is a step function; after
its last row it keeps its last value, for that is the point the run returned. The common grid is the union of all seeds'
recorded works, on which steps are exact and nothing is interpolated away.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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

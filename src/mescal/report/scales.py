"""Axes: where a value lies between the ends of an axis, and where its ticks are.

- `log`: log10 v. What is smaller than the lower end is drawn there.
- `symlog`: for values of either sign. Linear within +-a, logarithmic outside: v/a, or sign(v) (1 + log10(|v|/a)).
- `linear`: v.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

DECADES = 4  # below the tolerance: what is smaller is drawn at the lower edge of the panel
MARGIN = 0.06  # of the axis, at either end
MOST_TICKS = 6
SAME = 0.005  # four digits tell the ticks of an axis this long apart
SHORT = 0.5  # decades: below that a logarithmic axis has even ticks


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`. Of `symlog`, `linear` is the half-width of the linear part, `mark` a value for a tick."""

    kind: Literal["log", "symlog", "linear"]
    low: float
    high: float
    linear: float = 1.0
    mark: float = 1.0

    def forward(self, values) -> np.ndarray:
        """The coordinate in which the axis is even."""
        v = np.asarray(values, np.float64)
        if self.kind == "log":
            return np.log10(np.maximum(v, 1e-300))
        if self.kind == "symlog":
            outside = 1 + np.log10(np.maximum(np.abs(v) / self.linear, 1.0))
            return np.where(np.abs(v) <= self.linear, v / self.linear, np.sign(v) * outside)
        return v

    def inverse(self, coordinate: float) -> float:
        """The value at a coordinate."""
        if self.kind == "log":
            return 10**coordinate
        if self.kind == "symlog" and abs(coordinate) > 1:
            return math.copysign(self.linear * 10 ** (abs(coordinate) - 1), coordinate)
        return coordinate * self.linear if self.kind == "symlog" else coordinate

    def position(self, values) -> np.ndarray:
        """Where values lie: 0 at the low end, 1 at the high end, never outside."""
        low, high = self.forward(self.low), self.forward(self.high)
        return np.clip((self.forward(values) - low) / max(high - low, 1e-300), 0, 1)

    def ticks(self, most: int = MOST_TICKS) -> list[float]:
        """Values for the ticks, three at least where the axis lets them."""
        if self.kind == "linear":
            return _even(self.low, self.high, most)
        if self.kind == "log":
            return _log_ticks(self.low, self.high, most)
        near = self.linear / self.mark
        sides = ((-1, -self.low / self.mark), (1, self.high / self.mark))
        found = (sign * power * self.mark for sign, end in sides for power in _powers(near, end, max(most // 2, 1)))
        return sorted({0.0, *(float(f"{v:.12g}") for v in found)})


def log_scale(values: Iterable[float], include: Iterable[float] = (), floor: float = 0.0) -> Scale:
    """A logarithmic axis around positive values; nothing below `floor` is given room."""
    kept = [max(float(v), floor) for v in (*values, *include) if np.isfinite(v) and max(v, floor) > 0]
    low, high = (math.log10(min(kept)), math.log10(max(kept))) if kept else (0.0, 1.0)
    if high - low < 0.1:
        low, high = low - 0.1, high + 0.1
    room = MARGIN * (high - low)
    return Scale("log", 10 ** (low - room), 10 ** (high + room))


def signed_scale(values: Iterable[float], limit: float, linear: float) -> Scale:
    """An axis for values of either sign with room for -limit .. limit, linear up to `linear`."""
    kept = [float(v) for v in values if np.isfinite(v)]
    raw = Scale("symlog", min([-2 * limit, *kept]), max([2 * limit, *kept]), linear)
    low, high = float(raw.forward(raw.low)), float(raw.forward(raw.high))
    room = MARGIN * (high - low)
    return Scale("symlog", raw.inverse(low - room), raw.inverse(high + room), linear, limit)


def linear_scale(values: Iterable[float]) -> Scale:
    """A plain axis around values; what differs by less than a fraction `SAME` of its size is drawn as nearly level."""
    kept = [float(v) for v in values if np.isfinite(v)] or [0.0]
    low, high = min(kept), max(kept)
    room = max(MARGIN * (high - low), (SAME * max(abs(low), abs(high)) - (high - low)) / 2)
    room = room or 0.05e-3
    return Scale("linear", low - room, high + room)


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    decades = math.log10(high / low)
    if decades >= 2.5:
        return _powers(low, high, most)
    for digits in () if decades < SHORT else ((1, 3), (1, 2, 5), (1, 2, 3, 5, 7), tuple(range(1, 10))):
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [d * 10.0**e for e in exponents for d in digits if low <= d * 10.0**e <= high]
        if 3 <= len(found) <= most:
            return found
    return [v for v in _even(low, high, most) if v > 0]


def _powers(low: float, high: float, most: int) -> list[float]:
    """Powers of ten between two ends, every second or third if they are many."""
    if high < low:
        return []
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    stride = max(1, math.ceil((last - first + 1) / max(most, 1)))
    return [10.0**e for e in range(first, last + 1) if e % stride == 0]


def _even(low: float, high: float, most: int) -> list[float]:
    """Round numbers between two ends: steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / most
    power = 10 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw)
    return [float(f"{k * step:.12g}") for k in range(math.ceil(low / step), math.floor(high / step) + 1)]

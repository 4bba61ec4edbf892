"""The certificate as gauges: each measure with its interval on a logarithmic axis, against its tolerance.

A run passes where the bound that decides (the upper one, for curvature the lower one) lies in the shaded part.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from .arrange import Group, Series
from .markup import tag, text
from .numbers import number, tick
from .panels import FINE
from .scales import DECADES, Scale, log_scale, signed_scale
from .view import Reading, View

WIDTH, LABELS, RIGHT, ROW = 380, 92, 366, 21


@dataclass(frozen=True)
class Gauge:
    """A measure that has a tolerance."""

    measure: str
    title: str
    meaning: str
    limit: Callable[[Group], float | None]

    def passes(self, reading: Reading, limit: float) -> bool:
        """As `Certificate.passes` does: NaN never passes."""
        return reading.lower >= limit if self.measure == "curvature" else reading.upper <= limit

    def bound(self, reading: Reading) -> float:
        """The bound that decides."""
        return reading.lower if self.measure == "curvature" else reading.upper

    def scale(self, readings: list[Reading], limit: float) -> Scale:
        """An axis with room for the tolerance and all that was measured."""
        numbers = [v for r in readings for v in (r.value, r.lower, r.upper) if math.isfinite(v)]
        if self.measure == "curvature":
            return signed_scale(numbers, abs(limit), abs(limit) / FINE)
        return log_scale([v for v in numbers if v >= 0], [limit, 10 * limit, limit / 10], floor=limit * 10.0**-DECADES)


GAUGES = (
    Gauge(
        "stationarity", "Stationarity", "norm of the Lagrangian's projected gradient", lambda g: g.tolerance.gradient
    ),
    Gauge("feasibility", "Feasibility", "norm of the constraint violation", lambda g: g.tolerance.gradient),
    Gauge("curvature", "Curvature", "smallest on the cone that decides", lambda g: -g.tolerance.curvature),
    Gauge(
        "relative_stationarity", "Relative stationarity", "stationarity × max(1, |x|)", lambda g: g.tolerance.relative
    ),
)


def gauges(group: Group) -> str:
    """The gauges of a group, one card for each measure that has a tolerance."""
    cards = [_card(gauge, group, limit) for gauge in GAUGES if (limit := gauge.limit(group)) is not None]
    return tag("div", "".join(cards), class_="gauges")


def _card(gauge: Gauge, group: Group, limit: float) -> str:
    views = list(group.ended)
    readings = [view.reading(gauge.measure) for view in views]
    passed = [gauge.passes(reading, limit) for reading in readings]
    good, sign = all(passed), "≥" if gauge.measure == "curvature" else "≤"
    order = sorted(zip(readings, views, strict=True), key=lambda pair: _badness(gauge, pair[0]))
    worst, view = order[-1]
    of_all = "" if len(views) == 1 else f"<span>worst of {len(views)} runs: {text(_name(group, view))}</span>"
    interval = "" if not worst.interval else f"<span>between {number(worst.lower)} and {number(worst.upper)}</span>"
    count = (
        "passes" if good and len(views) == 1 else "fails" if len(views) == 1 else f"{sum(passed)} of {len(views)} pass"
    )
    badge = tag("span", f"{'✓' if good else '✗'} {count}", class_=f"badge {'good' if good else 'bad'}")
    value = tag("span", _value(worst), class_="value", data_value=repr(worst.value))
    head = f'<div class="title"><h4>{gauge.title}</h4>{badge}</div><p>{gauge.meaning}</p>'
    line = f'<p class="reading">{value}<span>{sign} {number(limit)}</span></p>'
    notes = "".join(f"<p>{note}</p>" for note in (of_all, interval, text(worst.how)) if note)
    drawing = _drawing(gauge, group, limit, readings)
    return tag("div", head + line + drawing + tag("div", notes, class_="notes"), class_="card gauge")


def _value(reading: Reading) -> str:
    return "nothing to test" if reading.value == math.inf else number(reading.value)


def _badness(gauge: Gauge, reading: Reading) -> float:
    bound = gauge.bound(reading)
    if math.isnan(bound):
        return math.inf
    return -bound if gauge.measure == "curvature" else bound


def _name(group: Group, view: View) -> str:
    label = next(series.label for series in group.series if view in series.views)
    return f"{label}, seed {view.seed}"


def _drawing(gauge: Gauge, group: Group, limit: float, readings: list[Reading]) -> str:
    scale = gauge.scale(readings, limit)
    series = [one for one in group.series if one.ended]
    left = LABELS if len(series) > 1 else 14
    bottom = 8 + ROW * len(series)

    def x(value: float) -> float:
        return left + (RIGHT - left) * float(scale.position(value))

    edge = x(limit)
    start, width = (edge, RIGHT - edge) if gauge.measure == "curvature" else (left, edge - left)
    parts = [f'<rect class="pass" x="{start:.1f}" y="4" width="{width:.1f}" height="{bottom - 4}"/>']
    for value in scale.ticks(5):
        parts.append(f'<path class="grid" d="M{x(value):.1f},4V{bottom}"/>')
        parts.append(f'<text class="x" x="{x(value):.1f}" y="{bottom + 14}">{tick(value)}</text>')
    parts.append(
        f'<path class="axis" d="M{left},{bottom}H{RIGHT}"/><path class="limit" d="M{edge:.1f},1V{bottom + 3}"/>'
    )
    parts += [_row(gauge, one, i, left, x) for i, one in enumerate(series)]
    title = f"{gauge.title} of {len(readings)} run(s) on an axis from {number(scale.low)} to {number(scale.high)}"
    return tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {bottom + 20}", role="img", aria_label=title)


def _row(gauge: Gauge, series: Series, index: int, left: int, x: Callable[[float], float]) -> str:
    y = 8 + ROW * (index + 0.5)
    name = series.label if len(series.label) <= 13 else series.label[:12] + "…"
    parts = [] if left < LABELS else [f'<text class="y" x="{left - 8}" y="{y + 4:.1f}">{text(name)}</text>']
    for view in series.ended:
        reading = view.reading(gauge.measure)
        if reading.interval:
            a, b = x(reading.lower), x(reading.upper)
            parts.append(f'<path class="whisker" d="M{a:.1f},{y - 4}v8M{a:.1f},{y}H{b:.1f}M{b:.1f},{y - 4}v8"/>')
        if not math.isnan(reading.value):
            parts.append(f'<use href="#m{series.look}" x="{x(reading.value):.1f}" y="{y:.1f}"/>')
    return tag("g", "".join(parts), class_=f"series c{series.look}", data_series=series.label)

"""The certificate as gauges: each measure that the tolerance speaks of, with its interval on a logarithmic axis.

A run passes where the bound that decides (the upper one, for curvature the lower one) lies in the shaded part; whether it does is
said by the certificate's own checks.
"""

import math
from collections.abc import Callable, Sequence

from ..certificate import Check, Measured
from ..certificate.certificate import MEASURES
from .grouping import Group, Series
from .markup import tag, text
from .numbers import number, tick
from .panels import FINE
from .run_view import RunView
from .scales import DECADES, Scale, log_scale, signed_scale

WIDTH, LABELS, RIGHT, ROW = 380, 92, 366, 21


def gauges(group: Group) -> str:
    """The gauges of a group, one card for each measure that has a tolerance."""
    measures = group.ended[0].checks
    return tag("div", "".join(_card(group, measure) for measure in measures), class_="gauges")


def _card(group: Group, measure: str) -> str:
    views = list(group.ended)
    checks = [view.checks[measure] for view in views]
    met = sum(check.met for check in checks)
    good, several = met == len(views), len(views) > 1
    worst, view = max(zip(checks, views, strict=True), key=lambda pair: _badness(pair[0]))
    label = next(series.label for series in group.series if view in series.views)
    notes = [
        f"<span>worst of {len(views)} runs: {text(label)}, seed {view.seed}</span>" if several else "",
        f"<span>between {number(worst.measured.lower)} and {number(worst.measured.upper)}</span>"
        if _has_interval(worst.measured)
        else "",
        text(_parts(view)) if measure == "feasibility" else "",
        text(worst.measured.how),
    ]
    count = f"{met} of {len(views)} pass" if several else "passes" if good else "fails"
    badge = tag("span", f"{'✓' if good else '✗'} {count}", class_=f"badge {'good' if good else 'bad'}")
    value = tag("span", _value(worst.measured), class_="value", data_value=repr(worst.measured.value))
    sign = "≥" if worst.sign == ">=" else "≤"
    head = f'<div class="title"><h4>{worst.name.capitalize()}</h4>{badge}</div><p>{text(MEASURES[measure])}</p>'
    line = f'<p class="reading">{value}<span>{sign} {number(worst.limit)}</span></p>'
    said = "".join(f"<p>{note}</p>" for note in notes if note)
    return tag(
        "div", head + line + _drawing(group, worst, checks) + tag("div", said, class_="notes"), class_="card gauge"
    )


def _parts(view: RunView) -> str:
    """What the paper's measure of feasibility is made of."""
    return "" if view.result is None else f"made of {view.result.certificate.parts}"


def _value(measured: Measured) -> str:
    return "nothing to test" if measured.value == math.inf else number(measured.value)


def _has_interval(measured: Measured) -> bool:
    """Whether the error is worth drawing."""
    width = measured.upper - measured.lower
    return math.isfinite(measured.value) and width > 1e-9 * max(1e-3, abs(measured.value))


def _badness(check: Check) -> float:
    bound = -check.bound if check.sign == ">=" else check.bound
    return math.inf if math.isnan(bound) else bound


def axis_of(check: Check, checks: Sequence[Check]) -> Scale:
    """An axis with room for the tolerance and all that was measured."""
    of = (check.measured for check in checks)
    numbers = [v for m in of for v in (m.value, m.lower, m.upper) if math.isfinite(v)]
    limit = abs(check.limit) or max((v for v in numbers if v > 0), default=1.0)
    if check.sign == ">=":
        return signed_scale(numbers, limit, limit / FINE)
    return log_scale([v for v in numbers if v >= 0], [limit, 10 * limit, limit / 10], floor=limit * 10.0**-DECADES)


def _drawing(group: Group, check: Check, checks: Sequence[Check]) -> str:
    scale = axis_of(check, checks)
    series = [one for one in group.series if one.ended]
    left = LABELS if len(series) > 1 else 14
    bottom = 8 + ROW * len(series)

    def x(value: float) -> float:
        return left + (RIGHT - left) * float(scale.position(value))

    edge = x(check.limit)
    start, width = (edge, RIGHT - edge) if check.sign == ">=" else (left, edge - left)
    parts = [f'<rect class="pass" x="{start:.1f}" y="4" width="{width:.1f}" height="{bottom - 4}"/>']
    for value in scale.ticks(5):
        parts.append(f'<path class="grid" d="M{x(value):.1f},4V{bottom}"/>')
        parts.append(f'<text class="x" x="{x(value):.1f}" y="{bottom + 14}">{tick(value)}</text>')
    parts.append(
        f'<path class="axis" d="M{left},{bottom}H{RIGHT}"/><path class="limit" d="M{edge:.1f},1V{bottom + 3}"/>'
    )
    parts += [_row(check.field, one, i, left, x) for i, one in enumerate(series)]
    ends = f"from {number(scale.low)} to {number(scale.high)}"
    title = f"{check.name.capitalize()} of {len(checks)} run(s) on an axis {ends}"
    return tag("svg", "".join(parts), viewBox=f"0 0 {WIDTH} {bottom + 20}", role="img", aria_label=title)


def _row(measure: str, series: Series, index: int, left: int, x: Callable[[float], float]) -> str:
    y = 8 + ROW * (index + 0.5)
    name = series.label if len(series.label) <= 13 else series.label[:12] + "…"
    parts = [] if left < LABELS else [f'<text class="y" x="{left - 8}" y="{y + 4:.1f}">{text(name)}</text>']
    for view in series.ended:
        measured = view.checks[measure].measured
        if _has_interval(measured):
            a, b = x(measured.lower), x(measured.upper)
            parts.append(f'<path class="whisker" d="M{a:.1f},{y - 4}v8M{a:.1f},{y}H{b:.1f}M{b:.1f},{y - 4}v8"/>')
        if not math.isnan(measured.value):
            parts.append(f'<use href="#m{series.look}" x="{x(measured.value):.1f}" y="{y:.1f}"/>')
    return tag("g", "".join(parts), class_=f"series c{series.look}", data_series=series.label)

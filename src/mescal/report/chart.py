"""A panel as SVG inside an HTML figure: drawn here, so that it is there without a script; the script adds values on hover."""

import math

import numpy as np

from .colours import LOOKS
from .markup import script_json, tag, text
from .numbers import axis_labels, number, tick, tick_labels
from .panels import AGAINST, Drawn, Panel
from .run_view import MARKERS, Curve, columns

WIDTH, HEIGHT = 380, 250
LEFT, RIGHT, TOP, BOTTOM = 56, 368, 10, 210
LABEL = 96  # the width of the tolerance's label


def chart(panel: Panel) -> str:
    """The figure of one panel with its data."""
    caption = tag("figcaption", f"<b>{text(panel.title)}</b> <span>{text(panel.meaning)}</span>")
    if not panel.drawn:
        return tag("figure", f'{caption}<p class="none">Not recorded.</p>', class_="panel")
    body = "".join([_zone(panel), _axes(panel), *(_series(panel, one) for one in panel.drawn), _limit(panel)])
    box = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img", "tabindex": "0", "aria_label": describe(panel)}
    return tag(
        "figure", caption + tag("svg", body, **box) + script_json(_points(panel), class_="points"), class_="panel"
    )


def describe(panel: Panel) -> str:
    """The panel in a sentence, for those who cannot see it."""
    last = ", ".join(f"{one.series.label} {number(float(one.band.median[-1]))}" for one in panel.drawn)
    limit = "" if panel.limit is None else f" The tolerance is {number(panel.limit)}."
    return f"{panel.title} against {AGAINST[panel.against]}. Last medians: {last}.{limit}"


def x_of(panel: Panel, work) -> np.ndarray:
    """Pixels of works."""
    return LEFT + (RIGHT - LEFT) * panel.work.position(work)


def y_of(panel: Panel, values) -> np.ndarray:
    """Pixels of values."""
    return BOTTOM - (BOTTOM - TOP) * panel.scale.position(values)


def _zone(panel: Panel) -> str:
    """The side of the tolerance on which a value passes."""
    if panel.limit is None:
        return ""
    edge = float(y_of(panel, panel.limit))
    y, height = (edge, BOTTOM - edge) if panel.below else (TOP, edge - TOP)
    return f'<rect class="pass" x="{LEFT}" y="{y:.1f}" width="{RIGHT - LEFT}" height="{height:.1f}"/>'


def _limit(panel: Panel) -> str:
    if panel.limit is None:
        return ""
    y = float(y_of(panel, panel.limit))
    line = f'<path class="limit" d="M{LEFT},{y:.1f}H{RIGHT}"/>'
    x, baseline = min(_corners(y), key=lambda corner: _crowd(panel, *corner))
    return line + f'<text class="limit-text" x="{x}" y="{baseline:.1f}">tolerance {tick(panel.limit)}</text>'


def _corners(y: float) -> list[tuple[float, float]]:
    """Where the label of a line may end: above or below it, at its right, its left or its middle."""
    ends = (RIGHT - 2, LEFT + LABEL + 4, (LEFT + RIGHT + LABEL) / 2)
    return [(x, baseline) for baseline in (y - 4, y + 12) if TOP + 8 < baseline < BOTTOM - 2 for x in ends]


def _crowd(panel: Panel, x: float, baseline: float) -> int:
    """How many recorded points, and columns of drawn lines, a label would cover."""
    curves = [curve for one in panel.drawn for curve in one.seeds]
    grid = np.geomspace(panel.work.low, panel.work.high, 100)
    curves += [Curve(grid, Curve(one.band.work, one.band.median).at(grid)).finite() for one in panel.drawn if one.moves]
    points = [(x_of(panel, curve.work), y_of(panel, curve.values)) for curve in curves]
    inside = ((np.abs(px - x + LABEL / 2) < LABEL / 2 + 6) & (np.abs(py - baseline + 4) < 13) for px, py in points)
    return sum(int(hits.sum()) for hits in inside)


def _axes(panel: Panel) -> str:
    parts = []
    values = panel.scale.ticks(5)
    for value, label in zip(values, tick_labels(values), strict=True):
        y = float(y_of(panel, value))
        parts.append(f'<path class="grid" d="M{LEFT},{y:.1f}H{RIGHT}"/>')
        parts.append(f'<text class="y" x="{LEFT - 6}" y="{y + 3.5:.1f}">{label}</text>')
    works = panel.work.ticks(5)
    for value, label in zip(works, axis_labels(panel.against, works), strict=True):
        x = float(x_of(panel, value))
        parts.append(f'<path class="grid" d="M{x:.1f},{TOP}V{BOTTOM}"/>')
        parts.append(f'<text class="x" x="{x:.1f}" y="{BOTTOM + 15}">{label}</text>')
    parts.append(f'<path class="axis" d="M{LEFT},{TOP}V{BOTTOM}H{RIGHT}"/>')
    parts.append(f'<text class="x name" x="{(LEFT + RIGHT) / 2}" y="{HEIGHT - 8}">{AGAINST[panel.against]}</text>')
    return "".join(parts)


def _series(panel: Panel, one: Drawn) -> str:
    look, parts = one.series.look, []
    if one.moves:
        x = x_of(panel, one.band.work)
        if len(one.seeds) > 1:
            low, high = y_of(panel, one.band.low), y_of(panel, one.band.high)
            back = steps(x, low, reverse=True).replace("M", "L", 1)
            parts.append(f'<path class="band" d="{steps(x, high)}{back}z"/>')
        dash = ",".join(f"{1.8 * part:g}" for part in LOOKS[look].dash)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        parts.append(f'<path class="line"{dashed} d="{steps(x, y_of(panel, one.band.median))}"/>')
    for curve in one.seeds:
        kept = columns(curve.work, MARKERS)
        for x, y in zip(x_of(panel, curve.work[kept]), y_of(panel, curve.values[kept]), strict=True):
            parts.append(f'<use href="#m{look}" x="{x:.1f}" y="{y:.1f}"/>')
    return tag("g", "".join(parts), class_=f"series c{look}", data_series=one.series.label)


def steps(x: np.ndarray, y: np.ndarray, reverse: bool = False) -> str:
    """The path of a step function: a value holds until the next one."""
    path = [f"{x[0]:.1f},{y[0]:.1f}"]
    for i in range(1, len(x)):
        path += [f"{x[i]:.1f},{y[i - 1]:.1f}", f"{x[i]:.1f},{y[i]:.1f}"]
    return "M" + "L".join(reversed(path) if reverse else path)


def _points(panel: Panel) -> dict:
    """What the script needs: the work axis, and for each series works, medians, ranges and pixels."""
    series = []
    for one in panel.drawn:
        b = one.band
        pixels = y_of(panel, b.median)
        rows = zip(b.work, b.median, b.low, b.high, pixels, strict=True)
        points = [[*(float(f"{v:.5g}") for v in row[:4]), round(float(row[4]), 1)] for row in rows]
        series.append({"name": one.series.label, "look": one.series.look, "seeds": b.seeds, "points": points})
    ends = [math.log(panel.work.low), math.log(panel.work.high)]
    box = {"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM, "width": WIDTH}
    return {"title": panel.title, "unit": panel.against, "work": ends, "box": box, "series": series}

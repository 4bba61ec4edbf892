"""Pictures of single records, by matplotlib: the curves of a result, a certificate against a tolerance."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificate import Certificate, Tolerance
from ..certificate.tolerance import as_tolerance
from ..errors import InputError
from ..experiments.store import StoredRun
from ..problem.constraint import held
from ..run import Result
from .colours import LOOKS
from .figures import FONT, INK, draw, require_matplotlib
from .gauges import axis_of
from .grouping import arrange
from .numbers import tick_labels
from .panels import AGAINST

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 16  # rows of constraints in a picture
GOOD, BAD, PASS = LOOKS[2].colour, LOOKS[1].colour, "#d8efe6"


def plot_result(result: Result, against: str = "work") -> "Figure":
    """Minimum eigenvalue, stationarity and feasibility over the run, against work or seconds, as the figures of stored runs."""
    require_matplotlib()
    from matplotlib import rc_context

    if against not in AGAINST:
        raise InputError(f"against={against!r}", f"one of {list(AGAINST)}", "leave it out for 'work'")
    if not len(result.history):
        raise InputError("the result has no history", "a run of at least one outer iteration", "plot its certificate")
    asked = {"problem": "this run", "solver": result.solver, "seed": result.seed}
    with rc_context(FONT):
        return draw(arrange([StoredRun(Path("."), asked, result)]), against)


def plot_certificate(found: Certificate, tol: float | Tolerance) -> "Figure":
    """Each measure with its interval, shaded where it passes; below, the constraints in the terms in which they were stated."""
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    tolerance = as_tolerance(tol)
    checks, rows = found.checks(tolerance), list(held(found.constraints, found.terms))
    rows = sorted(rows, key=lambda row: -row.excess)[:MOST]
    heights = [1.0] * len(checks) + ([0.7 + 0.34 * len(rows)] if rows else [])
    with rc_context(FONT):
        figure = Figure(figsize=(7.0, 0.5 + 0.72 * sum(heights)), layout="constrained")
        axes = np.atleast_1d(figure.subplots(len(heights), 1, height_ratios=heights))
        for ax, check in zip(axes, checks, strict=False):
            _gauge(ax, check)
        if rows:
            _room(axes[-1], rows, tolerance.violation)
        verdict = "meets" if found.passes(tolerance) else "does not meet"
        figure.suptitle(f"The certificate {verdict} the tolerance {tolerance}", fontsize=10.5, fontweight="bold")
    return figure


def _gauge(ax: "Axes", check: Any):
    scale, measured = axis_of(check, [check]), check.measured
    edge = float(scale.position(check.limit))
    ax.axvspan(*((edge, 1) if check.sign == ">=" else (0, edge)), color=PASS, linewidth=0)
    ax.axvline(edge, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    colour = GOOD if check.met else BAD
    low, high = (float(scale.position(v)) if np.isfinite(v) else float(v > 0) for v in (measured.lower, measured.upper))
    ax.plot([low, high], [0, 0], color=colour, linewidth=2, solid_capstyle="butt")
    if np.isfinite(measured.value):
        marker = {
            "marker": "o" if check.met else "X",
            "markersize": 7,
            "markerfacecolor": colour,
            "markeredgecolor": "white",
        }
        ax.plot([float(scale.position(measured.value))], [0], **marker, clip_on=False)
    ticks = scale.ticks(6)
    ax.set_xlim(0, 1)
    ax.set_ylim(-1, 1)
    ax.set_xticks([float(scale.position(v)) for v in ticks], tick_labels(ticks))
    ax.set_yticks([])
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(length=2.5, width=0.6, labelsize=7.5)
    ax.set_title(f"{'✓' if check.met else '✗'} {check.sentence}", loc="left", fontsize=8.8, fontweight="bold", pad=3)


def _room(ax: "Axes", rows: list, allowed: float):
    """How far every constraint is inside of its bound (to the right), or beyond it."""
    places = np.arange(len(rows))[::-1]
    rooms = np.array([row.room for row in rows])
    colours = [BAD if row.violated(allowed) else GOOD for row in rows]
    ax.barh(places, rooms, color=colours, height=0.55)
    ax.axvline(0, color=INK, linewidth=0.9)
    ax.set_yticks(places, [row.name if len(row.name) <= 26 else f"{row.name[:25]}…" for row in rows])
    widest = float(np.abs(rooms[np.isfinite(rooms)]).max(initial=0.0)) or 1.0
    ax.set_xlim(min(0.0, float(rooms.min())) - 0.08 * widest, max(0.0, float(rooms.max())) + 0.9 * widest)
    for place, row in zip(places, rows, strict=True):
        ax.annotate(
            row.words(allowed),
            (max(row.room, 0.0), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
        )
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(length=2.5, width=0.6, labelsize=8)
    ax.set_title("Constraints: room to their bounds", loc="left", fontsize=8.8, fontweight="bold", pad=3)

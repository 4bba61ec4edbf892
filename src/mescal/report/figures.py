"""The paper's figures from stored runs: one figure per kind of problem and tolerance, as PNG and SVG.

Rows are problems; columns are the minimum eigenvalue, stationarity and feasibility, all against total work. The eigenvalue
can be of either sign, so its axis is linear around zero, up to a hundredth of the tolerance, and logarithmic outside.
"""

import io
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..distribution import install
from ..errors import InputError
from ..experiments.store import StoredRun
from ..files import as_path, refuse_foreign, write_whole
from .colours import LOOKS
from .grouping import Group, arrange
from .numbers import axis_labels, tick_labels
from .panels import AGAINST, FINE, Panel, markers, panels, seeds, source
from .run_view import MARKERS, MEASURES, columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, HEAD, FOOT = 9.0, 2.1, 0.42, 0.74  # inches
DPI = 160
FONT: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.linewidth": 0.7,
    "svg.fonttype": "none",  # text stays text: small files whose words can be found
    "svg.hashsalt": "mescal",  # the same runs give the same bytes
}
# What says in a file of each kind that mescal drew it: files that do not are not replaced.
MARKS = {"svg": b"<dc:title>mescal</dc:title>", "png": b"Software\0mescal", "pdf": b"/Creator (mescal)"}
MEANING = {
    "work": "Total work: gradients + 2 Hessian-vector products, per sample.",
    "seconds": "Seconds since the start of the run, compiling included.",
}
INK, FAINT = "#222222", "#8a8a8a"


def write_figures(
    runs: Sequence[StoredRun], folder: Path | str, *, formats: Iterable[str] = ("png", "svg"), prefix: str = ""
) -> list[Path]:
    """Draw the figures into a folder.

    **Arguments:**

    - `runs`: stored runs; those that have not ended are left out.
    - `folder`: figures that were drawn there before are replaced, and no other file.
    - `formats`: endings of files that matplotlib can write.
    - `prefix`: what the files' names begin with; the rest is the kind of problem and, if there are several, the tolerance.

    **Returns:** the files written, in the order of the runs.
    """
    require_matplotlib()
    from matplotlib import rc_context

    figures: dict[tuple[str, str], list[Group]] = {}
    for group in arrange(runs):
        if panels(group):
            figures.setdefault((group.kind, group.tolerance_text), []).append(group)
    if not figures:
        raise InputError(
            "none of the runs has a history", "runs that have ended", "let them end, or `mescal resume` them"
        )
    kinds = [kind for kind, _ in figures]
    written = []
    for (kind, tolerance), groups in figures.items():
        name = _slug(prefix + kind + (f"-tol-{tolerance}" if kinds.count(kind) > 1 else ""))
        with rc_context(FONT):
            figure = draw(groups)
            for ending in formats:
                path = as_path(folder, "folder") / f"{name}.{ending}"
                refuse_foreign(path, MARKS.get(ending, b"mescal"))
                write_whole(path, lambda file, figure=figure, ending=ending: _save(figure, file, ending))
                written.append(path)
    return written


def draw(groups: Sequence[Group], against: str = "work") -> "Figure":
    """One figure: a row per group."""
    from matplotlib.figure import Figure

    height = HEAD + ROW * len(groups) + FOOT
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.subplots(len(groups), len(MEASURES), squeeze=False)
    for row, group in zip(axes, groups, strict=True):
        for ax, panel in zip(row, panels(group, against=against), strict=True):
            _draw_panel(ax, panel)
        name = group.label.removeprefix(f"{group.kind}/")
        row[0].set_ylabel("\n".join(textwrap.wrap(name, 26)[:3]), fontsize=9.5, fontweight="bold", labelpad=6)
    for ax, panel in zip(axes[0], panels(groups[0]), strict=True):
        ax.set_title(f"{panel.title}\n", fontsize=10, fontweight="bold", pad=3)
        ax.text(0.5, 1.03, panel.meaning, transform=ax.transAxes, ha="center", fontsize=7.5, color="#555555")
    for ax in axes[-1]:
        ax.set_xlabel(AGAINST[against], fontsize=8)
    _legend(figure, groups, height)
    figure.text(0.5, 0.07 / height, caption(groups, against), ha="center", va="bottom", fontsize=7.2, color="#444444")
    figure.subplots_adjust(
        left=0.085, right=0.99, top=1 - (HEAD + 0.36) / height, bottom=(FOOT + 0.12) / height, wspace=0.24, hspace=0.3
    )
    return figure


def caption(groups: Sequence[Group], against: str = "work") -> str:
    """What lines, bands, markers and dashes are, over how many seeds, and who measured."""
    drawn = [panel for group in groups for panel in panels(group)]
    lines = any(one.moves and len(one.seeds) > 1 for panel in drawn for one in panel.drawn)
    edge = any(panel.clipped for panel in drawn)
    sentences = [
        MEANING[against],
        f"{markers(groups)} ({seeds(groups)}, {source(groups)}).",
        "Line: median; band: smallest to largest." if lines else "",
        f"Dashed: tolerance {groups[0].tolerance_text}.",
        f"The eigenvalue's axis is linear up to 1/{FINE:g} of the tolerance, logarithmic outside.",
        "Values below a logarithmic axis are drawn at its lower end." if edge else "",
    ]
    return textwrap.fill(" ".join(filter(None, sentences)), 150)


def _draw_panel(ax: "Axes", panel: Panel):
    """Curves in the axis' own coordinates, so that page and figure cannot differ."""
    place = panel.scale.position
    for one in panel.drawn:
        look, b = LOOKS[one.series.look], one.band
        if one.moves:
            style: Any = "-" if not look.dash else (0, look.dash)
            ax.fill_between(
                b.work, place(b.low), place(b.high), step="post", color=look.colour, alpha=0.16, linewidth=0
            )
            ax.plot(b.work, place(b.median), color=look.colour, linewidth=1.4, linestyle=style, drawstyle="steps-post")
        points = [(curve.work[i], curve.values[i]) for curve in one.seeds for i in columns(curve.work, MARKERS)]
        work, values = np.asarray(points).T
        ax.plot(
            work,
            place(values),
            linestyle="none",
            marker=look.marker,
            markersize=3.4,
            markeredgewidth=0.8,
            markerfacecolor="none" if look.marker == "x" else "white",
            markeredgecolor=look.colour,
            clip_on=False,
        )
    if panel.limit is not None:
        ax.axhline(float(place(panel.limit)), color=INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    ax.set_xscale("log")
    ax.set_xlim(panel.work.low, panel.work.high)
    ax.set_ylim(0, 1)
    ticks = panel.work.ticks(5)
    ax.set_xticks(ticks, axis_labels(panel.against, ticks))
    ax.set_xticks([], minor=True)
    ticks = panel.scale.ticks()
    ax.set_yticks([float(place(v)) for v in ticks], tick_labels(ticks))
    ax.tick_params(length=2.5, width=0.6, labelsize=7.5)
    ax.grid(True, color="#e4e4e4", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if not panel.drawn:
        ax.text(0.5, 0.5, "not recorded", transform=ax.transAxes, ha="center", color=FAINT)


def _legend(figure: "Figure", groups: Sequence[Group], height: float):
    from matplotlib.lines import Line2D

    shown = {series.label: LOOKS[series.look] for group in groups for series in group.series if series.ended}
    handles = [
        Line2D(
            [],
            [],
            color=look.colour,
            linestyle=(0, look.dash) if look.dash else "-",  # pyright: ignore[reportArgumentType]
            marker=look.marker,
            markersize=4.5,
            markerfacecolor="none" if look.marker == "x" else "white",
            linewidth=1.4,
            label=label,
        )
        for label, look in shown.items()
    ]
    top = 1 - 0.04 / height
    figure.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, top),
        ncols=4,
        frameon=False,
        fontsize=9,
        handlelength=3,
    )


def _save(figure: "Figure", file: Any, ending: str):
    if ending == "png":
        from PIL import Image, PngImagePlugin

        pixels = io.BytesIO()
        figure.savefig(pixels, format="png", dpi=DPI, facecolor="white")
        # A palette shows the same picture in a third of the bytes.
        small = Image.open(pixels).convert("RGB").quantize(256, dither=Image.Dither.NONE)
        told = PngImagePlugin.PngInfo()
        told.add_text("Software", "mescal")
        small.save(file, "png", optimize=True, pnginfo=told)
        return
    metadata = {"svg": {"Date": None, "Creator": "mescal"}, "pdf": {"CreationDate": None, "Creator": "mescal"}}
    figure.savefig(file, format=ending, metadata=metadata.get(ending), facecolor="white")


def _slug(text: str) -> str:
    return re.sub(r"[^\w.+-]+", "-", text).strip("-.") or "figure"


def require_matplotlib():
    """Raise where matplotlib is not there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InputError(
            "matplotlib is not installed", "the extra `plot`", f"{install('plot')}; the HTML page needs nothing"
        ) from None

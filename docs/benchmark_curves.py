"""A directive that draws the reproduction of the paper's figures from its stored benchmark, as SVG inside the page.

`{curves} NAME` has a row per problem: error of curvature, stationarity and feasibility against work; paper modes are solid, the
practical solvers of the same names dashed. `:what: frequencies` has a panel per problem: work against steps between two searches.
"""

import io
import json
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from docutils import nodes
from docutils.parsers.rst import Directive, directives

from mescal.report.colours import FIXED, LOOKS

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
MEASURES = {"curvature error": 2, "stationarity": 3, "feasibility": 4}  # and their columns
LEAST = 1e-6  # of an error on a logarithmic axis
TEXTS = {
    "curves": "Errors against work, of the first seed; paper modes solid, practical solvers dashed; a dot where an outer "
    "iteration begins. The dotted line is 0.01; errors below 1e-6, none included, are drawn there.",
    "frequencies": "Median work to 0.01 against steps between two searches, in paper mode; hollow where not all runs were "
    "certified.",
}


def _look(solver: str) -> Any:
    return LOOKS[FIXED[solver.removesuffix("-paper")]]


def draw_curves(settings: dict[str, Any], axes: Any):
    """Three panels for every problem."""
    for row, problem in zip(axes, settings["problems"], strict=True):
        for ax, (measure, column) in zip(row, MEASURES.items(), strict=True):
            for label, curve in settings["curves"].items():
                name, _, solver = label.partition(", ")
                if name == problem:
                    sign = -1 if measure == "curvature error" else 1
                    errors = [max(LEAST, sign * (point[column] or 0.0)) for point in curve]
                    line = "-" if solver.endswith("-paper") else "--"
                    begins = [i for i, point in enumerate(curve) if i == 0 or point[0] != curve[i - 1][0]]
                    more = {"color": _look(solver).colour, "label": solver, "linewidth": 1.1}
                    ax.plot([p[1] for p in curve], errors, line, marker="o", markersize=2.5, markevery=begins, **more)
            ax.axhline(settings["tol"], color="grey", linestyle=":", linewidth=0.8)
            ax.set(xscale="log", yscale="log", xlabel="work", title=f"{problem}: {measure}")


def draw_frequencies(rows: list[dict[str, Any]], axes: Any):
    """A panel for every problem."""
    for ax, problem in zip(axes.ravel(), dict.fromkeys(row["problem"] for row in rows), strict=False):
        for solver in dict.fromkeys(row["solver"] for row in rows):
            mine = [row for row in rows if (row["problem"], row["solver"]) == (problem, solver)]
            mine.sort(key=lambda row: row["steps_between_searches"])
            look, x, y = _look(solver), [row["steps_between_searches"] for row in mine], [row["work"] for row in mine]
            ax.plot(x, y, look.marker + "-", color=look.colour, label=solver, linewidth=1.1, markersize=5)
            some = [row["certified"].split("/")[0] != row["certified"].split("/")[1] for row in mine]
            hollow = [np.where(some, values, np.nan) for values in (x, y)]
            ax.plot(*hollow, look.marker, color=look.colour, markerfacecolor="white", markersize=5)
        ax.set(xscale="log", yscale="log", xlabel="steps between two searches", ylabel="work", title=problem)


def place_ticks(axis: Any, least: float, most: float):
    """Labels of a logarithmic axis: powers of ten, and 2 and 5 times these where there would be few."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1,) if most > 25 * least else (1, 2, 5)))
    axis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf)))
    axis.set_minor_formatter(NullFormatter())


def draw(result: dict[str, Any], what: str) -> str:
    """The figure as SVG."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings, rows = result["settings"], result["tables"].get("search frequencies", [])
    count = len(settings["problems"])
    shape = (count, 3) if what == "curves" else (-(-count // 2), min(count, 2))
    with rc_context({"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "mescal"}):
        figure = Figure(figsize=(9.5, 2.4 * shape[0] + 0.6), layout="constrained")
        axes = figure.subplots(*shape, squeeze=False)
        draw_curves(settings, axes) if what == "curves" else draw_frequencies(rows, axes)
        for ax in axes.ravel():
            ax.grid(alpha=0.25, linewidth=0.5)
            place_ticks(ax.xaxis, *ax.get_xlim())
            place_ticks(ax.yaxis, *ax.get_ylim())
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


class Curves(Directive):
    """`{curves} NAME` draws what benchmarks/results/NAME.json keeps; `:what:` is `curves` or `frequencies`."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"what": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """The figure and a sentence that says what it shows."""
        path = RESULTS / f"{self.arguments[0]}.json"
        self.state.document.settings.record_dependencies.add(str(path))
        what = self.options.get("what", "curves")
        if not path.exists():
            return []
        text = TEXTS[what]
        figure = draw(json.loads(path.read_text()), what)
        html = f'<figure role="img" aria-label="{text}">{figure}<figcaption>{text}</figcaption></figure>'
        return [nodes.raw("", html, format="html")]


def setup(app) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("curves", Curves)
    return {"parallel_read_safe": True}

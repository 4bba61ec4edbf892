"""A directive that draws the reproduction of the paper's figures from its stored benchmark, as SVG inside the page.

`{curves} NAME` has a row per problem: error of curvature, stationarity and feasibility against work; paper modes are solid, the
practical solvers of the same names dashed. `:what: frequencies` has a panel per problem: work against steps between two searches.
"""

import io
import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

from mescal.report.colours import FIXED, LOOKS

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
MEASURES = {"curvature error": 2, "stationarity": 3, "feasibility": 4}  # and their columns
LEAST = 1e-6  # of an error on a logarithmic axis
TEXTS = {
    "curves": "Errors against work, of the first seed; paper modes solid, practical solvers dashed; the dotted line is 0.01.",
    "frequencies": "Median work to 0.01 against steps between two searches, in paper mode; hollow where runs were not certified.",
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
                    ax.plot(
                        [p[1] for p in curve], errors, line, color=_look(solver).colour, label=solver, linewidth=1.1
                    )
            ax.axhline(settings["tol"], color="grey", linestyle=":", linewidth=0.8)
            ax.set(xscale="log", yscale="log", xlabel="work", title=f"{problem}: {measure}")


def draw_frequencies(rows: list[dict[str, Any]], axes: Any):
    """A panel for every problem."""
    for ax, problem in zip(axes.ravel(), dict.fromkeys(row["problem"] for row in rows), strict=False):
        for solver in dict.fromkeys(row["solver"] for row in rows):
            mine = [row for row in rows if (row["problem"], row["solver"]) == (problem, solver)]
            mine.sort(key=lambda row: row["steps_between_searches"])
            look, x, y = _look(solver), [row["steps_between_searches"] for row in mine], [row["work"] for row in mine]
            ax.plot(x, y, color=look.colour, label=solver, linewidth=1.1)
            for row in mine:
                certified, runs = row["certified"].split("/")
                fill = look.colour if certified == runs else "none"
                ax.plot(
                    row["steps_between_searches"], row["work"], look.marker, color=look.colour, markerfacecolor=fill
                )
        ax.set(xscale="log", yscale="log", xlabel="steps between two searches", ylabel="work", title=problem)


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

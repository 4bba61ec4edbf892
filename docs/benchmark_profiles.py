"""A directive that draws the data and performance profiles of a stored benchmark, as SVG inside the page."""

import io
import json
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

from mescal.report.colours import LOOKS

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
AXES = {
    "data, work": "evaluations per sample",
    "performance, work": "evaluations / least of all methods",
    "data, seconds": "seconds, compiling apart",
    "performance, seconds": "seconds / least of all methods",
}
STYLES = {"ours": ("-", 1.8), "baseline": ("--", 1.2), "peer": (":", 1.4)}


def appearances(kinds: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Colour, line and marker of every method: no two are alike; the line says its kind, and beyond six of one markers move on."""
    found, of = {}, len(LOOKS)
    for kind, (line, width) in STYLES.items():
        for i, method in enumerate(method for method, its in kinds.items() if its == kind):
            marker = LOOKS[(i + i // of) % of].marker
            found[method] = {"color": LOOKS[i % of].colour, "linestyle": line, "linewidth": width, "marker": marker}
    return found


def draw(profiles: dict[str, dict[str, list[list[float]]]], kinds: dict[str, str]) -> str:
    """One panel per profile: the share certified, by method; ours are solid, baselines dashed, peers dotted."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    looks = appearances(kinds)
    with rc_context({"font.size": 8.5, "svg.fonttype": "none", "svg.hashsalt": "mescal"}):
        figure = Figure(figsize=(9.0, 3.0 * -(-len(profiles) // 2) + 0.9), layout="constrained")
        axes = figure.subplots(-(-len(profiles) // 2), 2, squeeze=False)
        for ax, (title, curves) in zip(axes.ravel(), profiles.items(), strict=False):
            last = max((steps[-1][0] for steps in curves.values() if steps), default=1.0)
            for method, steps in curves.items():
                x = [point[0] for point in steps] + [2 * last]
                y = [point[1] for point in steps] + [steps[-1][1] if steps else 0.0]
                marks = range(0, len(steps), 4)
                ax.step(x, y, where="post", markersize=3, markevery=marks, **looks[method])
            ax.set(xscale="log", ylim=(-0.02, 1.02), xlabel=AXES.get(title, title), ylabel="share certified")
            ax.grid(alpha=0.25, linewidth=0.5)
        handles = [
            Line2D([], [], label=method, markersize=4, **looks[method]) for method in next(iter(profiles.values()))
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, handlelength=3)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


class Profiles(Directive):
    """`{profiles} NAME` draws what benchmarks/results/NAME.json keeps under `profiles`; `:only:` picks by a word of the title."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"only": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """The figure and a sentence that says what it shows."""
        path = RESULTS / f"{self.arguments[0]}.json"
        self.state.document.settings.record_dependencies.add(str(path))
        if not path.exists():
            return []
        settings = json.loads(path.read_text())["settings"]
        word, kinds = self.options.get("only", ""), settings["kinds"]
        profiles = {title: curves for title, curves in settings["profiles"].items() if word in title}
        count = len(settings["profiled_problems"])
        text = (
            f"Share of {count} problems certified by each method, "
            "left within a cost, right within a multiple of the least cost of any method."
        )
        if not any(curve for curves in profiles.values() for curve in curves.values()):
            return [nodes.paragraph(text="No problem was run by every method yet.")]
        figure = draw(profiles, kinds)
        html = f'<figure role="img" aria-label="{text}">{figure}<figcaption>{text}</figcaption></figure>'
        return [nodes.raw("", html, format="html")]


def setup(app) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("profiles", Profiles)
    return {"parallel_read_safe": True}

"""The HTML page of a run or a sweep: one file that needs nothing else and asks no network for anything.

The curves are SVG drawn here and a script of about two hundred lines that adds values on hover, the hiding of solvers and
sorting. A plotting library would weigh 1 to 4 MB in every report and show nothing without a script; this page weighs tens of
kilobytes, can be read in a mail viewer that blocks scripts, prints as it stands, and its coordinates can be tested.
"""

import string
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from ..errors import InputError
from ..experiments.store import PAGE, StoredRun
from ..files import as_path, refuse_foreign, write_text
from .chart import chart
from .colours import LOOKS
from .details import facts, settings, size
from .gauges import gauges
from .grouping import Group, arrange
from .markup import tag, text
from .panels import MEASURES, markers, panels, seeds, source
from .tables import comparison, constraints, dot, every_run
from .verdict import headline, verdict
from .words import explain, promise

MOST_OPEN = 12  # runs up to which the table of every run is open from the start


def write_report(
    runs: Sequence[StoredRun], path: Path | str, left_out: Mapping[Path, InputError] | None = None
) -> Path:
    """Write the page of some runs into a file.

    **Arguments:**

    - `runs`: stored runs, of one problem or many; runs that have not ended are named and not counted as certified.
    - `path`: the file to write; an older page is replaced, as a whole or not at all, and no other file.
    - `left_out`: folders that could not be read, and why: the page lists them.
    """
    file = as_path(path, "path")
    refuse_foreign(file, PAGE)
    write_text(file, render(runs, left_out or {}))
    return file


def render(runs: Sequence[StoredRun], left_out: Mapping[Path, InputError] | None = None) -> str:
    """The page as text."""
    groups = arrange(runs)
    several = sum(len(group.views) for group in groups) > 1
    parts = [_header(groups), verdict(groups)]
    if left_out:
        parts.append(_section("Left out", _damaged(left_out)))
    if several:
        parts.append(_section("Comparison", comparison(groups)))
    else:
        parts.append(facts(groups[0]))
    parts += [_group(index, group, len(groups) > 1) for index, group in enumerate(groups)]
    if several:
        few = sum(len(group.views) for group in groups) <= MOST_OPEN
        table = f"<summary><h2>Every run</h2></summary>{every_run(groups)}"
        parts.append(tag("details", table, open="" if few else None))
    parts.append(_section("Settings and versions", settings(groups)))
    page = string.Template(asset("page.html"))
    return page.substitute(
        title=text(f"{_title(groups)}: {headline(groups)}"),
        style=asset("page.css").replace("/* looks */", _colours()),
        markers="".join(f'<path id="m{i}" d="{look.path}"/>' for i, look in enumerate(LOOKS)),
        body="\n".join(parts),
        script=asset("page.js"),
    )


@cache
def asset(name: str) -> str:
    """A file of this package."""
    return (resources.files(__package__ or "mescal.report") / "assets" / name).read_text(encoding="utf-8")


def _colours() -> str:
    """The looks as CSS: light, and dark for those who ask for it."""
    light = "".join(f"--c{i}:{look.colour};" for i, look in enumerate(LOOKS))
    dark = "".join(f"--c{i}:{look.dark};" for i, look in enumerate(LOOKS))
    classes = "".join(f".c{i}{{color:var(--c{i})}}" for i in range(len(LOOKS)))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}{classes}"


def _title(groups: Sequence[Group]) -> str:
    problems = list(dict.fromkeys(group.problem for group in groups))
    return problems[0] if len(problems) == 1 else f"{len(problems)} problems"


def _header(groups: Sequence[Group]) -> str:
    views = [view for group in groups for view in group.views]
    view = views[0]
    if len(views) == 1:
        line = f"{view.solver}, seed {view.seed}, tolerance {groups[0].tolerance_text}"
    else:
        solvers = dict.fromkeys(series.label for group in groups for series in group.series)
        line = (
            f"{len(views)} runs: {', '.join(solvers)}; {seeds(groups) if any(v.ended for v in views) else 'none ended'}"
        )
    described = view.about.description if view.about is not None and len({v.problem for v in views}) == 1 else ""
    sizes = list(dict.fromkeys(size(v) for v in views if v.about is not None and len({u.problem for u in views}) == 1))
    about = f"<p>{text(described)}</p>" if described else ""
    about += "".join(f"<p>{text(told)}</p>" for told in sizes if told)
    return f'<header><p class="eyebrow">mescal report</p><h1>{text(_title(groups))}</h1>{about}<p>{text(line)}</p></header>'


def _section(title: str, content: str) -> str:
    return tag("section", f"<h2>{text(title)}</h2>{content}")


def _damaged(left_out: Mapping[Path, InputError]) -> str:
    """Which folders could not be read, what was found there, and what to do."""
    items = "".join(tag("li", f"{text(path)}: {text(error)}") for path, error in left_out.items())
    return f"<p>These runs could not be read, and nothing on this page is about them.</p>{tag('ul', items)}"


def _group(index: int, group: Group, several: bool) -> str:
    """Certificate, curves and constraints of one problem at one tolerance."""
    title = f"<h2>{text(group.label)} <small>tolerance {text(group.tolerance_text)}</small></h2>" if several else ""
    if not group.ended:
        return tag("section", f"{title or '<h2>Curves</h2>'}<p>No run has ended yet.</p>", id=f"group-{index}")
    level = "h3" if several else "h2"
    shown = panels(group, (*MEASURES, "objective", "multipliers"))
    shown = [panel for panel in shown if panel.drawn or panel.measure in MEASURES]
    charts = "".join(chart(panel) for panel in shown) + _how_to_read(group, any(panel.clipped for panel in shown))
    timed = [panel for panel in panels(group, (*MEASURES, "objective", "multipliers"), "seconds") if panel.drawn]
    clock = tag("div", "".join(chart(panel) for panel in timed), class_="panels")
    content = (
        f"{title}<{level}>Certificate</{level}>{_meaning(group)}{gauges(group)}"
        f"<{level}>Curves</{level}>{_legend(group)}{tag('div', charts, class_='panels')}"
        f"<details><summary>The same against seconds, compiling included</summary>{clock}</details>"
        f"<{level}>Constraints and multipliers</{level}>{constraints(group)}"
    )
    return tag("section", content, id=f"group-{index}", class_="group")


def _meaning(group: Group) -> str:
    """What the certificate of a single run says, in a sentence, and the explanation for a reviewer."""
    results = [view.result for view in group.ended if view.result is not None]
    if len(results) != 1:
        return ""
    told = "".join(tag("p", text(part)) for part in explain(results[0]).split("\n\n"))
    folded = tag("details", f"<summary>For a reviewer</summary>{told}", class_="explained")
    return tag("p", text(promise(results[0].certificate))) + folded


def _legend(group: Group) -> str:
    """Buttons that hide and show a series."""
    shown = [series for series in group.series if series.ended]
    buttons = (
        tag("button", dot(series), type="button", aria_pressed="true", data_series=series.label) for series in shown
    )
    return tag("div", "".join(buttons), class_="legend", role="group", aria_label="Solvers shown")


def _how_to_read(group: Group, clipped: bool) -> str:
    lines = any(one.moves and len(one.seeds) > 1 for panel in panels(group) for one in panel.drawn)
    sentences = [
        f"Values are {source([group])}, at the end of each outer iteration.",
        f"Lines are medians over {seeds([group])}, bands reach from the smallest to the largest; "
        "a run that has ended keeps its last value."
        if lines
        else "",
        f"{markers([group])}.",
        "Shaded is what passes the tolerance. The eigenvalue's axis is linear near zero and logarithmic outside.",
        "Values below an axis are drawn at its lower end." if clipped else "",
        "Total work counts gradients and twice the Hessian-vector products, per sample.",
    ]
    return tag(
        "div", f"<h4>How to read this</h4><p>{' '.join(filter(None, sentences))}</p>", class_="panel reading-help"
    )

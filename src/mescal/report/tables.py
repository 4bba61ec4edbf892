"""Tables of a report: solvers compared by medians over seeds, every run by itself, constraints with their multipliers.

Medians are taken over certified runs alone, as `mescal compare` does: what a run without a certificate spent says nothing
about what it needs. A cell carries its number unrounded in `data-value`; the page sorts by that.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..certificate.certificate import MEASURES
from ..experiments.table import METRICS, Metric, Range
from .grouping import Group, Series
from .markup import tag, text
from .numbers import count, number, seconds, work_tick
from .run_view import RunView

MOST_ROWS = 12  # of all constraints; of more, those that are violated and those with the largest multipliers are listed
MOST_LETTERS = 20  # of a name that stay together
SIGNS = {"<=": "≤", ">=": "≥", "==": "="}


@dataclass(frozen=True)
class Column:
    """A heading, what it means, and whether it holds numbers."""

    title: str
    meaning: str = ""
    numeric: bool = True


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], caption: str) -> str:
    """A table that can be sorted by its headings; cells are whole <td> or <th> elements."""
    heads = (
        tag(
            "th",
            tag("button", text(column.title), type="button", title=column.meaning or None),
            scope="col",
            class_="number" if column.numeric else None,
        )
        for column in columns
    )
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    inside = (
        f"<caption><span>{text(caption)}</span></caption><thead><tr>{''.join(heads)}</tr></thead><tbody>{body}</tbody>"
    )
    return tag("div", tag("table", inside), class_="scroll", tabindex="0", role="region", aria_label=caption)


def word(value: str, markup: str | None = None, head: bool = False) -> str:
    """A cell of text, or of markup that stands for the text."""
    scope = {"scope": "row"} if head else {}
    return tag("th" if head else "td", text(value) if markup is None else markup, data_value=value, **scope)


def figure(value: float, shown: Callable[[float], str], extra: str = "") -> str:
    """A cell with a number."""
    known = math.isfinite(value)
    small = f"<small>{text(extra)}</small>" if extra else ""
    return tag("td", (shown(value) if known else "–") + small, class_="number", data_value=repr(value) if known else "")


def dot(series: Series) -> str:
    """The series' marker and name."""
    key = (
        f'<svg class="key c{series.look}" viewBox="-8 -8 16 16" aria-hidden="true"><use href="#m{series.look}"/></svg>'
    )
    return f'<span class="name">{key}<span>{text(series.label)}</span></span>'


# --- comparison -------------------------------------------------------------------------------------------------------


def comparison(groups: Sequence[Group]) -> str:
    """One row per problem, tolerance and solver."""
    columns = [*_where(groups), Column("Solver", numeric=False), Column("Status", "of all runs", numeric=False)]
    first, *others = (Column(m.title, f"median: {m.meaning}" if m.meaning else "median") for m in METRICS)
    columns += [
        first,
        Column("Relative work", "median work over that of the first solver of the same problem"),
        *others,
    ]
    rows = []
    for index, group in enumerate(groups):
        base = _median(group.series[0], METRICS[0])[0]
        place = _place(groups, group, f'<a href="#group-{index}">{_breakable(group.label)}</a>')
        rows += [[*place, *_compared(series, base, head=not place)] for series in group.series]
    return table(columns, rows, "Medians over the seeds of certified runs; below them the smallest and largest")


def _where(groups: Sequence[Group]) -> list[Column]:
    """Columns that say which problem and tolerance, where there are several."""
    problem = [Column("Problem", numeric=False)] if len(groups) > 1 else []
    return problem + ([Column("Tolerance")] if _tolerances(groups) > 1 else [])


def _tolerances(groups: Sequence[Group]) -> int:
    return len({group.tolerance for group in groups})


def _place(groups: Sequence[Group], group: Group, markup: str) -> list[str]:
    problem = [word(group.label, markup, head=True)] if len(groups) > 1 else []
    tolerance = figure(group.tolerance.gradient, lambda _: text(group.tolerance_text))
    return [*problem, tolerance] if _tolerances(groups) > 1 else problem


def _breakable(name: str) -> str:
    """A name that is broken after its slashes, and within a part where that is long."""
    parts = [f"{part}/" for part in name.split("/")[:-1]] + [name.split("/")[-1]]
    shown = (tag("span", text(part), class_="whole") if len(part) <= MOST_LETTERS else text(part) for part in parts)
    return "<wbr>".join(shown)


def _compared(series: Series, base: float, head: bool) -> list[str]:
    certified = sum(view.certified for view in series.views)
    medians = [(*_median(series, metric), WRITTEN[metric.kind][0]) for metric in METRICS]
    first, *others = (figure(median, shown, between) for median, between, shown in medians)
    work = medians[0][0]
    return [
        word(series.label, dot(series), head=head),
        word(_statuses(series), f"{text(_statuses(series))}<small>{certified} of {len(series.views)} runs</small>"),
        first,
        figure(work / base if base else math.nan, lambda v: f"{v:.2g}" if v < 10 else f"{v:,.0f}"),
        *others,
    ]


# How the median of a metric is written, and the ends of its range, which are narrower.
WRITTEN = {"count": (count, work_tick), "seconds": (seconds, seconds), "number": (lambda v: number(v, 4), number)}


def _median(series: Series, metric: Metric) -> tuple[float, str]:
    """The median over certified runs, and their range in words where there is one."""
    spread = Range.of(view.number(metric.of) for view in series.views if view.certified)
    if spread is None:
        return math.nan, ""
    low, high = map(WRITTEN[metric.kind][1], (spread.low, spread.high))
    return spread.median, "" if low == high else f"{low} to {high}"


def _statuses(series: Series) -> str:
    names = [view.status for view in series.views]
    different = list(dict.fromkeys(names))
    return different[0] if len(different) == 1 else ", ".join(f"{names.count(name)} {name}" for name in different)


# --- every run --------------------------------------------------------------------------------------------------------

WORK = ("total", "gradients", "hvps", "certificate")
EVERY = (
    Column("Solver", numeric=False),
    Column("Seed"),
    Column("Status", numeric=False),
    Column("Objective"),
    *(Column(name.capitalize().replace("_", " "), meaning) for name, meaning in MEASURES.items()),
    Column("Work", "gradients + 2 Hessian-vector products per sample"),
    Column("Gradients"),
    Column("HVPs", "Hessian-vector products"),
    Column("Judge's work", "in the same units, counted apart"),
    Column("Outer iterations"),
    Column("Seconds", "all of them"),
    Column("Compiling", "seconds"),
    Column("Folder", numeric=False),
)


def every_run(groups: Sequence[Group]) -> str:
    """One row per run."""
    rows = []
    for group in groups:
        place = _place(groups, group, _breakable(group.label))
        for series in group.series:
            rows += [[*place, *_every(series, view, head=not place)] for view in series.views]
    return table([*_where(groups), *EVERY], rows, "Every run: certificates, work and time")


def _every(series: Series, view: RunView, head: bool) -> list[str]:
    return [
        word(series.label, dot(series), head=head),
        figure(view.seed, lambda v: f"{v:.0f}"),
        word(view.status),
        figure(view.number(lambda result: result.objective), lambda v: number(v, 6)),
        *(_measure(view, name) for name in MEASURES),
        *(figure(view.number(lambda result, name=name: getattr(result.work, name)), count) for name in WORK),
        figure(view.number(lambda result: result.outer_iterations), count),
        figure(view.number(lambda result: result.seconds.total), seconds),
        figure(view.number(lambda result: result.seconds.compile), seconds),
        word(view.place),
    ]


def _measure(view: RunView, name: str) -> str:
    """A measure of the certificate, marked where its bound misses the tolerance."""
    missed = name in view.checks and not view.checks[name].met
    value = view.number(lambda result: getattr(result.certificate, name))
    return figure(value, lambda v: f"✗ {number(v)}" if missed else number(v))


# --- constraints ------------------------------------------------------------------------------------------------------


def constraints(group: Group) -> str:
    """Constraints as they were stated, at the points returned, and their multipliers; several runs of a series as medians."""
    columns = [Column("Constraint", numeric=False), Column("Solver", numeric=False), Column("Value", "what is bounded")]
    columns += [Column("Bound"), Column("Room", "how far the value is inside of its bound; below zero it is beyond")]
    columns += [Column("Multiplier", "price of the constraint: how fast the objective falls as the bound is loosened")]
    rows, left_out = [], 0
    for series in group.series:
        listed, more = _constraint_rows(series)
        rows += listed
        left_out += more
    if not rows:
        return "<p>The problem has no constraints beside its domain.</p>"
    note = f"<p>{left_out} rows with smaller multipliers are not listed.</p>" if left_out else ""
    return (
        table(columns, rows, "Constraints as they were stated, at the points returned; ✗: beyond the tolerance") + note
    )


def _constraint_rows(series: Series) -> tuple[list[list[str]], int]:
    results = [view.result for view in series.ended if view.result is not None]
    if not results:
        return [], 0
    by_row = list(zip(*(result.held for result in results), strict=True))  # of each row, what the runs found
    prices = [float(np.median([price for _, price in found])) for found in by_row]
    broken = [
        any(row.violated(r.tolerance.violation) for (row, _), r in zip(found, results, strict=True)) for found in by_row
    ]
    order = sorted(range(len(by_row)), key=lambda i: (-broken[i], -abs(prices[i])))[:MOST_ROWS]
    rows = []
    for i in sorted(order):
        held = [row for row, _ in by_row[i]]
        bound = f"{SIGNS[held[0].sign]} {held[0].bound:.6g}"
        rows.append(
            [
                word(held[0].name, f"✗ {text(held[0].name)}" if broken[i] else None, head=True),
                word(series.label, dot(series)),
                _spread(np.array([row.value for row in held])),
                tag("td", text(bound), class_="number", data_value=repr(held[0].bound)),
                _spread(np.array([row.room for row in held])),
                _spread(np.array([price for _, price in by_row[i]])),
            ]
        )
    return rows, len(by_row) - len(order)


def _spread(values: np.ndarray) -> str:
    low, high = number(float(values.min())), number(float(values.max()))
    return figure(float(np.median(values)), number, "" if low == high else f"{low} to {high}")

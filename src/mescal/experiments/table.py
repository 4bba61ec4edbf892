"""A comparison of stored runs: one row per problem, tolerance and solver, over the seeds; work as ratios to one solver.

Medians are taken over certified runs alone: what a run without certificate spent says nothing about what it needs. The table and
the JSON of `mescal compare`, that of the reproduction and the comparison of a report's page are made from `METRICS`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..certificate import Tolerance
from ..forms import plain
from ..run import Result
from .store import StoredRun
from .task import Task


@dataclass(frozen=True)
class Metric:
    """A number of a result that runs are compared by: tables show its median over certified runs.

    - `name`: its name in JSON, and `head` in the terminal; None where a terminal has no room for it.
    - `title`, `meaning`: its heading on a page, and what that means.
    - `of`: the number; NaN where there is none.
    - `kind`: how it is written: a count, seconds, or a number.
    """

    name: str
    head: str | None
    title: str
    meaning: str
    of: Callable[[Result], float]
    kind: str = "number"


METRICS = (
    Metric("work", "work", "Work", "gradients + 2 Hessian-vector products per sample", lambda r: r.work.total, "count"),
    Metric("seconds", "seconds", "Seconds", "without compilation", lambda r: r.seconds.running, "seconds"),
    Metric("objective", "objective", "Objective", "", lambda r: r.objective),
    Metric("hvps", "HVPs", "HVPs", "Hessian-vector products", lambda r: r.work.hvps, "count"),
    Metric(
        "relative_stationarity",
        None,
        "Relative stationarity",
        "stationarity × max(1, |x|)",
        lambda r: r.certificate.relative_stationarity.value,
    ),
    Metric("outer", "outer", "Outer iterations", "", lambda r: r.outer_iterations),
)


@dataclass(frozen=True)
class Range:
    """Median, smallest and largest of some numbers."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "Range | None":
        """None of no numbers."""
        values = np.asarray(list(numbers), np.float64)
        return cls(float(np.median(values)), float(values.min()), float(values.max())) if values.size else None


@dataclass(frozen=True)
class ComparisonRow:
    """Runs that differ in their seeds alone.

    - `medians`: of each metric, over the certified runs; None where there are none.
    - `ratio`: median work over that of the reference solver on the same problem at the same tolerance.
    """

    problem: str
    tol: Tolerance
    solver: str
    runs: int
    certified: int
    medians: dict[str, Range | None]
    ratio: float | None = None

    @property
    def work(self) -> Range | None:
        """The metric that solvers are compared by."""
        return self.medians["work"]


def compare(runs: Sequence[StoredRun], reference: str = "spider") -> list[ComparisonRow]:
    """The rows by problem and tolerance, in the order in which these first occur, the reference solver first."""
    groups: dict[tuple[str, Tolerance, str], list[Result]] = {}
    for stored in runs:
        if stored.finished and stored.result is not None:
            given = Task.from_config(stored.config)
            groups.setdefault((given.label, given.tolerance, given.solver_label), []).append(stored.result)
    rows = [_row(*key, members) for key, members in groups.items()]
    base = {(r.problem, r.tol): r.work.median for r in rows if r.solver == reference and r.work is not None}
    problems, tols = list(dict.fromkeys(r.problem for r in rows)), list(dict.fromkeys(r.tol for r in rows))
    rows.sort(key=lambda r: (problems.index(r.problem), tols.index(r.tol), r.solver != reference))
    return [_with_ratio(row, base.get((row.problem, row.tol))) for row in rows]


def to_json(rows: Sequence[ComparisonRow]) -> list[dict[str, Any]]:
    """The rows as plain objects, with an entry for each metric."""
    found = [plain(row) for row in rows]
    return [row | row.pop("medians") for row in found]


IN_TERMINALS = [metric for metric in METRICS if metric.head is not None]
_FIRST, *_OTHERS = (str(metric.head) for metric in IN_TERMINALS)
HEAD = ("problem", "tol", "solver", "certified", _FIRST, "ratio", *_OTHERS)


def cells(row: ComparisonRow, reference: str = "spider", ranges: bool = True) -> tuple[str, ...]:
    """One row in words, under `HEAD`; `ranges` are the smallest and largest beside the medians."""
    ratio = "-" if row.ratio is None else f"{row.ratio:.2g}" if row.ratio < 10 else f"{row.ratio:.0f}"
    first, *others = (_spread(row.medians[metric.name], WRITTEN[metric.kind], ranges) for metric in IN_TERMINALS)
    ratio = "1" if row.solver == reference and row.ratio is not None else ratio
    return row.problem, str(row.tol), row.solver, f"{row.certified} of {row.runs}", first, ratio, *others


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, aligned for people who read it as text."""
    table = [[cell.replace("|", "\\|") for cell in line] for line in (head, *lines)]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    table.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in table
    )


def latex(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in LaTeX, with the rules of booktabs; its first columns are words, the others numbers."""
    rows = [" & ".join("".join(SPECIAL.get(letter, letter) for letter in cell) for cell in line) for line in lines]
    words = sum(name in WORDS for name in head)
    top = f"\\begin{{tabular}}{{{'l' * words}{'r' * (len(head) - words)}}}\n\\toprule\n"
    body = " \\\\\n".join(rows)
    return f"{top}{' & '.join(head)} \\\\\n\\midrule\n{body} \\\\\n\\bottomrule\n\\end{{tabular}}"


WORDS = ("problem", "tol", "solver", "certified")
SPECIAL = {letter: f"\\{letter}" for letter in "_%&#$"} | {"[": "{[}", "]": "{]}"}


def count(number: float) -> str:
    """A count in three digits, without an exponent up to a million."""
    return f"{number:,.0f}" if abs(number) < 1e6 else f"{number:.3g}".replace("e+0", "e").replace("e+", "e")


WRITTEN: dict[str, Callable[[float], str]] = {
    "count": count,
    "seconds": lambda value: f"{value:.2g}",
    "number": lambda value: f"{value:.4g}",
}


def _row(label: str, tol: Tolerance, solver: str, results: list[Result]) -> ComparisonRow:
    good = [result for result in results if result.converged]
    medians = {metric.name: Range.of(map(metric.of, good)) for metric in METRICS}
    return ComparisonRow(label, tol, solver, len(results), len(good), medians)


def _with_ratio(row: ComparisonRow, base: float | None) -> ComparisonRow:
    if not base or row.work is None:
        return row
    return replace(row, ratio=row.work.median / base)


def _spread(spread: Range | None, text: Callable[[float], str], ranges: bool) -> str:
    if spread is None:
        return "-"
    middle, low, high = text(spread.median), text(spread.low), text(spread.high)
    return middle if low == high or not ranges else f"{middle} [{low} to {high}]"

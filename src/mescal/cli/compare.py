"""`mescal compare`: a table of what solvers needed, from stored runs or from a sweep that it runs."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import problems
from ..errors import InputError
from ..experiments import StoredRun, Task, compare as rows_of, load_readable, own_solver, product
from ..experiments.own import SHOWN
from ..experiments.table import HEAD, ComparisonRow, cells, latex, markdown, to_json
from ..registry import unknown_name
from . import options
from .failure import CERTIFIED, FAILED
from .progress import sweep_shown
from .report import tell_left_out
from .show import complaints, results

PLACE = HEAD.index("solver")  # the columns before it are those of a table's title
REFERENCE = "spider"
DIGEST = re.compile(rf"@[0-9a-f]{{{SHOWN}}}")  # of a user's own file, in the name of its solver
SOLVERS = ["spider", "sg-hv-nc", "natasha2"]
ASKED = "Solvers for the problems, with options as in spider,batch=16. Repeat it for more."
OWN = "Solvers or baselines of your own for the problems, with options as above. Repeat it for more."


def compare(
    what: Annotated[
        list[str],
        options.a_problem(
            "Folders with stored runs; anything that is no folder is the name of a problem to be solved.", "RUN|PROBLEM"
        ),
    ],
    solver: Annotated[list[str] | None, options.a_solver(ASKED, ", ".join(SOLVERS))] = None,
    solver_file: Annotated[list[str] | None, options.a_file(*options.SOLVER_FILE, OWN)] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Seeds 0, 1, ... for the problems.")] = 3,
    tol: Annotated[list[float] | None, options.tolerances("Tolerances for the problems.", "0.01")] = None,
    assign: options.Set = None,
    outer: options.Outer = None,
    max_seconds: options.MaxSeconds = None,
    exact: options.Exact = False,
    out: Annotated[
        Path, options.a_path("--out", "-o", metavar="FOLDER", help="Where runs of problems are kept.", default=True)
    ] = Path("runs"),
    jobs: options.Jobs = None,
    force: options.Force = False,
    to: Annotated[
        str | None, options.a_solver("The solver that the others are compared with.", REFERENCE, ("--to",))
    ] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    as_latex: Annotated[bool, typer.Option("--latex", help="Print the table as LaTeX, for booktabs.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
):
    """Compare solvers: work, ratios, objectives and seconds, as medians over seeds.

    Given folders, it reads the runs stored there. Given names of problems, it first solves each with every solver and
    seed, over all cores; runs that are stored already are not run again, so an interrupted comparison goes on where it
    stopped. Runs of a solver whose code has changed since are.

    **Examples:**

    ```text
    mescal compare neyman-pearson/breast-cancer --seeds 5
    mescal compare saddles/circle saddles/sphere-axis --solver spider --solver natasha2 --tol 0.01 --tol 0.001
    mescal compare neyman-pearson/spambase --solver spider --solver spider,batch=256
    mescal compare saddles/circle --solver spider --solver-file my_solver.py:MySolver,batch=16
    mescal compare runs/a runs/b
    ```
    """
    names = [known_problem(text) for text in what if not Path(text).is_dir()]
    runs, complete = stored_runs([Path(text) for text in what if Path(text).is_dir()])
    asked = [with_options(text) for text in solver or SOLVERS]
    asked += [with_options(text, own_solver) for text in solver_file or []]
    texts, loop = options.assignments(assign, "--set"), options.outer(outer)
    tasks = [
        given
        for name in names
        for given in product(
            [name],
            asked,
            seeds=range(seeds),
            tols=tol or [0.01],
            parameters=problems.parse(name, texts),
            max_seconds=max_seconds,
            record="exact" if exact else None,
            outer=loop,
        )
    ]
    reference = compared_with(to, runs, tasks)
    if tasks:
        swept = sweep_shown(tasks, out, jobs, force, quiet or as_json)
        runs, complete = [*runs, *swept.runs], complete and not swept.failed
    rows = rows_of(runs, reference)
    if not rows:
        raise InputError("none of these runs has ended", "finished runs", "carry them on with `mescal resume`")
    if as_json:
        typer.echo(json.dumps(to_json(rows), indent=1))
    elif as_markdown or as_latex:
        typer.echo((latex if as_latex else markdown)(HEAD, [cells(row, reference) for row in rows]))
    else:
        show_comparison(results(), rows, reference)
    certified = complete and all(row.certified == row.runs for row in rows)
    raise typer.Exit(CERTIFIED if certified else FAILED)


def stored_runs(folders: Sequence[Path]) -> tuple[list[StoredRun], bool]:
    """The runs of these folders, and whether none was left out; says what there is to say of them."""
    runs, left_out = load_readable(folders, tasks=True) if folders else ([], {})
    tell_left_out(left_out, False)
    if changed := sum(not stored.current for stored in runs):
        complaints().print(f"Made by code that has changed since: {changed} of these runs.", style="dim")
    return runs, not left_out


def compared_with(to: str | None, runs: Sequence[StoredRun], tasks: Sequence[Task]) -> str:
    """The solver that the others are compared with; an error, before anything runs, if there will be no run of it.

    A solver of a user's own may be named without the digest of its file, where there is one file.
    """
    there = list(dict.fromkeys([*(row.solver for row in rows_of(runs)), *(given.solver_label for given in tasks)]))
    if to is None:
        plain = (given.solver_label for given in tasks if given.solver == REFERENCE and not given.options)
        return next(plain, REFERENCE)
    meant = [label for label in there if to in (label, DIGEST.sub("", label))]
    if len(meant) != 1:
        raise unknown_name("solver among these runs", to, there)
    return meant[0]


def with_options(text: str, find: Callable[[str], Any] = str) -> tuple[Any, dict[str, Any]]:
    """A solver, as `find` makes it of its name, and its options, from their text: spider,batch=16, as tables write them."""
    name, *given = text.split(",")
    solver = find(name)
    return solver, options.solver_options(solver, given)


def known_problem(name: str) -> str:
    """The name, if there is such a problem; said of what is no folder either."""
    try:
        return problems.about(name).name
    except InputError as error:
        raise InputError(f"{name} is neither a folder nor a problem", error.expected, error.advice) from None


def show_comparison(console: Console, rows: Sequence[ComparisonRow], to: str):
    """One table per problem and tolerance, whole; on a terminal the ranges beside medians go where there is no room for them."""
    for (problem, tol), group in groupby(rows, key=lambda row: (row.problem, row.tol)):
        group = list(group)
        table = _table(group, to, ranges=True)
        needed = console.measure(table, options=console.options.update(max_width=sys.maxsize)).maximum
        if needed > console.width:
            if console.is_terminal:
                table = _table(group, to, ranges=False)
            else:
                console.width = needed
        console.print(Text.assemble((problem, "bold"), f" to {tol}"))
        console.print(table)
    console.print(
        "Medians over the seeds of certified runs. Work: gradients + 2 HVPs, per sample. Seconds: without compiling.",
        style="dim",
    )


def _table(group: Sequence[ComparisonRow], to: str, ranges: bool) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in HEAD[PLACE:]:
        title = f"x {to}" if name == "ratio" else name
        table.add_column(title, justify="left" if name == "solver" else "right", no_wrap=True)
    for row in group:
        found = [Text(cell) for cell in cells(row, to, ranges=ranges)[PLACE:]]
        found[HEAD.index("certified") - PLACE].stylize("green" if row.certified == row.runs else "red")
        table.add_row(*found)
    return table

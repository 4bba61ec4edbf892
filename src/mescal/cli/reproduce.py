"""`mescal reproduce`: the paper's section 5 with one command."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from ..experiments import StoredRun, compare, reproduce as paper
from ..experiments.store import PAGE, REPORT
from ..files import refuse_foreign, write_json, write_text
from . import options
from .compare import show_comparison
from .failure import CERTIFIED, FAILED
from .progress import sweep_shown
from .report import reporting
from .show import results, shown_path

# What is written beside the runs, and how it begins: other files of these names are not replaced.
TABLES = {"table.md": b"# The paper's experiments", "table.json": b'{\n "rows": [', REPORT: PAGE}


def reproduce(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help=f"{' and '.join(paper.QUICK_PROBLEMS)} alone, {paper.QUICK_SEEDS} seeds, tolerance 0.01."
        ),
    ] = False,
    out: Annotated[
        Path,
        options.a_path("--out", "-o", metavar="FOLDER", help="Where runs, figures and the table go.", default=True),
    ] = Path("runs/reproduce"),
    problem: Annotated[
        list[str] | None,
        typer.Option(
            "--problem",
            metavar="NAME",
            help="Only this problem. Repeat it for more.",
            autocompletion=options.complete_problem,
            show_default="all four",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, metavar="N", help="Seeds 0, 1, ...", show_default=str(paper.SEEDS))
    ] = None,
    tol: Annotated[list[float] | None, options.tolerances("Tolerances.", "0.01 and 0.001")] = None,
    jobs: options.Jobs = None,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
):
    """Run the paper's experiments: four data sets, three solvers, five seeds, its two figures and the claims in its text.

    Leaves the runs, figures/ (PNG and SVG), report.html, table.md and table.json in one folder. Started again, it goes on
    where it stopped. The data are looked for in the folder MESCAL_DATA, then in the cache, then downloaded.

    **Examples:**

    ```text
    mescal reproduce --quick
    mescal reproduce --jobs 8 --out runs/paper
    mescal reproduce --problem fairness/bank --seeds 2 --tol 0.01
    ```
    """
    for name, mark in TABLES.items():
        refuse_foreign(out / name, mark)
    tasks = paper.paper_tasks(
        problem or (paper.QUICK_PROBLEMS if quick else paper.PROBLEMS),
        seeds=seeds or (paper.QUICK_SEEDS if quick else paper.SEEDS),
        tols=tol or (paper.TOLERANCES[:1] if quick else paper.TOLERANCES),
    )
    swept = sweep_shown(tasks, out, jobs, force, quiet or as_json)
    written = []
    if swept.runs:
        write_text(out / "table.md", paper.page(swept.runs))
        write_json(out / "table.json", paper.summary(swept.runs))
        written = [out / "table.md", out / "table.json"]
        written += reporting("write_figures")(swept.runs, out / "figures")
        written.append(reporting("write_report")(swept.runs, out / "report.html"))
    if as_json:
        typer.echo(json.dumps(paper.summary(swept.runs) | {"certified": swept.certified}, indent=1))
    else:
        _show(swept.runs, written)
    raise typer.Exit(CERTIFIED if swept.certified else FAILED)


def _show(runs: Sequence[StoredRun], written: Sequence[Path | str]):
    console = results()
    rows = compare(runs)
    show_comparison(console, rows, "spider")
    claims = Table(
        title="Work over SPIDER's, beside the paper's text", box=SIMPLE_HEAD, title_justify="left", pad_edge=False
    )
    for name in ("problem", "solver", "paper, about", "measured"):
        claims.add_column(name, justify="right" if name in ("paper, about", "measured") else "left")
    for claim, measured in paper.checked(rows):
        claims.add_row(claim.problem, claim.solver, f"{claim.ratio:g}", f"{measured:.2g}")
    if claims.row_count:
        console.print(claims)
    for file in written:
        console.print(f"Wrote {shown_path(Path(file))}", soft_wrap=True)

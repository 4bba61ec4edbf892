"""`mescal report`: a page about one run or many, and figures."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..experiments import StoredRun, load_runs
from ..experiments.store import REPORT
from . import options
from .screen import results
from .show import shown_path


def report(
    runs: options.Runs,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page.", show_default="report.html in the folder given"),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="FOLDER", help="Draw the figures as PNG and SVG, too.", show_default=False),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: options.Json = False,
):
    """Write a page about runs that opens anywhere: verdicts, certificates, curves, comparison. No network needed.

    **Examples:**

    ```text
    mescal report runs/a
    mescal report runs/compare --out compare.html --open
    mescal report runs/reproduce --figures figures
    ```
    """
    stored = some_ended(load_runs(runs))
    page = Path(os.path.commonpath([run.resolve() for run in runs])) / REPORT if len(runs) > 1 else runs[0] / REPORT
    written = reporting("write_report")(stored, page if out is None else out)
    drawn = [] if figures is None else reporting("write_figures")(stored, figures)
    if as_json:
        typer.echo(json.dumps({"report": str(written), "figures": [str(file) for file in drawn], "runs": len(stored)}))
    else:
        console = results()
        console.print(f"Wrote {shown_path(written)} about {len(stored)} run{'s' * (len(stored) != 1)}.", soft_wrap=True)
        for file in drawn:
            console.print(f"Wrote {shown_path(file)}.", soft_wrap=True)
    if open_it:
        typer.launch(str(written))


def some_ended(runs: list[StoredRun]) -> list[StoredRun]:
    """The runs; an error if none of them has ended."""
    if all(stored.result is None for stored in runs):
        where = shown_path(runs[0].path)
        raise InputError(f"no run has ended below {where}", "at least one", f"carry it on: mescal resume {where}")
    return runs


def reporting(name: str) -> Any:
    """A function of `mescal.report`, which needs an extra of its own."""
    try:
        from .. import report as module

        return getattr(module, name)
    except ImportError as error:
        raise InputError(
            f"pages and figures need {error.name}, which is not installed",
            "mescal with its extra for figures",
            "pip install 'mescal[plot]'",
        ) from error

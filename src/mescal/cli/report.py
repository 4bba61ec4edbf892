"""`mescal report`: a page about one run or many, and figures."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from ..distribution import install
from ..errors import InputError
from ..experiments import StoredRun, load_readable
from ..experiments.store import REPORT
from . import options
from .show import complaints, results, shown_path

PLACE = "report.html in the folder given"


def report(
    runs: options.Runs,
    out: Annotated[Path | None, options.a_path("--out", "-o", metavar="FILE", help="The page.", default=PLACE)] = None,
    figures: Annotated[
        Path | None, options.a_path("--figures", metavar="FOLDER", help="Draw the figures as PNG and SVG, too.")
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

    Of many runs, those that cannot be read are left out and named, on the page, too.
    """
    stored, left_out = load_readable(runs)
    some_ended(stored)
    tell_left_out(left_out, as_json)
    page = Path(os.path.commonpath([run.resolve() for run in runs])) / REPORT if len(runs) > 1 else runs[0] / REPORT
    written = reporting("write_report")(stored, page if out is None else out, left_out)
    drawn = [] if figures is None else reporting("write_figures")(stored, figures)
    if as_json:
        told = {"report": str(written), "figures": [str(file) for file in drawn], "runs": len(stored)}
        missing = {str(path): error.found for path, error in left_out.items()}
        typer.echo(json.dumps(told | ({"left_out": missing} if missing else {})))
    else:
        console = results()
        console.print(f"Wrote {shown_path(written)} about {len(stored)} run{'s' * (len(stored) != 1)}.", soft_wrap=True)
        for file in drawn:
            console.print(f"Wrote {shown_path(file)}.", soft_wrap=True)
    if open_it:
        typer.launch(str(written))


def tell_left_out(left_out: Mapping[Path, InputError], quiet: bool):
    """Name the runs that could not be read."""
    for path, error in left_out.items():
        if not quiet:
            complaints().print(
                Text.assemble((f"left out {shown_path(path)}: ", "red bold"), error.found), soft_wrap=True
            )


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
            install("plot"),
        ) from error

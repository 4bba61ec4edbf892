"""The commands, put together."""

from typing import Annotated

import typer

from ..version import __version__
from .certify import certify
from .compare import compare
from .failure import Commands, reported
from .lists import datasets, problems, solvers
from .report import report
from .reproduce import reproduce
from .solve import resume, solve
from .theory import theory
from .tune import tune

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_show_locals=False,
)

PANELS = {
    "Solve and judge": (solve, certify, resume),
    "Look and compare": (report, compare, reproduce, tune),
    "What there is": (problems, solvers, datasets, theory),
}
for panel, commands in PANELS.items():
    for command in commands:
        app.command(command.__name__, rich_help_panel=panel)(reported(command))


def _version(wanted: bool):
    if wanted:
        typer.echo(f"mescal {__version__}")
        raise typer.Exit


@app.callback()
def top(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
):
    """Minimise an expectation under expectation constraints, and stop only at a point that can be proved.

    **Start here:**

    ```text
    mescal problems
    mescal solve neyman-pearson/breast-cancer --out runs/first
    mescal report runs/first
    ```

    Exit codes: 0 certified, 1 finished without a certificate or failed, 2 wrong usage, 130 interrupted.
    """

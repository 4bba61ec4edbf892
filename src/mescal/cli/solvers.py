"""`mescal solvers`: the sub-solvers and the baselines, or one of them with its settings."""

import inspect
import json
import sys
from typing import Annotated, Any

import typer
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from .. import baselines, solvers as known
from ..checks import WORDS
from ..experiments.task import method
from ..forms import plain
from . import options
from .show import results


def solvers(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="One solver, to see its settings.",
            autocompletion=options.complete_solver,
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
):
    """List the sub-solvers and the baselines, or show one with the settings that --option can change.

    **Examples:**

    ```text
    mescal solvers
    mescal solvers spider
    mescal solvers stoch-ialm
    ```
    """
    found = [method(each, {}) for each in ((*known.names(), *baselines.names()) if name is None else (name,))]
    if as_json:
        typer.echo(json.dumps([_plain(solver) for solver in found] if name is None else _plain(found[0]), indent=1))
        return
    console = results()
    if name is not None:
        console.print(Markdown(_about(found[0])))
        console.print()
        console.print(Markdown(inspect.getdoc(type(found[0])) or ""))
        console.print()
    table = Table.grid(padding=(0, 2))
    for solver in found:
        settings = ", ".join(f"{key}={value}" for key, value in _settings(solver).items())
        table.add_row(
            Text(type(solver).name, "bold"),
            _about(solver).partition(".\n")[0] if name is None else "",
            Text(settings, "dim"),
        )
    console.print(table)
    if any(value == 0 and not isinstance(value, bool) for solver in found for value in _settings(solver).values()):
        console.print("\nA setting of 0 is left to the solver.", style="dim")


def _about(solver: Any) -> str:
    """The docstring of its file, up to the first blank line."""
    text = inspect.getdoc(sys.modules[type(solver).__module__]) or ""
    return text.partition("\n\n")[0]


def _settings(solver: Any) -> dict[str, Any]:
    shown = {key: options.in_short(value) for key, value in vars(solver).items()}
    return {key: value for key, value in shown.items() if isinstance(value, tuple(WORDS))}


def _plain(solver: Any) -> dict[str, Any]:
    return plain({"name": type(solver).name, "about": _about(solver), "settings": _settings(solver)})

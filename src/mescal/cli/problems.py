"""`mescal problems`: the named problems, or one of them with its parameters."""

import json
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from .. import problems as known
from ..problems import Entry
from . import options
from .show import results


def problems(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="One problem, to see its parameters.",
            autocompletion=options.complete_problem,
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
):
    """List the named problems, or show one with the parameters that --set can change.

    **Examples:**

    ```text
    mescal problems
    mescal problems fairness/bank
    ```
    """
    entries = [known.about(each) for each in known.names()] if name is None else [known.about(name)]
    if as_json:
        typer.echo(json.dumps([_plain(entry) for entry in entries] if name is None else _plain(entries[0]), indent=1))
    elif name is None:
        _list(entries)
    else:
        _one(entries[0])


def _list(entries: list[Entry]):
    console = results()
    for kind, group in groupby(entries, key=lambda entry: entry.name.partition("/")[0]):
        members = list(group)
        shared, rest = _shared([entry.description for entry in members])
        console.print(Text.assemble((kind, "bold"), (f"  {shared}" if shared else "", "dim")))
        table = Table.grid(padding=(0, 2))
        for entry, description in zip(members, rest, strict=True):
            table.add_row(f"  {entry.name}", description)
        console.print(table)
        console.print()
    console.print("mescal problems NAME shows parameters; mescal solve NAME solves it.", style="dim")


def _shared(descriptions: list[str]) -> tuple[str, list[str]]:
    """The first sentence, if several descriptions begin with it, and the descriptions without it."""
    first = descriptions[0].partition(". ")[0] + "."
    if len(descriptions) > 1 and all(text.startswith(f"{first} ") for text in descriptions):
        return first, [text.removeprefix(f"{first} ") for text in descriptions]
    return "", descriptions


def _one(entry: Entry):
    console = results()
    console.print(Text(entry.name, "bold"))
    console.print(f"{entry.description.rstrip('.')}{'' if entry.description.endswith('?') else '.'}\n")
    if entry.optimum is not None:
        console.print(f"Best objective known: {entry.optimum:g}.")
    console.print(f"Curvature is judged on the cone {entry.cone!r}.\n")
    table = Table.grid(padding=(0, 2))
    for given, parameter in entry.parameters.items():
        table.add_row(
            f"  {given}", Text(str(parameter.default), "bold"), parameter.help, Text(parameter.allowed, "dim")
        )
    console.print(table)
    first = next(iter(entry.parameters.items()), None)
    example = f" --set {first[0]}={first[1].default}" if first is not None else ""
    console.print(f"\nmescal solve {entry.name}{example}", style="dim")


def _plain(entry: Entry) -> dict[str, Any]:
    parameters = {
        name: {"default": p.default, "help": p.help, "allowed": p.allowed} for name, p in entry.parameters.items()
    }
    return {
        "name": entry.name,
        "description": entry.description,
        "cone": entry.cone,
        "optimum": entry.optimum,
        "parameters": parameters,
    }

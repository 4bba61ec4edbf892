"""`mescal problems`, `mescal solvers`, `mescal datasets`: what there is, in a list, or one of it with what can be set."""

import inspect
import json
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from .. import baselines, datasets as data_sets, problems as named_problems, solvers as sub_solvers
from ..checks import WORDS
from ..datasets import Declaration
from ..datasets.places import data_folder
from ..experiments.task import method
from ..forms import plain
from ..problems import Entry
from . import options
from .show import results


def problems(
    name: Annotated[str | None, options.a_problem("One problem, to see its parameters.", "NAME")] = None,
    as_json: options.Json = False,
):
    """List the named problems, or show one with the parameters that --set can change.

    **Examples:**

    ```text
    mescal problems
    mescal problems fairness/bank
    ```
    """
    entries = [named_problems.about(each) for each in (named_problems.names() if name is None else (name,))]
    if as_json:
        tell([_plain_problem(entry) for entry in entries], name)
    elif name is None:
        _list_problems(entries)
    else:
        _show_problem(entries[0])


def tell(found: Sequence[dict[str, Any]], name: str | None):
    """All of them as JSON, or the one that was named."""
    typer.echo(json.dumps(found if name is None else found[0], indent=1))


def _list_problems(entries: list[Entry]):
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


def _show_problem(entry: Entry):
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


def _plain_problem(entry: Entry) -> dict[str, Any]:
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
    found = [method(each, {}) for each in ((*sub_solvers.names(), *baselines.names()) if name is None else (name,))]
    if as_json:
        tell([_plain_solver(solver) for solver in found], name)
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


def _plain_solver(solver: Any) -> dict[str, Any]:
    return plain({"name": type(solver).name, "about": _about(solver), "settings": _settings(solver)})


def complete_dataset(incomplete: str) -> list[tuple[str, str]]:
    """Names of data sets, with what they are."""
    return [(name, data_sets.about(name).description) for name in data_sets.names() if name.startswith(incomplete)]


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One data set.", autocompletion=complete_dataset, show_default=False),
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Find or download the files now, verify them, and say what they hold.")
    ] = False,
    as_json: options.Json = False,
):
    """List the data sets and where their files are; `--fetch` gets and verifies them.

    Files are looked for in the folder that MESCAL_DATA names, then in the cache (MESCAL_CACHE moves it), and are then
    downloaded from their public source.

    **Examples:**

    ```text
    mescal datasets
    mescal datasets spambase --fetch
    ```
    """
    found = [data_sets.about(each) for each in (data_sets.names() if name is None else (name,))]
    loaded = {declaration.name: data_sets.load(declaration.name) for declaration in found} if fetch else {}
    if as_json:
        tell([_plain_dataset(declaration, loaded.get(declaration.name)) for declaration in found], name)
        return
    console = results()
    table = Table.grid(padding=(0, 2))
    for declaration in found:
        table.add_row(Text(declaration.name, "bold"), Text(where(declaration), "dim"), declaration.description)
        if (data := loaded.get(declaration.name)) is not None:
            rows, d = data.features.shape
            table.add_row("", Text("verified", "green"), f"{rows:,} rows, {d} features")
    console.print(table)
    if name is not None:
        console.print(f"\n{found[0].citation}\nLicence: {found[0].licence}")
        for encoding, sentence in found[0].encodings.items():
            console.print(f"encoding={encoding}: {sentence}")
    console.print(f"\nThe cache is {data_sets.cache_folder()}", style="dim", soft_wrap=True)


def where(declaration: Declaration) -> str:
    """Where the files of a data set are, without reading them."""
    file = sys.modules[declaration.encode.__module__]
    files = getattr(file, "FILES", None)
    if files is None:
        return "with scikit-learn" if hasattr(file, "load_bundled") else "made when it is loaded"
    for label, folder in (("in MESCAL_DATA", data_folder()), ("in the cache", data_sets.cache_folder())):
        if folder is not None and all((folder / file).is_file() for file in files.checksums):
            return label
    return "to be downloaded" if files.archive is not None else "needs MESCAL_DATA"


def _plain_dataset(declaration: Declaration, data: Any) -> dict[str, Any]:
    facts = {
        "name": declaration.name,
        "where": where(declaration),
        "description": declaration.description,
        "citation": declaration.citation,
        "licence": declaration.licence,
        "encodings": dict(declaration.encodings),
    }
    return facts if data is None else facts | {"rows": data.features.shape[0], "features": data.features.shape[1]}

"""`mescal datasets`: the data sets, where their files are, and a way to fetch them beforehand."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from .. import datasets as known
from ..datasets import Declaration
from ..datasets.files import data_folder
from .show import results


def complete_dataset(incomplete: str) -> list[tuple[str, str]]:
    """Names of data sets, with what they are."""
    return [(name, known.about(name).description) for name in known.names() if name.startswith(incomplete)]


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One data set.", autocompletion=complete_dataset, show_default=False),
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Find or download the files now, verify them, and say what they hold.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
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
    found = [known.about(each) for each in known.names()] if name is None else [known.about(name)]
    loaded = {declaration.name: known.load(declaration.name) for declaration in found} if fetch else {}
    if as_json:
        plain = [_plain(declaration, loaded.get(declaration.name)) for declaration in found]
        typer.echo(json.dumps(plain if name is None else plain[0], indent=1))
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
    console.print(f"\nThe cache is {known.cache_folder()}", style="dim", soft_wrap=True)


def where(declaration: Declaration) -> str:
    """Where the files of a data set are, without reading them."""
    file = sys.modules[declaration.encode.__module__]
    files = getattr(file, "FILES", None)
    if files is None:
        return "with scikit-learn" if hasattr(file, "load_bundled") else "made when it is loaded"
    for label, folder in (("in MESCAL_DATA", data_folder()), ("in the cache", known.cache_folder())):
        if folder is not None and all((folder / file).is_file() for file in files.checksums):
            return label
    return "to be downloaded" if files.archive is not None else "needs MESCAL_DATA"


def _plain(declaration: Declaration, data: Any) -> dict[str, Any]:
    facts = {
        "name": declaration.name,
        "where": where(declaration),
        "description": declaration.description,
        "citation": declaration.citation,
        "licence": declaration.licence,
        "encodings": dict(declaration.encodings),
    }
    return facts if data is None else facts | {"rows": data.features.shape[0], "features": data.features.shape[1]}

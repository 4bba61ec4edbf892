"""`mescal theory`: the paper's Table 1 and, for a problem and a tolerance, what the theorems say about it."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from .. import problems, theory as theorems
from ..forms import plain
from ..kept_programs import keep_compilations
from . import options
from .show import complaints, results


def theory(
    problem: Annotated[
        str | None, options.a_problem("A named problem, to have its constants estimated and its work bounded.")
    ] = None,
    tol: options.Tol = options.DEFAULTS.tol.gradient,
    assign: options.Set = None,
    as_json: options.Json = False,
):
    """Show the sample complexities of the paper's Table 1, or what the theorems predict for a problem.

    **Examples:**

    ```text
    mescal theory
    mescal theory neyman-pearson/breast-cancer --tol 0.01
    ```
    """
    if problem is None:
        _table(as_json)
    else:
        _predict(problem, tol, assign, as_json)


def _table(as_json: bool):
    rows = theorems.table1.rows()
    if as_json:
        kept = [
            asdict(row) | {"first_order": _rate(row.first_order), "second_order": _rate(row.second_order)}
            for row in rows
        ]
        typer.echo(json.dumps(plain(kept), indent=1))
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title="Samples to reach eps_g, eps_H", title_justify="left")
    for name in ("method", "constraints", "iterate", "first order", "second order", "p", "note"):
        table.add_column(name, no_wrap=name != "note")
    for row in rows:
        own = row.method.startswith("MESCAL")
        cells = (
            row.method,
            row.constraints,
            row.iterate,
            _rate(row.first_order) or "-",
            _rate(row.second_order) or "-",
            "" if row.probability is None else f"{row.probability:.3g}",
            row.note,
        )
        table.add_row(*cells, style="bold" if own else "")
    console = results()
    console.print(table)
    console.print("E: in expectation, P: with the probability p.", style="dim")


def _rate(rate: Any) -> str | None:
    return None if rate is None else str(rate)


def _predict(name: str, tol: float, assign: list[str] | None, as_json: bool):
    named = problems.get(name, **problems.parse(name, options.assignments(assign, "--set")))
    keep_compilations()
    with complaints().status("Estimating the constants that the theorems are about", spinner="dots"):
        prediction = theorems.predict(named.problem, named.x0, tol)
    if as_json:
        typer.echo(json.dumps(plain(asdict(prediction)), indent=1))
    else:
        results().print(Text(str(prediction)), soft_wrap=True)

"""`mescal tune`: settings of a solver by a grid on one problem, as the paper set its solvers by hand."""

import json
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from .. import problems
from ..errors import InputError
from ..experiments.reproduce import PAPER
from ..experiments.task import method
from ..experiments.tune import MOST, Tuned, tune as search
from ..forms import plain
from ..kept_programs import keep_compilations
from . import options
from .failure import CERTIFIED, FAILED
from .show import complaints, results


def tune(
    problem: Annotated[str, options.a_problem("A named problem.")],
    solver: Annotated[str, options.a_solver(options.WHICH_SOLVER)] = "spider-paper",
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="NAME=V1,V2,...",
            help="Values to try of an option of the solver. Repeat it for more: all combinations are tried.",
            show_default="the solver's own, of paper modes",
        ),
    ] = None,
    option: options.Option = None,
    assign: options.Set = None,
    tol: options.Tol = PAPER.gradient,
    seed: options.Seed = options.DEFAULTS.seed,
    max_outer: options.MaxOuter = options.DEFAULTS.max_outer,
    max_work: Annotated[
        float,
        typer.Option(
            "--max-work", help="Work of a trial at most; later ones end at the least so far.", show_default=f"{MOST:g}"
        ),
    ] = MOST,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
):
    """Try a grid of a solver's options on a problem, and say which certified choice took least work, and what the search cost.

    The paper set its three solvers so, on each of its problems, and does not list what it chose; its grid is not known either.

    **Examples:**

    ```text
    mescal tune neyman-pearson/spambase --solver spider-paper
    mescal tune fairness/bank --solver sg-hv-nc-paper --grid step_size=1,4 --grid coin=0.5,0.9,0.99
    mescal tune neyman-pearson/madelon --solver natasha2-paper --option pairs=32 --json
    ```
    """
    named = problems.get(problem, **problems.parse(problem, options.assignments(assign, "--set")))
    shared = options.solver_options(solver, option)
    keep_compilations()
    with complaints().status("Trying", spinner="dots") as status:
        tuned = search(
            named,
            solver,
            _values(solver, grid),
            tol=tol,
            seed=seed,
            max_outer=max_outer,
            max_work=max_work,
            told=lambda trial: None if quiet or as_json else status.update(f"{_shown(trial.options)}: {trial.status}"),
            **shared,
        )
    if as_json:
        best = None if tuned.best is None else shared | tuned.best.options
        typer.echo(json.dumps(plain(tuned) | {"best": best, "work": tuned.work}, indent=1))
    else:
        _show(tuned, shared)
    raise typer.Exit(FAILED if tuned.best is None else CERTIFIED)


def _values(solver: str, grid: list[str] | None) -> dict[str, list[Any]] | None:
    """`["batch=16,64"]` as values in the types of the solver's defaults; None where no grid was given."""
    texts = options.assignments(grid, "--grid")
    if not texts:
        if not hasattr(method(solver, {}), "grid"):
            raise InputError(
                f"no grid for the solver {solver}", "options and values to try", "write for example --grid batch=16,64"
            )
        return None
    return {
        name: [options.solver_options(solver, [f"{name}={value}"])[name] for value in text.split(",")]
        for name, text in texts.items()
    }


def _shown(chosen: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in chosen.items()
    )


def _show(tuned: Tuned, shared: dict[str, Any]):
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=f"{tuned.solver} on {tuned.problem}", title_justify="left")
    for name in ("options", "ended as", "work", "outer", "objective"):
        table.add_column(name, justify="left" if name in ("options", "ended as") else "right")
    for trial in tuned.trials:
        numbers = f"{trial.work:,.0f}", str(trial.outer_iterations), f"{trial.objective:.4g}"
        style = "bold" if trial is tuned.best else "" if trial.certified else "dim"
        table.add_row(_shown(trial.options), trial.status.lower().replace("_", " "), *numbers, style=style)
    console = results()
    console.print(table)
    if tuned.best is None:
        console.print(f"No trial was certified. The search took work of {tuned.work:,.0f}.")
        return
    given = " ".join(f"--option {name}={value}" for name, value in (shared | tuned.best.options).items())
    console.print(
        f"Least work: {tuned.best.work:,.0f}; the search took {tuned.work:,.0f}, {tuned.work / tuned.best.work:.3g} times as much."
    )
    console.print(
        f"Next: mescal solve {tuned.problem} --solver {tuned.solver} {given} --cone whole", style="dim", soft_wrap=True
    )

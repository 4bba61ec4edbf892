"""`mescal solve` and `mescal resume`: one problem, one solver, one seed, into a run folder; and from there to its end."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import problems
from ..errors import InputError
from ..experiments import (
    OwnProblem,
    OwnSolver,
    StoredRun,
    Task,
    load_run,
    own_problem,
    own_solver,
    resume_run,
    run,
    task,
)
from ..experiments.own import literal
from ..experiments.run import stored_run
from ..experiments.store import RESULT
from ..files import read_json
from ..kept_programs import keep_compilations
from ..run import Status
from . import options
from .failure import CERTIFIED, FAILED, INTERRUPTED
from .progress import Progress
from .show import complaints, results, show_run, shown_path

RUNS = Path("runs")
DEFAULT = "auto"
PLACE = "runs/PROBLEM/SOLVER/tol=/seed="
OWN_PROBLEM = "Solve your own problem: the function returns (problem, x0)."
OWN_SOLVER = "Solve with your own solver or baseline: a class with defaults."
CHANGED = "{} was made by code that has changed since: it is run again."


def solve(
    problem: Annotated[str | None, options.a_problem("A named problem; `mescal problems` lists them.")] = None,
    solver: Annotated[str | None, options.a_solver(options.WHICH_SOLVER, DEFAULT)] = None,
    tol: options.Tol = options.DEFAULTS.tol.gradient,
    seed: options.Seed = options.DEFAULTS.seed,
    out: Annotated[
        Path | None, options.a_path("--out", "-o", metavar="FOLDER", help="The run folder.", default=PLACE)
    ] = None,
    force: options.Force = False,
    assign: options.Set = None,
    problem_file: Annotated[str | None, options.a_file(*options.PROBLEM_FILE, OWN_PROBLEM)] = None,
    solver_file: Annotated[str | None, options.a_file(*options.SOLVER_FILE, OWN_SOLVER)] = None,
    option: options.Option = None,
    outer: options.Outer = None,
    tol_curvature: options.TolCurvature = None,
    tol_feasibility: options.TolFeasibility = None,
    tol_relative: options.TolRelative = None,
    cone: Annotated[str | None, options.a_cone("what suits the problem")] = None,
    max_seconds: options.MaxSeconds = None,
    max_work: options.MaxWork = None,
    max_outer: options.MaxOuter = options.DEFAULTS.max_outer,
    starts: options.Starts = options.DEFAULTS.starts.count,
    exact: options.Exact = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
):
    """Solve a problem to a certified point and keep the run.

    The run is a folder: config.json, result.json, history.csv, solution.npz. A finished run of the very same task is
    shown and not run again; a folder that holds anything else is refused without --force.

    **Examples:**

    ```text
    mescal solve neyman-pearson/breast-cancer
    mescal solve neyman-pearson/spambase --solver natasha2 --tol 0.001 --seed 3 --out runs/a
    mescal solve fairness/bank --set tau=0.8 --max-seconds 60
    mescal solve neyman-pearson/madelon --starts 8
    mescal solve neyman-pearson/spambase --outer growth=2 --outer max_inner=500
    mescal solve --problem-file my_problem.py:make --out runs/mine
    mescal solve saddles/circle --solver-file my_solver.py:MySolver --option batch=16
    ```
    """
    chosen = chosen_solver(solver, solver_file)
    given = task(
        **chosen_problem(problem, problem_file, assign),
        solver=chosen,
        options=options.solver_options(chosen, option),
        seed=seed,
        tol=options.tolerance(tol, tol_curvature, tol_feasibility, tol_relative),
        cone=cone,
        record="exact" if exact else None,
        max_outer=max_outer,
        max_work=max_work,
        max_seconds=max_seconds,
        starts=starts,
        outer=options.outer(outer),
    )
    carry_out(given, RUNS / given.folder if out is None else out, force, as_json, quiet)


def resume(
    run: Annotated[Path, typer.Argument(parser=options.path, metavar="RUN", help="A run folder.", show_default=False)],
    max_seconds: options.MaxSeconds = None,
    max_work: options.MaxWork = None,
    max_outer: Annotated[
        int | None,
        typer.Option("--max-outer", metavar="N", help="A new cap on outer iterations.", show_default="as it was"),
    ] = None,
    trust: options.Trust = False,
    problem_file: options.ProblemFile = None,
    solver_file: options.SolverFile = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
):
    """Carry on a run that was killed, interrupted or, with a larger budget, stopped by one; a finished one is shown.

    The run goes on from its newest checkpoint and ends as if it had never been stopped. A run that was killed before its
    first checkpoint starts over: the same seed leads to the same end. A problem or a solver of somebody's own is a Python file
    that is run: it has to be named, or the run trusted.

    **Examples:**

    ```text
    mescal resume runs/a
    mescal resume runs/a --max-seconds 3600
    ```
    """
    limits = {"max_seconds": max_seconds, "max_work": max_work, "max_outer": max_outer}
    stored = load_run(run)
    given = Task.from_config(stored.config)
    if stored.finished and not any(limits.values()):
        return finish(stored, as_json, "This run has come to its end; nothing was run.")
    if not stored.current and not quiet and not as_json:
        complaints().print("The code has changed since this run began; it goes on with the code as it is.", style="dim")
    named = options.named_files(problem_file, solver_file)
    keep_compilations()
    with Progress(given, quiet=quiet or as_json) as progress:
        stored = resume_run(run, limits, progress=progress, trust=trust, named=named)
    return finish(stored, as_json)


def chosen_problem(name: str | None, file: str | None, assign: list[str] | None) -> dict[str, Any]:
    """The problem and its parameters, as `task` takes them."""
    texts = options.assignments(assign, "--set")
    if (name is None) == (file is None):
        found = "no problem was named" if name is None else f"both {name} and --problem-file {file} were given"
        raise InputError(found, "one problem", "name one of `mescal problems`, or pass --problem-file FILE.py:FUNCTION")
    if file is not None:
        own: OwnProblem = own_problem(file)
        return {"problem": own, "parameters": {key: literal(text) for key, text in texts.items()}}
    assert name is not None
    return {"problem": name, "parameters": problems.parse(name, texts)}


def chosen_solver(name: str | None, file: str | None) -> str | OwnSolver:
    """The solver, as `task` takes it."""
    if name is not None and file is not None:
        found = f"both --solver {name} and --solver-file {file} were given"
        raise InputError(found, "one solver", "leave one of the two out")
    return name or DEFAULT if file is None else own_solver(file)


def carry_out(given: Task, folder: Path, force: bool, as_json: bool, quiet: bool):
    """Run a task into a folder, or show the run that is there; ends the command with its exit code."""
    stored = None if force else stored_run(given, folder)
    if stored is not None and stored.finished and stored.current:
        lead = "This very run is stored already; nothing was run. (`mescal solve --force` runs it again.)"
        return finish(stored, as_json, lead)
    if stored is not None and not stored.current and not quiet and not as_json:
        complaints().print(CHANGED.format("The run that is stored here"), style="dim")
    keep_compilations()
    with Progress(given, quiet=quiet or as_json) as progress:
        stored = run(given, folder, force=force, progress=progress)
    return finish(stored, as_json)


def finish(stored: StoredRun, as_json: bool, lead: str = ""):
    """Show a run and leave with the exit code that it deserves."""
    assert stored.result is not None
    if as_json:
        typer.echo(json.dumps(read_json(stored.path / RESULT) | {"run": str(stored.path)}, indent=1))
    else:
        console = results()
        show_run(console, stored, lead)
        if console.is_terminal:
            console.print(f"Next: mescal report {shown_path(stored.path)}", style="dim")
    interrupted = stored.result.status is Status.INTERRUPTED
    if interrupted and not as_json:
        complaints().print(f"Interrupted; mescal resume {shown_path(stored.path)} carries it on.")
    raise typer.Exit(CERTIFIED if stored.converged else INTERRUPTED if interrupted else FAILED)

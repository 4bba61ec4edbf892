"""`mescal resume`: carry a run that did not come to its end to its end."""

from pathlib import Path
from typing import Annotated

import typer

from ..experiments import Task, load_run, resume_run
from ..kept_programs import keep_compilations
from . import options
from .progress import Progress
from .show import complaints
from .solve import finish


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

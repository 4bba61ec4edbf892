"""Carrying on: a run from its checkpoints, or a run folder with all that it holds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import baselines
from ..baselines.baseline import Baseline
from ..errors import InputError
from ..files import Hold, as_path
from ..problem import Problem
from ..run import Result, Row, checkpoint
from ..run.resume import resume as resume_checkpoint
from ..run.settings import check_limits
from ..solvers import Solver
from .own import OwnFile
from .run import CHECKPOINT, carry_on, reopen, run
from .store import StoredRun, is_run, load_run, write_config
from .task import CODE, Task


def resume(
    path: Any,
    problem: Problem | None = None,
    x0: Any = None,
    *,
    solver: Solver | Baseline | None = None,
    max_outer: int | None = None,
    max_work: float | None = None,
    max_seconds: float | None = None,
    callback: Any = None,
    progress: Any = None,
    trust: bool = False,
) -> Result:
    """Carry on a run that was killed, interrupted or stopped by a budget.

    On the same machine the result is, bit for bit, that of a run that was never stopped.

    **Arguments:**

    - `path`: the folder that was `minimize(checkpoint=...)`, of `mescal` or of a baseline, or a run folder of the command line.
    - `problem`: as it was; may be left out for a run folder, which knows its problem.
    - `x0`: of the same structure, where parameters are neither an array nor dicts, lists or tuples of arrays.
    - `solver`: as it was, where settings were given that are themselves objects.
    - `max_outer`, `max_work`: new limits for the whole run; `max_seconds`: for what comes now. Default: as they were.
    - `callback`, `progress`: as for `minimize`; functions are not stored.
    - `trust`: whether the Python files that a run folder names for its problem and its solver may be run.

    A checkpoint of another problem, solver or version is refused. If the newest is damaged, the one before it is used, and
    `result.warnings` says so.
    """
    folder = as_path(path, "path")
    if is_run(folder):
        task = Task.from_config(load_run(folder).config).with_trust(trust)
        if problem is None:
            named = task.make_problem()
            problem, x0 = named.problem, named.x0
        solver = task.make_solver() if solver is None else solver
        folder = folder / CHECKPOINT
    if problem is None:
        raise InputError(
            f"{folder} is no run folder of a named problem, and no problem was given",
            "the problem that the run was started with",
            "build it as before, and pass it",
        )
    limits = {"max_outer": max_outer, "max_work": max_work, "max_seconds": max_seconds}
    solver = _baseline(folder) if solver is None else solver
    return resume_checkpoint(folder, problem, x0, solver=solver, callback=callback, progress=progress, **limits)


def _baseline(folder: Path) -> Baseline | None:
    """The baseline whose run a folder holds, with its settings; None for one of MESCAL."""
    stored = checkpoint.read_latest(folder)
    with checkpoint.understood(stored.path):
        asked = dict(stored.about["solver"])
        name = asked.pop("name")
    plain = {
        option: value for option, value in asked.items() if not isinstance(value, dict)
    }  # objects: as they are by default
    return baselines.get(name, **plain) if name in baselines.names() else None


def resume_run(
    folder: Path,
    limits: dict[str, Any],
    progress: Callable[[Row], Any] | None = None,
    trust: bool = False,
    named: Sequence[OwnFile] = (),
) -> StoredRun:
    """Carry a run folder to its end; with new `limits`, also one that a budget stopped. Without checkpoints it starts over.

    `trust` is the user's word that files of somebody's own may be run; `named` are those that the user has named.
    """
    stored = load_run(folder)
    asked = Task.from_config(stored.config)
    limits = check_limits(limits)
    if stored.finished and (not limits or not checkpoint.files(folder / CHECKPOINT)):
        return stored
    task = replace(asked.with_trust(trust, named), **limits)
    task.make_solver()  # before anything is touched: its file may be another one
    made = task.make_problem()
    with Hold(folder):
        if task.config() != asked.config():
            reopen(folder)  # the result is that of the run as it was: this one has not ended
            write_config(folder, task.config() | {CODE: stored.config.get(CODE)})
        if checkpoint.files(folder / CHECKPOINT):  # of whatever code: the user asked to go on
            return carry_on(task, folder, made, progress, **limits)
    return run(task, folder, named=made, progress=progress)

"""One task becomes one run folder; a finished one is not run again."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..files import LOCK, Hold, WriteError, as_path, begins_with, cannot_read, make_folder, remove_empty
from ..problem import Problem, flatten_parameters
from ..problems import NamedProblem
from ..run import Result, Row, checkpoint
from ..run.resume import resume
from .result_file import Part, Size
from .store import FILES, PAGE, REPORT, RESULT, StoredRun, is_run, load_run, refuse_others, write_config, write_result
from .task import CODE, NOT_ASKED, Task, code_now

CHECKPOINT = "checkpoint"
LEFTOVER = re.compile(
    rf"\.({'|'.join(map(re.escape, (*FILES, REPORT)))})\.[0-9a-f]{{16}}\.part|{re.escape(LOCK)}"
)  # of killed processes


def run(
    task: Task,
    folder: Path | str,
    *,
    force: bool = False,
    named: NamedProblem | None = None,
    progress: Callable[[Row], Any] | None = None,
) -> StoredRun:
    """Run a task into a folder, unless the folder holds it already, made by the code as it is.

    **Arguments:**

    - `force`: run it although the folder holds this or another run, whose files are replaced, or other files, which stay.
    - `named`: the problem if it has been made already; seeds that share it share compilations.
    - `progress`: called with every row of the history.
    """
    path = as_path(folder, "folder")
    stored = None if force else stored_run(task, path)
    if stored is not None and stored.finished and stored.current:
        return stored
    anew = force or (stored is not None and not stored.current)
    named = task.make_problem() if named is None else named  # first: a wrong request leaves no folder
    new = make_folder(path)
    try:
        with Hold(path):
            if not anew and checkpoint.files(path / CHECKPOINT):
                return carry_on(task, path, named, progress)
            clear(path)
            write_config(path, task.config() | {CODE: code_now(task.config())})
            try:
                result = task.solve(named, path / CHECKPOINT, progress)
            except (InputError, SystemExit):
                if not checkpoint.files(path / CHECKPOINT):  # what a run has done before it fails is kept
                    with suppress(WriteError):
                        clear(path)
                raise
            return store(task, path, named, result)
    finally:
        remove_empty(new)


def carry_on(
    task: Task, path: Path, named: NamedProblem, progress: Callable[[Row], Any] | None, **limits: Any
) -> StoredRun:
    """Go on from the newest checkpoint of a run that did not come to its end."""
    solver = task.make_solver()
    result = resume(path / CHECKPOINT, named.problem, named.x0, solver=solver, progress=progress, **limits)
    return store(task, path, named, result)


def store(task: Task, path: Path, named: NamedProblem, result: Result) -> StoredRun:
    """Complete the folder; checkpoints go when a run has nothing left to do."""
    stored = write_result(path, result, problem=task.problem, about=about(task, named))
    if result.status.final or not checkpoint.files(path / CHECKPOINT):
        with suppress(WriteError):
            checkpoint.remove(path / CHECKPOINT)
    return stored


def stored_run(task: Task, path: Path) -> StoredRun | None:
    """The run of this very task in a folder, finished or not; None if there is none; an error if the task may not run there."""
    if is_run(path):
        stored = load_run(path)
        asked = {name: value for name, value in stored.config.items() if name not in NOT_ASKED}
        if asked == task.config():
            return stored
        other = difference(asked, task.config())
        raise InputError(
            f"{path} holds another run: {other}",
            "a new folder, or the run of the same task",
            "name another folder, or pass --force to replace it",
        )
    try:
        occupied = path.exists() and (not path.is_dir() or any(not _is_leftover(entry) for entry in path.iterdir()))
    except OSError as error:
        raise cannot_read(path, error) from error
    if occupied and not path.is_dir():
        raise InputError(f"{path} is a file", "a folder that is new or empty", "name another")
    if occupied:
        raise InputError(
            f"{path} exists and is not a run folder", "a folder that is new or empty", "name another, or pass --force"
        )
    return None


def difference(stored: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """In words, the first setting in which two configs differ."""
    for name, value in asked.items():
        if stored.get(name) != value:
            return f"its {name} is {stored.get(name)!r}, not {value!r}"
    return "it holds more settings than this version knows"


def clear(path: Path):
    """Remove the files of a run, result.json first, and what a killed writer left; what somebody else wrote stays."""
    refuse_others(path)
    try:
        for name in (*FILES, *([REPORT] if begins_with(path / REPORT, PAGE, 1 << 12) else [])):
            (path / name).unlink(missing_ok=True)
        checkpoint.remove(path / CHECKPOINT)
        for part in [entry for entry in path.glob(".*.part") if _is_leftover(entry)]:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise WriteError.of(path, error) from error


def reopen(path: Path):
    """Remove the result of a run that was interrupted: where there is one, a run has ended."""
    try:
        if is_run(path):
            (path / RESULT).unlink(missing_ok=True)
    except OSError as error:
        raise WriteError.of(path, error) from error


def _is_leftover(entry: Path) -> bool:
    """Whether this is what a killed process left: of one of our files, or its lock."""
    return LEFTOVER.fullmatch(entry.name) is not None


def about(task: Task, named: NamedProblem) -> dict[str, Any]:
    """What result.json says about the problem beside its name."""
    return {
        "parameters": dict(named.parameters),
        "description": named.description,
        "optimum": named.optimum,
        "options": dict(task.options),
        "statement": size_of(named.problem, named.x0),
    }


def size_of(problem: Problem, x0: Any) -> Size:
    """The size of a problem."""
    program, _ = problem.bind(x0)
    _, vector = flatten_parameters(x0)
    layout = program.layout
    rows = (part.stop - part.start for part in layout.slices)
    kinds = zip(layout.names, layout.kinds, rows, strict=True)
    return Size(int(vector.size), program.population, tuple(Part(*kind) for kind in kinds), repr(problem.stated_domain))

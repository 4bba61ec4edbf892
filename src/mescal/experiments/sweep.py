"""Sweeps: many tasks into one store, over processes; what is finished is not run again.

`jobs=4` starts processes of joblib's on this machine. An executor in its place, such as those of Dask and Ray, reaches other
machines, which must see the store and the cache of compiled programs under the same paths.

```python
tasks = product(["neyman-pearson/spambase"], ["spider", "natasha2"], seeds=range(5), tols=[0.01])
sweep(tasks, "runs/spambase", jobs=client.get_executor())      # client = dask.distributed.Client(address)
```

Tasks that differ in seed and tolerance alone run in one process, one after the other, and share their compilations. A
sweep that was killed goes on where it stopped when it is started again: finished folders are kept, others go on
from their newest checkpoint or start over.
"""

import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..distribution import install
from ..errors import InputError
from ..files import LOCK, WriteError, as_path
from ..kept_programs import keep_compilations, kept_in
from ..run import Status
from .own import OwnSolver
from .run import clear, run, stored_run
from .store import RESULT, StoredRun, load_run
from .task import Task, task

POLL = 0.25  # seconds between two looks at the store

log = logging.getLogger("mescal")


@dataclass(frozen=True)
class Swept:
    """What came out of a sweep: the runs in the order of the tasks, and in words what failed, by folder."""

    runs: list[StoredRun]
    failed: dict[Path, str]

    @property
    def certified(self) -> bool:
        """Whether every run ended with a certificate."""
        return not self.failed and all(stored.converged for stored in self.runs)


Watcher = Callable[[str, Path, Task], Any]  # called with "kept", "changed", "started" or "finished", folder and task


def product(
    problems: Iterable[str],
    solvers: Iterable[str | OwnSolver | tuple[str | OwnSolver, Mapping[str, Any]]],
    *,
    seeds: Iterable[int] = (0,),
    tols: Iterable[Any] = (0.01,),
    parameters: Mapping[str, Any] | None = None,
    **settings: Any,
) -> list[Task]:
    """Every combination of problems, solvers, tolerances and seeds as a task; `settings` as for `task`.

    A solver is a name, or that of a file, `own_solver("my_solver.py:MySolver")`, or one of these with options,
    `("spider", {"batch": 16})`.
    """
    named = [solver if isinstance(solver, tuple) else (solver, {}) for solver in solvers]
    seeds, tols = list(seeds), list(tols)
    return [
        task(problem, parameters=parameters, solver=solver, options=options, tol=tol, seed=seed, **settings)
        for problem in problems
        for solver, options in named
        for tol in tols
        for seed in seeds
    ]


def sweep(
    tasks: Sequence[Task],
    root: Path | str,
    *,
    jobs: int | Executor = 1,
    force: bool = False,
    watch: Watcher | None = None,
) -> Swept:
    """Run the tasks that the store does not hold yet.

    **Arguments:**

    - `root`: the store; each task has its folder below it, see `Task.folder`.
    - `jobs`: how many processes of this machine, or an executor: Dask's `client.get_executor()`, `RayExecutor()`.
    - `force`: run everything again.
    - `watch`: called as runs are found, started and finished, from a thread of its own; "changed" are runs that are stored, were
      made by code that has changed since, and are run again.
    """
    folders = {as_path(root, "root") / given.folder: given for given in tasks}
    if jobs != 1 and not isinstance(jobs, Executor):
        _joblib()  # said before `force` clears anything
    if len(folders) < len(tasks):
        raise InputError("two tasks share a folder", "tasks that differ in what names their folder", "sweep them apart")
    todo, changed = {}, 0
    for folder, given in folders.items():
        if force:
            clear(folder)
        stored = stored_run(given, folder)
        if stored is not None and stored.finished and stored.current:
            if watch is not None:
                watch("kept", folder, given)
            continue
        todo[folder] = given
        if stored is not None and not stored.current:
            changed += 1
            if watch is not None:
                watch("changed", folder, given)
    if changed and watch is None:
        log.warning("%d stored runs were made by code that has changed since: they are run again", changed)
    groups: dict[str, list[tuple[Task, Path]]] = {}
    for folder, given in todo.items():
        groups.setdefault(given.group, []).append((given, folder))
    with _Watch(todo, watch):
        failed = _run_all(list(groups.values()), jobs)
    return Swept([load_run(folder) for folder in folders if folder not in failed], failed)


def _run_all(groups: list[list[tuple[Task, Path]]], jobs: int | Executor) -> dict[Path, str]:
    if not groups:
        return {}
    if jobs == 1:
        outcomes = [_run_group(group) for group in groups]
    elif isinstance(jobs, Executor):
        outcomes = _submitted(groups, jobs)
    else:
        joblib = _joblib()
        work = (joblib.delayed(_in_worker)(group, kept_in(), os.getpid()) for group in groups)
        with warnings.catch_warnings():
            # joblib exchanges workers whose memory grew, as compiled programs make it grow; no job is lost.
            warnings.filterwarnings("ignore", message="A worker stopped while some jobs", category=UserWarning)
            outcomes = joblib.Parallel(n_jobs=jobs)(work)
    return {folder: sentence for outcome in outcomes for folder, sentence in (outcome or {}).items()}


def _joblib() -> Any:
    try:
        return import_module("joblib")
    except ImportError:
        raise InputError(
            "joblib is not installed",
            "joblib, which starts the processes of this machine",
            f"{install('cli')}, or jobs=1",
        ) from None


def _submitted(groups: list[list[tuple[Task, Path]]], executor: Executor) -> list[dict[Path, str]]:
    """Groups in the processes of an executor, which may work in other folders; if one raises, those that wait are called off."""
    given = {folder.absolute(): folder for group in groups for _, folder in group}
    placed = [[(task, folder.absolute()) for task, folder in group] for group in groups]
    futures = [executor.submit(_in_worker, group, kept_in(), os.getpid()) for group in placed]
    try:
        outcomes = [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return [{given[folder]: sentence for folder, sentence in outcome.items()} for outcome in outcomes]


def _in_worker(group: list[tuple[Task, Path]], cache: Path | None, parent: int) -> dict[Path, str]:
    """A group in a process of its own: it leaves Ctrl-C to its parent, and does not outlive it."""
    own_child = os.getppid() == parent
    if own_child and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if cache is not None:
        keep_compilations(cache)

    def look_up(_: Any = None):
        if own_child and os.getppid() != parent:
            raise SystemExit(1)

    return _run_group(group, look_up)


def _run_group(group: list[tuple[Task, Path]], look_up: Callable[..., Any] | None = None) -> dict[Path, str]:
    """Run tasks that share their problem; what fails is told and does not stop the others."""
    failed, named = {}, None
    for given, folder in group:
        if look_up is not None:
            look_up()
        try:
            named = given.make_problem() if named is None else named
            stored = run(given, folder, named=named, progress=look_up)
        except WriteError:
            raise
        except Exception as error:
            failed[folder] = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        else:
            if stored.result is not None and stored.result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
    return failed


class _Watch:
    """Tells of runs as their files appear, so that it works whatever process or machine runs them."""

    def __init__(self, todo: Mapping[Path, Task], watch: Watcher | None):
        self.todo, self.watch = dict(todo), watch
        self.before = {folder: _written(folder / RESULT) for folder in todo}
        self.started: set[Path] = set()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> "_Watch":
        if self.watch is not None:
            self.thread.start()
        return self

    def __exit__(self, *_: Any):
        if self.watch is not None:
            self.over.set()
            self.thread.join()
            self._look()

    def _poll(self):
        while not self.over.wait(POLL):
            self._look()

    def _look(self):
        assert self.watch is not None
        for folder, given in list(self.todo.items()):
            ended = _written(folder / RESULT) not in (None, self.before[folder])
            if folder not in self.started and (ended or (folder / LOCK).exists()):
                self.started.add(folder)
                self.watch("started", folder, given)
            if ended:
                del self.todo[folder]
                self.watch("finished", folder, given)


def _written(file: Path) -> int | None:
    """When a file was written; None if it is not there."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None

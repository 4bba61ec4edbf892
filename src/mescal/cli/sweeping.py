"""A sweep in the terminal: how many runs are done, which are going on, and a line for each that ended."""

import math
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bars, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from ..experiments import Swept, Task, load_run, sweep
from ..experiments.table import count
from ..kept_programs import keep_compilations
from .show import complaints, shown_path


class SweepProgress:
    """Called by `sweep` from its own thread."""

    def __init__(self, total: int, quiet: bool):
        self.quiet, self.console = quiet, complaints()
        self.lock = threading.Lock()
        self.running: dict[Path, str] = {}
        self.kept = self.changed = 0
        self.bars = Bars(SpinnerColumn(), MofNCompleteColumn(), TextColumn("runs"), BarColumn(32), TimeElapsedColumn())
        self.bar = self.bars.add_task("", total=total)
        live = self.console.is_terminal and not quiet
        self.live = Live(self, console=self.console, refresh_per_second=8, transient=True) if live else None

    def __enter__(self) -> "SweepProgress":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: Any):
        if self.live is not None:
            self.live.stop()
        if self.kept and not self.quiet:
            self.console.print(f"{self.kept} stored already and not run again.", style="dim")
        if self.changed and not self.quiet:
            self.console.print(f"{self.changed} made by code that has changed since, and run again.", style="dim")

    def __call__(self, event: str, folder: Path, given: Task):
        with self.lock:
            if event == "started":
                self.running[folder] = short(given)
                return
            if event == "changed":
                self.changed += 1
                return
            self.running.pop(folder, None)
            self.kept += event == "kept"
            self.bars.advance(self.bar)
        if event == "finished" and not self.quiet:
            self.console.print(self._line(folder, given), soft_wrap=True)

    def __rich__(self) -> Group:
        with self.lock:
            running = [Text(f"  {text}", "dim") for text in self.running.values()]
        return Group(self.bars, *(running or [Text("  starting", "dim")]))

    def _line(self, folder: Path, given: Task) -> Text:
        result = load_run(folder).result
        assert result is not None
        verdict = (result.status.word, "green" if result.converged else "red")
        told = f"{count(result.work.total)} evaluations"
        if math.isfinite(result.objective):
            told += f", objective {result.objective:.4g}"
        return Text.assemble(verdict, f"  {short(given)}  ", (told, "dim"))


def short(given: Task) -> str:
    """A task in a few words."""
    return f"{given.label} {given.solver_label} tol {given.tolerance} seed {given.seed}"


def sweep_shown(tasks: Sequence[Task], root: Path, jobs: int | None, force: bool, quiet: bool) -> Swept:
    """Run a sweep with its progress shown; failures are told at the end."""
    keep_compilations()
    groups = len({given.group for given in tasks})
    processes = min(os.cpu_count() or 1, groups) if jobs is None else jobs
    with SweepProgress(len(tasks), quiet) as watch:
        swept = sweep(tasks, root, jobs=processes, force=force, watch=watch)
    for folder, sentence in swept.failed.items():
        watch.console.print(f"[red bold]failed[/] {shown_path(folder)}: {sentence}", soft_wrap=True)
    return swept

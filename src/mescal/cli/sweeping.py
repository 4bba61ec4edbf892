"""A sweep in the terminal: how many runs are done, which are going on, and a line for each that ended."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bars, SpinnerColumn, TextColumn, TimeElapsedColumn

from ..experiments import Swept, Task, load_run, sweep
from ..experiments.compilation import keep_compilations
from ..experiments.table import count
from .screen import complaints
from .show import shown_path


class SweepProgress:
    """Called by `sweep` from its own thread."""

    def __init__(self, total: int, quiet: bool):
        self.quiet, self.console = quiet, complaints()
        self.lock = threading.Lock()
        self.running: dict[Path, str] = {}
        columns = (
            SpinnerColumn(),
            MofNCompleteColumn(),
            BarColumn(24),
            TimeElapsedColumn(),
            TextColumn("{task.description}", style="dim"),
        )
        live = self.console.is_terminal and not quiet
        self.bars = Bars(*columns, console=self.console, transient=True) if live else None
        self.bar = self.bars.add_task("starting", total=total) if self.bars is not None else None
        self.kept = 0

    def __enter__(self) -> "SweepProgress":
        if self.bars is not None:
            self.bars.start()
        return self

    def __exit__(self, *_: Any):
        if self.bars is not None:
            self.bars.stop()
        if self.kept and not self.quiet:
            self.console.print(f"{self.kept} stored already and not run again.", style="dim")

    def __call__(self, event: str, folder: Path, given: Task):
        with self.lock:
            if event == "started":
                self.running[folder] = (
                    f"{given.label} {given.solver} tol {given.tolerance.gradient:g} seed {given.seed}"
                )
            else:
                self.running.pop(folder, None)
                self.kept += event == "kept"
            if event == "finished" and not self.quiet:
                self.console.print(self._line(folder, given), soft_wrap=True)
            if self.bars is not None and self.bar is not None:
                now = "; ".join(self.running.values()) or "starting"
                self.bars.update(self.bar, advance=int(event != "started"), description=now)

    def _line(self, folder: Path, given: Task) -> str:
        result = load_run(folder).result
        assert result is not None
        verdict = "[green]certified[/]    " if result["converged"] else f"[red]{result['status']}[/]"
        return (
            f"{verdict} {given.label} {given.solver} tol {given.tolerance.gradient:g} seed {given.seed}: "
            f"{count(result['work']['total'])} evaluations, objective {result['objective']:.4g}, {result['seconds']['total']:.1f} s"
        )


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

"""What a person sees while a run goes on: a live panel on a terminal, a line per outer iteration elsewhere.

Of a sweep: how many runs are done, which are going on, and a line for each that ended.
"""

import math
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bars, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ..certificate import Tolerance
from ..experiments import Swept, Task, load_run, sweep
from ..experiments.table import count
from ..kept_programs import keep_compilations, kept_in
from ..report.bar import CELLS, TimeLeft, Way, about
from ..run import Row
from .show import complaints, shown_path


class Shown:
    """A context manager that is shown while it lasts, where there is a terminal."""

    def __init__(self, console: Console, quiet: bool):
        self.console, self.quiet = console, quiet
        live = console.is_terminal and not quiet
        self.live = Live(self, console=console, refresh_per_second=8, transient=True) if live else None  # pyright: ignore[reportArgumentType]

    def __enter__(self) -> Self:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: Any):
        if self.live is not None:
            self.live.stop()


class Progress(Shown):
    """Called with every row of a history."""

    def __init__(self, task: Task, quiet: bool = False, console: Console | None = None):
        super().__init__(console or complaints(), quiet)
        self.task = task
        self.left = TimeLeft(task.tolerance, task.max_seconds)
        self.started = time.monotonic()
        self.way = Way(task.tolerance)
        self.far: dict[str, float] = {}
        self.row: Row | None = None
        self.spinner = Spinner("dots")

    def __call__(self, row: Row):
        """One more outer iteration."""
        self.row = row
        self.left.add(row)
        self.far = self.way.add(row)
        if self.live is None and not self.quiet:
            self.console.print(line(row, self.task.tolerance, self.left.seconds), soft_wrap=True)

    def __rich__(self) -> Group:
        elapsed = time.monotonic() - self.started
        self.spinner.update(text=self._head(elapsed))
        if self.row is None:
            return Group(self.spinner, Text(f"  {self._first()}", style="dim"))
        return Group(self.spinner, self._gauges(self.row))

    def _head(self, elapsed: float) -> Text:
        text = Text.assemble((self.task.label, "bold"), f" with {self.task.solver}")
        text.append(f"  {elapsed:.0f} s", style="dim")
        if self.row is not None:
            text.append(f"  outer iteration {self.row.outer + 1}, {count(self.row.work)} evaluations")
            if (left := self.left.seconds) is not None:
                text.append(f", {about(left)}", style="dim")
        return text

    def _first(self) -> str:
        cached = "; compiled programs are kept, so that later runs start sooner" if kept_in() is not None else ""
        return f"Compiling and solving the first subproblem{cached}."

    def _gauges(self, row: Row) -> Table:
        table = Table.grid(padding=(0, 2))
        for check in row.checks(self.task.tolerance):
            known = math.isfinite(check.bound)
            table.add_row(
                f"  {check.name}",
                Text(f"{check.bound:.2e}" if known else "not yet", style="bold" if known else "dim"),
                Text(f"{check.sign} {check.limit:g}", style="dim"),
                bar(self.far[check.name]) if known else Text(""),
                Text("met", style="green") if check.met else Text(""),
            )
        return table


def bar(far: float) -> Text:
    """How much of the way has been gone; full when a measure is met."""
    full = round(CELLS * far)
    return Text.assemble(("━" * full, "green" if far >= 1 else "yellow"), ("╌" * (CELLS - full), "dim"))


def line(row: Row, tolerance: Tolerance, left: float | None) -> str:
    """One outer iteration as plain text."""
    parts = [f"outer {row.outer + 1:3d}", f"work {count(row.work):>9}"]
    for name, _, bound, limit, _, _, sign in row.checks(tolerance):
        parts.append(f"{name} {bound:9.2e} ({sign} {limit:g})" if math.isfinite(bound) else f"{name} not yet")
    parts.append(f"{row.seconds:.1f} s" + (f", {about(left)}" if left is not None else ""))
    return "  ".join(parts)


class SweepProgress(Shown):
    """Called by `sweep` from its own thread."""

    def __init__(self, total: int, quiet: bool):
        super().__init__(complaints(), quiet)
        self.lock = threading.Lock()
        self.running: dict[Path, str] = {}
        self.kept = self.changed = 0
        self.bars = Bars(SpinnerColumn(), MofNCompleteColumn(), TextColumn("runs"), BarColumn(32), TimeElapsedColumn())
        self.bar = self.bars.add_task("", total=total)

    def __exit__(self, *_: Any):
        super().__exit__()
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

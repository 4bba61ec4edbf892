"""What a person sees while a run goes on: a live panel on a terminal, a line per outer iteration elsewhere."""

import math
import time
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ..certificate import Tolerance
from ..experiments import Task
from ..experiments.table import count
from ..kept_programs import kept_in
from ..report.bar import CELLS, TimeLeft, Way, about
from ..run import Row
from .show import complaints


class Progress:
    """Called with every row of a history; a context manager, since a live panel must be ended."""

    def __init__(self, task: Task, quiet: bool = False, console: Console | None = None):
        self.task, self.quiet = task, quiet
        self.console = console or complaints()
        self.left = TimeLeft(task.tolerance, task.max_seconds)
        self.started = time.monotonic()
        self.way = Way(task.tolerance)
        self.far: dict[str, float] = {}
        self.row: Row | None = None
        live = self.console.is_terminal and not quiet
        self.live = Live(self, console=self.console, refresh_per_second=8, transient=True) if live else None
        self.spinner = Spinner("dots")

    def __enter__(self) -> "Progress":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: Any):
        if self.live is not None:
            self.live.stop()

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

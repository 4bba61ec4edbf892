"""What a person sees in the terminal: a run, verdict first, measures against their tolerances, then the rest; on which streams.

Results go to standard output, progress and complaints to standard error.
"""

import math
import os
import sys
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..certificate import Certificate, Check, Tolerance
from ..experiments import About, StoredRun, Task
from ..experiments.table import count
from ..run import Result

BAR = 20  # cells


def show_run(console: Console, stored: StoredRun, lead: str = ""):
    """A stored run, with a sentence before it if there is one to say."""
    result, about = stored.result, stored.about
    if lead:
        console.print(lead)
    if result is None or about is None:
        console.print(
            f"{shown_path(stored.path)} has not ended; `mescal resume {shown_path(stored.path)}` carries it on."
        )
        return
    given = Task.from_config(stored.config)
    show_verdict(
        console,
        stored,
        f"{given.label} with {given.solver}, seed {given.seed}",
        Text.assemble(verdict(result.converged), "  ", str(result.status)),
        [measure_table(result.certificate, result.tolerance), Text(""), facts(result, about)],
        result.certificate,
        result.converged,
    )


def show_verdict(
    console: Console,
    stored: StoredRun,
    title: str,
    first: Text,
    parts: list[RenderableType],
    judged: Certificate,
    good: bool,
):
    """A panel with the verdict, and the judge's warnings below."""
    console.print(
        Panel(
            Group(first, Text(""), *parts),
            title=Text(title),
            title_align="left",
            subtitle=Text(shown_path(stored.path)),
            subtitle_align="right",
            border_style="green" if good else "red",
            padding=(1, 2),
            width=min(console.width, 100),
        )
    )
    for sentence in judged.warnings:
        console.print(Text.assemble(("warning: ", "yellow bold"), sentence))


def verdict(good: bool) -> Text:
    """The verdict in a word."""
    return Text("CERTIFIED", "bold green") if good else Text("NOT CERTIFIED", "bold red")


def measure_table(certificate: Certificate, tolerance: Tolerance) -> Table:
    """The measures of a certificate against what the tolerance asks of them; those that miss it are marked."""
    table = Table.grid(padding=(0, 2))
    for check in certificate.checks(tolerance):
        table.add_row(
            check.name,
            Text(_measured(check), "bold"),
            Text(f"{check.sign} {check.limit:g}", "dim"),
            _gauge(check),
            Text("met", "green") if check.met else Text(_missed(check), "red bold"),
        )
        if check.name == "feasibility":
            for part in (certificate.violation, certificate.complementarity):
                name = "violation" if part is certificate.violation else "complementarity"
                table.add_row(Text(f"  {name}", "dim"), Text(f"{part.value:.3g}", "dim"))
    return table


def _measured(check: Check) -> str:
    """The value, and the bound that decides where it is another number."""
    value, bound = check.measured.value, check.bound
    told = f"{value:.3g}" if math.isfinite(value) else "none"
    if math.isfinite(bound) and math.isfinite(value) and abs(bound - value) > 1e-6 * max(1.0, abs(bound)):
        told += f", at {'least' if check.sign == '>=' else 'most'} {bound:.3g}"
    return told


def _missed(check: Check) -> str:
    up_to = "" if check.refuted else "up to "
    return f"{up_to}{check.share:.3g} times too large" if check.limit else f"{up_to}{check.bound:.3g} too large"


def _gauge(check: Check) -> RenderableType:
    """How much of the tolerance is used up."""
    full = BAR if math.isnan(check.share) else round(BAR * min(check.share, 1.0))
    return Text.assemble(("█" * full, "green" if check.met else "red"), ("░" * (BAR - full), "dim"))


def facts(result: Result, about: About) -> Table:
    """Objective, constraints with their multipliers, work and time."""
    table = Table.grid(padding=(0, 2))
    work, seconds = result.work, result.seconds
    optimum = "" if about.optimum is None else f" (best known {about.optimum:.6g})"
    table.add_row("objective", (f"{result.objective:.6g}" if math.isfinite(result.objective) else "none") + optimum)
    for line in result.constraint_lines():
        table.add_row("constraint", line)
    table.add_row(
        "work",
        f"{count(work.total)} evaluations: {count(work.gradients)} gradients + 2 x {count(work.hvps)} "
        f"Hessian-vector products; the judge's own {count(work.certificate)} are apart",
    )
    if result.spread is not None:
        table.add_row("starts", f"{result.spread}")
    if result.reason:
        table.add_row("solver", result.reason)
    table.add_row("outer iterations", f"{result.outer_iterations}")
    table.add_row(
        "seconds",
        f"{seconds.total:.2f}, of which compiling {seconds.compile:.2f} and judging {seconds.certificate:.2f}, "
        "which overlap",
    )
    for sentence in result.warnings:
        table.add_row("warning", sentence)
    table.columns[0].style = "dim"
    return table


def shown_path(path: Path) -> str:
    """A path as short as it can be said from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


WIDE = 140  # columns where no terminal says how many there are


def results() -> Console:
    """Standard output."""
    return _console(sys.stdout.isatty(), stderr=False)


def complaints() -> Console:
    """Standard error."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(terminal: bool, stderr: bool) -> Console:
    # Made anew each time, since tests and shells exchange the streams.
    width = None if terminal or "COLUMNS" in os.environ else WIDE
    return Console(stderr=stderr, width=width, highlight=False)

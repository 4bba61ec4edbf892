"""A run as a person sees it in the terminal: verdict first, the three measures against their tolerances, then the rest."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..certificate import Tolerance
from ..experiments import StoredRun, Task
from ..experiments.result_file import long_tolerance
from ..experiments.table import count

EMPTY_CONE = "the cone is {0}"  # the judge's words where there is no direction to test: null there is +infinity
BAR = 20  # cells
ACTIVE = 1e-3  # of a multiplier or a value: below it counts as nothing when a constraint is described in a word


def show_run(console: Console, stored: StoredRun, lead: str = ""):
    """A stored run, with a sentence before it if there is one to say."""
    result = stored.result
    if lead:
        console.print(lead)
    if result is None:
        console.print(
            f"{shown_path(stored.path)} has not ended; `mescal resume {shown_path(stored.path)}` carries it on."
        )
        return
    given = Task.from_config(stored.config)
    title = Text.assemble(given.label, " with ", given.solver, f", seed {given.seed}")
    tolerance = long_tolerance(result["tol"])
    parts = [verdict_line(result), Text(""), measure_table(result["certificate"], tolerance), Text(""), facts(result)]
    certified = result["converged"]
    console.print(
        Panel(
            Group(*parts),
            title=title,
            title_align="left",
            subtitle=Text(shown_path(stored.path)),
            subtitle_align="right",
            border_style="green" if certified else "red",
            padding=(1, 2),
            width=min(console.width, 100),
        )
    )
    for sentence in result["certificate"]["warnings"]:
        console.print(Text.assemble(("warning: ", "yellow bold"), sentence))


def verdict_line(result: Mapping[str, Any]) -> Text:
    """The verdict and, where there is none, what to do."""
    if result["converged"]:
        return Text.assemble(
            ("CERTIFIED", "bold green"), "  ", result["verdict"].removeprefix("Certified: ").capitalize()
        )
    return Text.assemble(("NOT CERTIFIED", "bold red"), "  ", result["verdict"])


def measure_table(certificate: Mapping[str, Any], tolerance: Tolerance) -> Table:
    """The measures of a certificate, as JSON holds them, against the tolerances."""
    table = Table.grid(padding=(0, 2))
    rows = [
        ("stationarity", certificate["stationarity"], "upper", tolerance.gradient),
        ("feasibility", certificate["feasibility"], "upper", tolerance.gradient),
        ("curvature", certificate["curvature"], "lower", tolerance.curvature),
    ]
    if tolerance.relative is not None:
        rows.append(("relative stationarity", certificate["relative_stationarity"], "upper", tolerance.relative))
    for name, measured, end, limit in rows:
        bound = measured[end]
        missing = 0.0 if EMPTY_CONE in measured["how"] else math.inf
        against = missing if bound is None else max(0.0, -bound) if end == "lower" else bound
        met = against <= limit
        sign = ">= -" if end == "lower" else "<= "
        mark = Text("met", "green") if met else Text(f"{against / limit:.3g} times too large", "red bold")
        value = "none" if measured["value"] is None else f"{measured['value']:.3g}"
        if (
            bound is not None
            and measured["value"] is not None
            and abs(bound - measured["value"]) > 1e-6 * max(1.0, abs(bound))
        ):
            value += f", at {'least' if end == 'lower' else 'most'} {bound:.3g}"
        table.add_row(name, Text(value, "bold"), Text(f"{sign}{limit:g}", "dim"), _gauge(against / limit), mark)
    return table


def facts(result: Mapping[str, Any]) -> Table:
    """Objective, constraints with their multipliers, work and time."""
    table = Table.grid(padding=(0, 2))
    work, seconds = result["work"], result["seconds"]
    optimum = "" if result.get("optimum") is None else f" (best known {result['optimum']:.6g})"
    table.add_row("objective", f"{_number(result['objective'])}{optimum}")
    kinds = {entry["name"]: entry["kind"] for entry in result.get("statement", {}).get("constraints", [])}
    for name, value in result["constraints"].items():
        table.add_row("constraint", constraint_line(name, kinds.get(name, "=="), value, result["multipliers"][name]))
    table.add_row(
        "work",
        f"{count(work['total'])} evaluations: {count(work['gradients'])} gradients + 2 x {count(work['hvps'])} "
        f"Hessian-vector products; the judge's own {count(work['certificate'])} are apart",
    )
    if result.get("reason"):
        table.add_row("solver", result["reason"])
    table.add_row("outer iterations", f"{result['outer_iterations']}")
    table.add_row(
        "seconds",
        f"{seconds['total']:.2f}, of which compiling {seconds['compile']:.2f} and judging {seconds['certificate']:.2f}, "
        "which overlap",
    )
    for sentence in result.get("warnings", ()):
        table.add_row("warning", sentence)
    for column in table.columns[:1]:
        column.style = "dim"
    return table


def constraint_line(name: str, kind: str, value: Any, multiplier: Any) -> str:
    """One constraint in words."""
    values, multipliers = np.ravel(np.asarray(value, float)), np.ravel(np.asarray(multiplier, float))
    if values.size == 1:
        scale = max(ACTIVE, ACTIVE * abs(float(multipliers[0])))
        state = "" if kind == "==" else ", active" if abs(multipliers[0]) > scale else ", slack"
        sign = "=" if kind == "==" else "<="
        return f"{name}: {float(values[0]):.3g} {sign} 0, multiplier {float(multipliers[0]):.4g}{state}"
    largest, norm = np.abs(values).max(), np.linalg.norm(multipliers)
    return f"{name}: {values.size} rows, largest |value| {largest:.3g}, |multipliers| {norm:.4g}"


def shown_path(path: Path) -> str:
    """A path as short as it can be said from here."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _gauge(share: float) -> RenderableType:
    """How much of the tolerance is used up."""
    full = round(BAR * min(share, 1.0))
    return Text.assemble(("█" * full, "green" if share <= 1 else "red"), ("░" * (BAR - full), "dim"))

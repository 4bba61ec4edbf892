"""What the conformance suites of solvers and of baselines have in common: records of runs, ways to end them, and prices."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..oracle import Tally
from ..run import Result, Status
from .counting import Calls
from .exercises import Exercise


def require(method: Any, holds: Any, statement: str) -> None:
    """An AssertionError that names the method and the property that does not hold."""
    if not holds:
        raise AssertionError(f"{method.name}: {statement}")


def require_record(method: Any, result: Result) -> None:
    """The history has a row per outer iteration, work rises along it, and totals are the sums of their parts."""
    rows, work = result.history, result.work
    require(method, len(rows) == result.outer_iterations > 0, "the history has a row per outer iteration")
    require(method, np.all(np.diff([0, *rows.column("work")]) > 0), "work rises from row to row")
    require(method, rows[-1].work <= work.total, "the work of the last row is part of the total")
    require(method, work.certificate > 0, "the judge's work is counted beside the solver's")
    require(method, 0 <= result.seconds.compile <= result.seconds.total, "compiling is part of the seconds")
    text = str(result)
    require(
        method, text.startswith("CERTIFIED") and len(text.splitlines()) <= 12, f"a result prints as few lines:\n{text}"
    )


def require_prices(method: Any, work: Tally, objective: Calls, constraint: Calls) -> None:
    """The counters of Definition 1.3 against what ran, of an objective and one row of constraints over equal populations.

    Several directions at one point are one evaluation, and as many products: by these, and by no more, values and gradients of C
    may be claimed that did not run. Nothing that ran may be missing.
    """
    ran = {
        "value_samples": objective.values - objective.gradients,
        "gradient_samples": objective.gradients - objective.hvps,
        "hvp_samples": objective.hvps,
        "objective_gradients": objective.gradients - objective.hvps,
        "objective_hvps": objective.hvps,
        "constraint_values": constraint.values,
        "constraint_gradients": constraint.gradients,
        "constraint_hvps": constraint.hvps,
    }
    require(method, objective.values > 0, "an inner solve looks at the problem")
    for name, number in ran.items():
        claimed = getattr(work, name)
        require(method, claimed >= number, f"all that ran is priced: {name} is {claimed}, and {number} ran")
    directions = work.constraint_hvps - constraint.hvps
    for name in ("constraint_values", "constraint_gradients"):
        claimed, most = getattr(work, name), ran[name] + directions
        require(
            method, claimed <= most, f"nothing is priced that did not run: {name} is {claimed}, and {most} ran at most"
        )


def check_endings(method: Any, solve: Callable[..., Result], at: Exercise) -> None:
    """Budgets, callbacks and Ctrl-C end a run with their status, keep a finite point, and never claim convergence."""

    def interrupt(_):
        raise KeyboardInterrupt

    rows = []
    strict: dict[str, Any] = {"tol": 1e-12}
    found = {
        Status.WORK_LIMIT: solve(at.problem, at.x0, max_work=1.0, **strict),
        Status.TIME_LIMIT: solve(at.problem, at.x0, max_seconds=1e-3, **strict),
        Status.STOPPED: solve(at.problem, at.x0, callback=lambda row: row.outer == 1, progress=rows.append, **strict),
        Status.INTERRUPTED: solve(at.problem, at.x0, callback=interrupt, **strict),
    }
    for status, result in found.items():
        require(method, result.status is status, f"what ends a run is its status, {status.word}: {result}")
        honest = not result.converged and np.isfinite(result.x).all() and "NOT CERTIFIED" in str(result)
        require(method, honest, f"a run that was ended keeps a finite point and claims nothing: {result}")
    seen = len(found[Status.STOPPED].history)
    require(method, seen == len(rows) == 2, f"a callback that returns True after two rows stops there: {seen} rows")

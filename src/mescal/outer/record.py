"""A row of the history from the state of an inner solve, unscaled."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificate import certify
from ..solvers.base import Goal
from .history import Row

if TYPE_CHECKING:
    from .run import Run

INNER = {0: "stopped", 1: "verified", 2: "cap", 3: "not finite", 4: "stationary"}


def make_row(run: "Run", state: Any, constraint: np.ndarray, penalty: float, goal: Goal, inner: int) -> Row:
    """A row of the history."""
    progress = state.progress
    scaled = run.scales.scaled_multipliers(run.multipliers)
    violation = constraint * run.scales.constraints
    value = float(state.reset.value)
    objective = (value - scaled @ violation - penalty / 2 * violation @ violation) / run.scales.objective
    row = Row(
        outer=run.outer,
        work=run.work.total,
        gradients=run.work.gradients,
        hvps=float(run.work.hvps),
        searches=run.searches.total,
        seconds=run.clock.seconds,
        objective=float(objective) if run.program.population is not None else float("nan"),
        stationarity=float(progress.stationarity) / run.scales.objective,
        feasibility=float(np.linalg.norm(constraint)),
        curvature=float(progress.curvature) / run.scales.objective,
        penalty=penalty,
        multipliers=tuple(float(v) for v in run.multipliers),
        step=1 / max(float(state.memory.smoothness), 1e-300),
        batch=int(getattr(run.solver, "batch", 1)),
        large_batch=goal.large_batch,
        inner_steps=int(progress.steps),
        escapes=int(progress.escapes),
        inner=INNER[inner],
        value_start=float(state.first_value),
        value_end=value,
        exact=exact_measures(run, penalty) if run.settings.record == "exact" else {},
    )
    run.history.append(row)
    if run.settings.progress is not None:
        run.settings.progress(row)
    return row


def exact_measures(run: "Run", penalty: float) -> dict[str, float]:
    """The judge's measures for figures: counted apart and never fed back."""
    x, slack = run.form.split(run.z)
    layout = run.program.layout
    certificate = certify(
        run.problem,
        run.program.parameters.restore(x),
        slack=np.asarray(slack, np.float64) if layout.slack_size else np.zeros(0),
        tol=run.settings.tolerance,
        cone=run.settings.cone,
        penalty=penalty,
    )
    run.judged += certificate.work
    return {
        "stationarity": certificate.stationarity.value,
        "feasibility": certificate.feasibility.value,
        "curvature": certificate.curvatures["whole"].value,
        "objective": certificate.objective.value,
    }

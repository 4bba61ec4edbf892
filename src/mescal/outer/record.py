"""A row of the history from an inner solve, unscaled."""

from typing import TYPE_CHECKING

import numpy as np

from ..certificate import certify
from ..problem import speaks
from .history import Row
from .standing import Standing

if TYPE_CHECKING:
    from .inner import Solved

INNER = {0: "stopped", 1: "verified", 2: "cap", 3: "not finite", 4: "stationary", 5: "ran away", 6: "far away"}


def make_row(run: Standing, solved: "Solved", constraint: np.ndarray, penalty: float) -> Row:
    """A row of the history."""
    progress, outcome = solved.progress, solved.outcome
    row = Row(
        outer=run.outer,
        work=run.work.total,
        gradients=run.work.gradients,
        hvps=float(run.work.hvps),
        searches=run.searches.total,
        seconds=run.clock.seconds,
        objective=outcome.objective / run.scales.objective,
        stationarity=float(outcome.stationarity) / run.scales.objective,
        feasibility=float(np.linalg.norm(constraint)),
        curvature=float(progress.curvature) / run.scales.objective,
        penalty=run.scales.penalty(penalty),
        multipliers=tuple(float(v) for v in run.multipliers),
        step=outcome.step * run.scales.objective,
        batch=outcome.batch,
        large_batch=outcome.large_batch,
        inner_steps=int(progress.steps),
        escapes=int(progress.escapes),
        inner=INNER[solved.status],
        value_start=float(outcome.first_value) / run.scales.objective,
        value_end=float(outcome.value) / run.scales.objective,
        copies=solved.copies,
        exact=exact_measures(run, penalty) if run.settings.record == "exact" else {},
    )
    run.history.append(row)
    if run.settings.progress is not None and speaks():
        run.settings.progress(row)
    return row


def start_row(run: Standing) -> Row:
    """The start, before the first outer iteration (its `outer` is -1), as the judge measures it: where figures begin."""
    nothing = float("nan")
    measures = exact_measures(run, run.penalty)
    return Row(
        outer=-1,
        work=run.work.total,
        gradients=run.work.gradients,
        hvps=float(run.work.hvps),
        searches=0.0,
        seconds=run.clock.seconds,
        objective=measures["objective"],
        stationarity=measures["stationarity"],
        feasibility=measures["feasibility"],
        curvature=nothing,
        penalty=run.scales.penalty(run.penalty),
        multipliers=tuple(float(v) for v in run.multipliers),
        step=nothing,
        batch=0,
        large_batch=0,
        inner_steps=0,
        escapes=0,
        inner="start",
        value_start=nothing,
        value_end=nothing,
        exact=measures,
    )


def exact_measures(run: Standing, penalty: float) -> dict[str, float]:
    """The judge's measures for figures: counted apart and never fed back."""
    x, slack = run.form.split(run.z)
    layout = run.program.layout
    certificate = certify(
        run.problem,
        run.program.parameters.restore(x),
        slack=np.asarray(slack, np.float64) if layout.slack_size else np.zeros(0),
        tol=run.settings.tolerance,
        cone=run.settings.cone,
        penalty=run.scales.penalty(penalty),
    )
    run.judged += certificate.work
    return {
        "stationarity": certificate.stationarity.value,
        "feasibility": certificate.feasibility.value,
        "curvature": certificate.curvatures["whole"].value,
        "objective": certificate.objective.value,
    }

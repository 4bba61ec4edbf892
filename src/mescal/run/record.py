"""Rows of the history from what came out of a leg, unscaled."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..certificate import Certificate, certify
from ..problem import speaks
from .history import Row
from .judging import time_for
from .settings import Settings
from .setup import Setup
from .state import Reading, State

INNER = {
    0: "stopped",
    1: "verified",
    2: "cap",
    3: "not finite",
    4: "stationary",
    5: "ran away",
    6: "far away",
    7: "irregular",
}


def recorded(here: Setup, state: State, reading: Reading, judged: Certificate | None) -> State:
    """The state with a row for a leg that is over, which is shown where somebody looks; `judged` is its certificate, if any."""
    progress, outcome, scales = reading.progress, reading.outcome, state.scales
    state, measures = _measured(here, state)
    curvature = float(progress.curvature) / scales.objective
    row = Row(
        **_standing(here, state),
        searches=state.searches.total,
        objective=outcome.objective / scales.objective,
        stationarity=float(outcome.stationarity) / scales.objective,
        feasibility=float(np.linalg.norm(reading.constraint)),
        curvature=curvature if judged is None else judged.curvature.value,
        step=outcome.step * scales.objective,
        batch=outcome.batch,
        large_batch=outcome.large_batch,
        inner_steps=int(progress.steps),
        escapes=int(progress.escapes),
        inner=INNER[reading.ended],
        value_start=float(outcome.first_value) / scales.objective,
        value_end=float(outcome.value) / scales.objective,
        copies=reading.copies,
        exact=measures,
    )
    if here.settings.progress is not None and speaks():
        here.settings.progress(row)
    return replace(state, history=state.history.followed_by(row))


def shown_to_the_end(settings: Settings):
    """Tell a display that wants to know it that the run is over."""
    if callable(ended := getattr(settings.progress, "ended", None)):
        ended()


def begun(here: Setup, state: State) -> State:
    """With a row for the start (its `outer` is -1), as the judge measures it, where that is recorded: figures begin there."""
    if here.settings.record != "exact" or len(state.history) or not bool(np.isfinite(state.z).all()):
        return state
    nothing = float("nan")
    state, measures = _measured(here, state)
    row = Row(
        **_standing(here, replace(state, outer=-1)),
        searches=0.0,
        objective=measures["objective"],
        stationarity=measures["stationarity"],
        feasibility=measures["feasibility"],
        curvature=nothing,
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
    return replace(state, history=state.history.followed_by(row))


def _standing(here: Setup, state: State) -> dict[str, Any]:
    return {
        "outer": state.outer,
        "work": state.work.total,
        "gradients": state.work.gradients,
        "hvps": float(state.work.hvps),
        "seconds": here.clock.seconds,
        "penalty": state.scales.penalty(state.penalty),
        "multipliers": tuple(float(v) for v in state.multipliers),
    }


def _measured(here: Setup, state: State) -> tuple[State, dict[str, float]]:
    """The judge's measures for figures, where they are asked for: counted apart and never fed back."""
    if here.settings.record != "exact":
        return state, {}
    certificate = certify(
        here.problem,
        here.parameters(state),
        slack=here.slack(state),
        tol=here.settings.tol,
        cone=here.settings.cone,
        penalty=state.scales.penalty(state.penalty),
        max_seconds=time_for(here),
    )
    return replace(state, judged=state.judged + certificate.work), {
        "stationarity": certificate.stationarity.value,
        "feasibility": certificate.feasibility.value,
        "curvature": certificate.curvatures["whole"].value,
        "objective": certificate.objective.value,
    }

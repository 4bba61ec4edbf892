"""Bounds moved inwards, so that a point at which the moved ones are nearly met meets the stated ones to a smaller tolerance.

With violations held to phi < eps (`Tolerance(feasibility=phi)`, eps its `gradient`) and k inequalities, c(x) + sigma <= 0 is solved
instead of c(x) <= 0, up to |c + sigma + s| <= phi + sigma:

    sigma = share (eps - phi) / sqrt(k):    c_j <= phi,    and complementarity at most  sigma (1 + sqrt(k)) + phi <= eps

What it costs is about sigma |lambda|_1 in the objective, so the share begins small. It doubles where the judge cannot see through
the noise that constraints are met, and falls to a quarter where the moved bounds turn out to be more than can be met. The judge is
asked about the problem as it was stated.
"""

from dataclasses import replace

import numpy as np

from ..certificate import Certificate, Tolerance
from ..problem.layout import Layout
from .scaling import Scales
from .setup import Setup
from .state import State

FIRST, LARGEST = 1 / 8, 1 / 2  # shares of what is left
WIDER, NARROWER = 2.0, 1 / 4


def moved_inwards(scales: Scales, layout: Layout, tolerance: Tolerance) -> Scales:
    """With the bounds of a run's start: moved where feasibility is asked for apart and there are inequalities alone."""
    left = tolerance.gradient - tolerance.violation
    if left <= 0 or not layout.size or not layout.inequality.all():
        return scales
    return replace(scales, inward=np.full(layout.size, FIRST * left / np.sqrt(layout.slack_size)))


def target(here: Setup, scales: Scales) -> float:
    """What |c + s| of the moved constraints is held to."""
    tolerance = here.settings.tol
    if tolerance.violation < tolerance.gradient:
        return tolerance.violation + float(scales.inward.max(initial=0.0))
    return tolerance.gradient if here.program.layout.slack_size else tolerance.violation


def wider(here: Setup, state: State, certificate: Certificate) -> State:
    """After a refusal: further inwards, where the constraints are what it is about."""
    tolerance, inward = here.settings.tol, state.scales.inward
    open_ones = [check.name for check in certificate.checks(tolerance) if not check.met]
    if "violation" not in open_ones or not inward.any():
        return state
    most = LARGEST * (tolerance.gradient - tolerance.violation) / np.sqrt(inward.size)
    return replace(state, scales=replace(state.scales, inward=np.minimum(WIDER * inward, most)))


def narrower(here: Setup, state: State) -> State:
    """Where the violation of the moved constraints no longer falls: less far inwards, and penalty and multipliers from anew."""
    if not state.scales.inward.any():
        return state
    scales = replace(state.scales, inward=NARROWER * state.scales.inward)
    return replace(
        state,
        scales=scales,
        penalty=here.settings.outer.penalty,
        multipliers=np.zeros_like(state.multipliers),
        tighter=1.0,
    )

"""Asking the judge, what its refusals teach, and telling an infeasible problem from a slow one."""

from dataclasses import replace

import numpy as np

from ..certificate import Certificate, certify
from ..oracle.subproblem import IRREGULAR
from .setup import Setup
from .state import Reading, State

STALLED = 8  # outer iterations without progress in feasibility before its regularity is measured
PROGRESS = 0.9  # factor that counts as progress


def judge(here: Setup, state: State, multipliers: np.ndarray | None) -> tuple[State, Certificate]:
    """Ask the judge about the present point; without multipliers it takes the best for it.

    Whoever asks until the answer is yes must ask for more each time: on streams the k-th question of a run has the share
    6/(pi k)^2 of its failure probability, so that all answers hold together with the confidence that was asked for.
    """
    settings, k = here.settings, state.questions + 1
    certificate = certify(
        here.problem,
        here.parameters(state),
        multipliers,
        slack=here.slack(state),
        tol=settings.tolerance,
        cone=settings.cone,
        penalty=state.scales.penalty(state.penalty),
        confidence=1 - (1 - settings.confidence) * 6 / (np.pi * k) ** 2,
        seed=(settings.seed + 7919 * (state.outer + 1)) % 2**32,
    )
    return replace(state, questions=k), certificate


def last_judgement(
    here: Setup, state: State, own: Certificate | None, finite: bool = True
) -> tuple[State, Certificate]:
    """The certificate of where a run ended: at its own multipliers, or, where these fail and better ones pass, at the best.

    Multipliers of a run that broke off may lag behind its point, or be spoilt by rounding; only on finite populations,
    where a second look is cheap.
    """
    if own is None:
        state, own = judge(here, state, state.multipliers)
    tolerance = here.settings.tolerance
    if own.passes(tolerance) or not finite or here.program.population is None or not here.program.layout.size:
        return state, own
    state, best = judge(here, state, None)
    better, other = (best, own) if best.passes(tolerance) else (own, best)
    return replace(state, judged=state.judged + other.work), better


def refused(here: Setup, state: State, certificate: Certificate) -> State:
    """What to do better; the judge's work becomes the solver's."""
    tolerance = here.settings.tolerance
    flat = tolerance.relative is not None and certificate.relative_stationarity.upper > tolerance.relative
    far = max(certificate.stationarity.upper, certificate.feasibility.upper) > tolerance.gradient
    return replace(
        state,
        work=state.work + certificate.work,
        curvature_factor=state.curvature_factor * (16 if is_bent(here, certificate) else 1),
        tighter=state.tighter / (1.5 if flat or far else 1.0),
    )


def is_bent(here: Setup, certificate: Certificate) -> bool:
    """Whether the judge refused for negative curvature."""
    return certificate.curvature.lower < -here.settings.tolerance.curvature


def has_stalled(here: Setup, state: State, reading: Reading) -> bool:
    """Whether the violation has stopped falling, so that the judge should say whether it can fall to first order.

    The solver's own `regularity` saves the judge the trouble where it is clearly positive.
    """
    violation = [row.feasibility for row in state.history if row.outer >= 0]
    if len(violation) <= STALLED or violation[-1] <= here.settings.tolerance.gradient:
        return False
    if violation[-1] < PROGRESS * violation[-1 - STALLED] or len(violation) % STALLED:
        return False
    return not float(reading.outcome.regularity) > 2 * IRREGULAR


def is_infeasible(certificate: Certificate) -> bool:
    """Whether the violation cannot fall to first order at the point that was judged."""
    return certificate.regularity < IRREGULAR

"""Asking the judge, learning from its refusals, and telling an infeasible problem from a slow one."""

import numpy as np

from ..certificate import Certificate, certify
from ..oracle.subproblem import IRREGULAR, Subproblem
from ..solvers.move import escape
from .standing import Standing

STALLED = 8  # outer iterations without progress in feasibility before its regularity is measured
PROGRESS = 0.9  # factor that counts as progress
ESCAPE = 2  # what random numbers of an outer iteration are for


def judge(run: Standing, multipliers: np.ndarray | None, penalty: float) -> Certificate:
    """Ask the judge about the present point; without multipliers it takes the best for it."""
    layout = run.program.layout
    x, slack = run.form.split(run.z)
    certificate = certify(
        run.problem,
        run.program.parameters.restore(x),
        multipliers,
        slack=np.asarray(slack, np.float64) if layout.slack_size else np.zeros(0),
        tol=run.settings.tolerance,
        cone=run.settings.cone,
        penalty=run.scales.penalty(penalty),
        confidence=run.settings.confidence,
        seed=(run.settings.seed + 7919 * (run.outer + 1)) % 2**32,
    )
    run.certificate = certificate
    run.certify_seconds = certificate.seconds
    return certificate


def last_judgement(run: Standing, penalty: float, finite: bool) -> Certificate:
    """The certificate of where a run ended: at its own multipliers, or, where these fail and better ones pass, at the best.

    Multipliers of a run that broke off may lag behind its point, or be spoilt by rounding; only on finite populations,
    where a second look is cheap.
    """
    own = run.certificate or judge(run, run.multipliers, penalty)
    tolerance = run.settings.tolerance
    if own.passes(tolerance) or not finite or run.program.population is None or not run.program.layout.size:
        return own
    best = judge(run, None, penalty)
    if not best.passes(tolerance):
        run.judged += best.work
        run.certificate = own
        return own
    run.judged += own.work
    return best


def learn_from_refusal(run: Standing, sub: Subproblem | None = None) -> bool:
    """What to do better; the judge's work becomes the solver's. Whether negative curvature that the judge found led away."""
    assert run.certificate is not None
    certificate, tolerance = run.certificate, run.settings.tolerance
    run.work += certificate.work
    run.certificate = None
    bent = certificate.curvature.lower < -tolerance.curvature
    if bent:
        run.curvature_factor *= 16
    flat = tolerance.relative is not None and certificate.relative_stationarity.upper > tolerance.relative
    if (
        flat
        or certificate.stationarity.upper > tolerance.gradient
        or certificate.feasibility.upper > tolerance.gradient
    ):
        run.tighter /= 1.5
    if sub is None or sub.looks is None or certificate.direction is None or not bent:
        return False
    return _escaped(run, sub, certificate)


def _escaped(run: Standing, sub: Subproblem, certificate: Certificate) -> bool:
    """Move along the direction of the most negative curvature that the judge found, where that leads down."""
    z, direction = np.asarray(run.z), np.zeros(sub.form.size)
    direction[: sub.parameters] = certificate.direction
    curvature = certificate.curvature.value * run.scales.objective
    moved, work = escape(sub, z, direction, curvature, (run.settings.seed, run.outer, ESCAPE), 0)
    run.work += work
    if np.array_equal(moved, z):
        return False
    run.z = moved
    return True


def is_infeasible(run: Standing, multipliers: np.ndarray, penalty: float, regularity: float) -> bool:
    """Whether the violation has stopped falling at a point where it cannot fall to first order.

    The solver's own `regularity` saves the judge the trouble where it is clearly positive.
    """
    violation = [row.feasibility for row in run.history if row.outer >= 0]
    if len(violation) <= STALLED or violation[-1] <= run.settings.tolerance.gradient:
        return False
    if violation[-1] < PROGRESS * violation[-1 - STALLED] or len(violation) % STALLED:
        return False
    if regularity > 2 * IRREGULAR:
        return False
    certificate = judge(run, multipliers, penalty)
    if certificate.regularity < IRREGULAR:
        return True
    run.work += certificate.work
    run.certificate = None
    return False

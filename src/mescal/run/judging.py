"""Asking the judge, what its refusals teach, and telling problems without a solution, infeasible or unbounded, from slow ones.

A run that has gone far may stand on a ray of endless descent, whatever its method is.
"""

from dataclasses import replace

import numpy as np

from ..certificate import Certificate, certify
from ..certificate.budget import Budget
from ..certificate.kinks import Kink, kink_near
from ..oracle.subproblem import IRREGULAR, Subproblem
from ..solvers.base import EXHAUSTED, FARAWAY
from ..solvers.ray import far_away, ray_from
from .between_solves import target, wider
from .setup import Setup
from .state import Reading, State

STALLED = 8  # outer iterations without progress in feasibility before its regularity is measured
TRIES = 8  # legs that end at one point whose curvature cannot be told, until a run does
PROGRESS = 0.9  # factor that counts as progress
# What the judge has in any case: a share of `max_seconds`, and the most that this can be, in seconds.
LEAST, AT_MOST = 0.1, 2.0
RAY = 3  # what random numbers of an outer iteration are for, beside those of `between_solves` and `mescal`


def time_for(here: Setup) -> Budget:
    """What is left of `max_seconds`, and no less than a tenth of it or two seconds; a signal ends the judge then, too."""
    limit = here.settings.max_seconds
    least = min(LEAST * limit, AT_MOST)
    return Budget.of(limit - here.clock.here, lambda: here.signals.asked, least)


def cannot_decide(here: Setup, state: State, certificate: Certificate) -> bool:
    """Whether nothing is missing but to know the curvature, for legs that all ended here, each judged from other starts."""
    open_ones = [check for check in certificate.checks(here.settings.tol) if not check.met]
    if here.looks is None or any(check.name != "curvature" or check.refuted for check in open_ones):
        return False
    last = state.history.rows[-TRIES:]
    return len(last) == TRIES and len({row.objective for row in last}) == 1


def judge(
    here: Setup, state: State, multipliers: np.ndarray | None, budget: Budget | None = None, finite: bool = True
) -> tuple[State, Certificate]:
    """Ask the judge about the present point; without multipliers it takes the best for it.

    Where c is known exactly, slacks are the judge's own: the best for these multipliers.

    Whoever asks until the answer is yes must ask for more each time: on streams the k-th question of a run has the share
    6/(pi k)^2 of its failure probability, so that all answers hold together with the confidence that was asked for.
    """
    settings, k = here.settings, state.questions + 1
    certificate = certify(
        here.problem,
        here.parameters(state),
        multipliers,
        slack=None if here.looks is not None and finite else here.slack(state),
        tol=settings.tol,
        cone=settings.cone,
        penalty=state.scales.penalty(state.penalty),
        confidence=1 - (1 - settings.confidence) * 6 / (np.pi * k) ** 2,
        seed=(settings.seed + 7919 * (state.outer + 1)) % 2**32,
        max_seconds=budget or time_for(here),
    )
    return replace(state, questions=k), certificate


def last_judgement(
    here: Setup, state: State, own: Certificate | None, finite: bool = True
) -> tuple[State, Certificate]:
    """The certificate of where a run ended: at its own multipliers, or, where these fail, at the best, if less is missing there.

    Multipliers of a run that broke off may lag behind its point, or be spoilt by rounding; only on finite populations,
    where a second look is cheap. Between two that miss as many measures, the smaller stationarity decides.
    """
    budget = time_for(here)
    if own is None:
        state, own = judge(here, state, state.multipliers, budget, finite)
    tolerance = here.settings.tol
    if own.passes(tolerance) or not finite or here.program.population is None or not here.program.layout.size:
        return state, own
    if budget.over:
        return state, own
    state, best = judge(here, state, None, budget)
    better, other = sorted((own, best), key=lambda one: (len(one.missing(tolerance)), one.stationarity.value))
    return replace(state, judged=state.judged + other.work), better


def kink_beside(here: Setup, state: State, certificate: Certificate) -> Kink | None:
    """A kink next to where a run came to rest, which explains why it has no certificate; on finite populations."""
    if here.looks is None or certificate.violation.lower > here.settings.tol.violation:
        return None
    x = np.asarray(state.z, np.float64)[: here.program.parameters.size]
    sizes = np.abs([x, x - here.origin, here.origin]).max(axis=0)
    own = len(x) - (len(here.problem.lifting.starts) if here.problem.lifting else 0)
    sizes[:own] = sizes[:own].max(initial=0.0)  # scalars of statements have units of their own
    unit = np.where(sizes > 0, sizes, 1.0)
    limit, seed = here.settings.tol.gradient, here.settings.seed
    return kink_near(here.problem, here.parameters(state), certificate.multipliers, unit, limit, seed, time_for(here))


def refused(here: Setup, state: State, certificate: Certificate) -> State:
    """What to do better; the judge's work becomes the solver's."""
    tolerance = here.settings.tol
    far = not all(check.met for check in certificate.checks(tolerance) if check.name != "curvature")
    return replace(
        wider(here, state, certificate),
        work=state.work + certificate.work,
        curvature_factor=state.curvature_factor * (16 if is_bent(here, certificate) else 1),
        tighter=state.tighter / (1.5 if far else 1.0),
    )


def is_bent(here: Setup, certificate: Certificate) -> bool:
    """Whether the judge refused for negative curvature."""
    return certificate.curvature.lower < -here.settings.tol.curvature


def has_stalled(here: Setup, state: State, reading: Reading) -> bool:
    """Whether the violation has stopped falling, so that the judge should say whether it can fall to first order.

    The solver's own `regularity` saves the judge the trouble where it is clearly positive.
    """
    violation = [row.feasibility for row in state.history if row.outer >= 0]
    if len(violation) <= STALLED or violation[-1] <= target(here, state.scales):
        return False
    if violation[-1] < PROGRESS * violation[-1 - STALLED] or len(violation) % STALLED:
        return False
    return not float(reading.outcome.regularity) > 2 * IRREGULAR


def is_infeasible(certificate: Certificate) -> bool:
    """Whether the violation cannot fall to first order at the point that was judged."""
    return certificate.regularity < IRREGULAR


def on_a_ray(here: Setup, state: State, sub: Subproblem, began: np.ndarray) -> State:
    """With a feasible ray of endless descent, and the point that it begins at, where one leads on from here."""
    key = (here.settings.seed, state.outer, RAY)
    ray, z, work = ray_from(sub, np.asarray(began), np.asarray(state.z), here.settings.tol.gradient, key)
    return replace(state, ray=ray, z=state.z if ray is None else z, work=state.work + work)


def looked_for_ray(here: Setup, before: State, after: State, sub: Subproblem, reading: Reading) -> State:
    """The same where a leg went far without saying so, as theory modes and baselines do, or was cut off far away.

    A theory mode counts its steps and does not look where it is: its last point is put to the judge however far it has gone.
    """
    if reading.ended == FARAWAY:
        return after
    size = here.program.parameters.size
    start, end = (np.asarray(state.z, np.float64)[:size] for state in (before, after))
    gone, origin = float(np.linalg.norm(end)), np.asarray(here.origin)
    is_far = gone > far_away(origin, start) or (reading.ended == EXHAUSTED and gone > far_away(origin, origin))
    if not np.isfinite(gone) or not is_far:
        return after
    return on_a_ray(here, after, sub, np.asarray(before.z))


def looked_for_ray_at_the_end(here: Setup, state: State, sub: Subproblem) -> State:
    """The same for a run that came to its cap or to numbers that are not finite: overflow may come before far away does.

    No step is made any more, so that this is work of the judge, as its last look is.
    """
    found = on_a_ray(here, state, sub, np.asarray(here.origin))
    return replace(found, work=state.work, judged=state.judged + (found.work - state.work))

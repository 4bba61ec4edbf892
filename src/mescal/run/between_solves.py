"""Between two inner solves: the dual update of Algorithm 1, the penalty, bounds moved inwards, and what the next is asked for.

    lam+ = lam + min(al, gamma_k / |cbar|) cbar,  which stays at lam where cbar = 0;     al+ = beta al, or more

gamma_k summable keeps |lam_k| <= |lam_0| + sum gamma for any noise; gamma = inf is the plain update, the default. Asked for are
tolerances in the solver's units, reset batches from the noise, and search batches.

Bounds are moved inwards so that a point at which the moved ones are nearly met meets the stated ones to a smaller tolerance. With
violations held to phi < eps (`Tolerance(feasibility=phi)`, eps its `gradient`) and k inequalities, c(x) + sigma <= 0 is solved
instead of c(x) <= 0, up to |c + sigma + s| <= phi + sigma:

    sigma = share (eps - phi) / sqrt(k):    c_j <= phi,    and complementarity at most  sigma (1 + sqrt(k)) + phi <= eps

What it costs is about sigma |lambda|_1 in the objective, so the share begins small. It doubles where the judge cannot see through
the noise that constraints are met, and falls to a quarter where the moved bounds turn out to be more than can be met. The judge is
asked about the problem as it was stated.
"""

from dataclasses import replace

import numpy as np

from ..certificate import Certificate, Tolerance
from ..oracle.draw import words
from ..oracle.subproblem import Subproblem
from ..problem.layout import Layout
from ..solvers.base import Goal
from ..solvers.ray import far_away
from ..solvers.reset import sampled_look
from .scaling import Scales
from .setup import Setup
from .state import State

SLOW = 0.5  # of the violation before: falling less than this, it asks for a larger penalty ...
RISE = 4.0  # ... by this factor, instead of the schedule's ...
BOLD = 10.0  # ... or by this one, where the solver takes exact Newton steps, which ill-conditioning does not shorten
# The penalty rises to it, in the solver's units: beyond, L is known to fewer digits than the tolerance asks for.
LARGEST_PENALTY = 1e10
FAR = 2.0  # natural sizes of the constraint: an inner solve that ends further from feasible ran away ...
RECOVER = 10.0  # ... and is repeated with a penalty larger by this factor ...
RETRIES = 12  # ... at most so often
RESET_ACCURACY = 0.2  # of the tolerance: standard error of a reset gradient on a stream
LARGEST_RESET = 1 << 21  # thetas of a reset on a stream, at most ...
RESET_BASE = 1 << 16  # ... and no more than this, or ...
RESET_SHARE = 0.125  # ... this share of the work so far: far from a solution, accuracy is wasted
SMALLEST_RESET = 1 << 10
SEARCH_SHARE = 0.25  # of the work so far: what one curvature search may cost at most ...
SEARCH_BASE = 20_000  # ... beside this, in total work
SEARCH_STEPS = 80  # total work of a search of 40 steps per theta of its batch
SMALLEST_SEARCH = 128
READY = 0.95  # of the tolerance: a violation below it is worth a curvature search and a certificate
NOISE = 1  # what random numbers of an outer iteration are for, beside its inner solve
SAMPLED = 1 - 2 * RESET_ACCURACY  # of the tolerance: what is left for measures that have this standard error
FIRST_SHARE, LARGEST_SHARE = 1 / 8, 1 / 2  # of the room for bounds that are moved
WIDER, NARROWER = 2.0, 1 / 4  # factors on it


def complementary(multipliers: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Multipliers that are zero where the slack is positive (NaN: an equality): the best choice there, lam s = 0."""
    return np.where(slack > 0, 0.0, multipliers)


def dual_step(multipliers: np.ndarray, constraint: np.ndarray, penalty: float, bound: float) -> np.ndarray:
    """The next multipliers."""
    size = float(np.linalg.norm(constraint))
    if size == 0:
        return multipliers
    return multipliers + min(penalty, bound / size) * constraint


def summable_bound(k: int, first_size: float) -> float:
    """gamma_k = (log 2)^2 |cbar(x_0)| / ((k+1) log(k+2)^2): the sequence of the iALM literature."""
    return float(np.log(2) ** 2 * first_size / ((k + 1) * np.log(k + 2) ** 2))


def next_penalty(penalty: float, growth: float, violation: float, before: float, rise: float) -> float:
    """al_{k+1}: beta al_k, or `rise` times that where the violation fell by less than half."""
    rises = violation > SLOW * before and penalty * rise <= LARGEST_PENALTY
    return penalty * (max(rise, growth) if rises else growth)


def runaway_size(constraint: np.ndarray, sizes: np.ndarray) -> float:
    """The violation from which on an inner solve has run away, from c at the start and its natural sizes."""
    return FAR * float(np.linalg.norm(constraint) + np.linalg.norm(sizes))


def searches_always(outer: int) -> bool:
    """At outer iterations 0, 1, 3, 7, ... even an infeasible point is searched: it may be a saddle of the violation."""
    return (outer + 1) & outer == 0


def ready(here: Setup, state: State) -> float:
    """The violation that a candidate for a certificate may have, unscaled."""
    return target(here, state.scales) * (SAMPLED if here.program.population is None else READY)


def gradient_tolerance(here: Setup, state: State) -> float:
    """What stationarity is held to at the present point, unscaled."""
    tolerance = here.settings.tol
    if tolerance.relative is None:
        return tolerance.gradient
    size = float(np.linalg.norm(np.asarray(state.z, np.float64)[: here.program.parameters.size]))
    return min(tolerance.gradient, tolerance.relative / max(1.0, size))


def largest_reset(spent: float) -> int:
    """The most thetas that an estimate on a stream may have after so much work."""
    return min(max(RESET_BASE, int(RESET_SHARE * spent)), LARGEST_RESET)


def thetas_for(noise: float, error: float, spent: float) -> int:
    """Thetas whose mean has this standard error where one has this variance, within what may be spent."""
    wanted = noise / error**2
    return int(np.clip(wanted, SMALLEST_RESET, largest_reset(spent))) if np.isfinite(wanted) else SMALLEST_RESET


def next_goal(here: Setup, state: State, sub: Subproblem) -> tuple[State, Goal]:
    """Tolerances and batches of the next inner solve; on a stream the noise is looked at first, which has its price."""
    tolerance, population, objective = here.settings.tol, here.program.population, state.scales.objective
    gradient = gradient_tolerance(here, state) * objective * state.tighter
    large = population or 0
    if population is None:
        given = words(here.settings.seed, state.outer, NOISE)
        seen, work = sampled_look(sub.lagrangian, state.z, state.z, given, np.int32(SMALLEST_RESET))
        state = replace(state, work=state.work + work.tally())
        spent = state.work.total
        large = max(
            thetas_for(float(seen.noise.stationarity), RESET_ACCURACY * gradient, spent),
            thetas_for(
                float(seen.noise.constraint), RESET_ACCURACY * target(here, state.scales) * state.tighter, spent
            ),
        )
        gradient *= SAMPLED
    searched = (SEARCH_SHARE * state.work.total + SEARCH_BASE) / SEARCH_STEPS * state.curvature_factor
    return state, Goal(
        gradient=gradient,
        curvature=tolerance.curvature * objective,
        steps=here.settings.outer.max_inner,
        population=population,
        large_batch=large,
        curvature_batch=int(min(max(searched, SMALLEST_SEARCH), LARGEST_RESET)),
        runaway=state.notes.runaway,
        feasibility=np.inf if searches_always(state.outer) else ready(here, state),
        judged=population is not None,
        ready=ready(here, state),
        far=far_away(here.origin, np.asarray(state.z, np.float64)[: here.program.parameters.size]),
        weak=tolerance.gradient * objective,
    )


def moved_inwards(scales: Scales, layout: Layout, tolerance: Tolerance) -> Scales:
    """With the bounds of a run's start: moved where feasibility is asked for apart and there are inequalities alone."""
    left = tolerance.gradient - tolerance.violation
    if left <= 0 or not layout.size or not layout.inequality.all():
        return scales
    return replace(scales, inward=np.full(layout.size, FIRST_SHARE * left / np.sqrt(layout.slack_size)))


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
    most = LARGEST_SHARE * (tolerance.gradient - tolerance.violation) / np.sqrt(inward.size)
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

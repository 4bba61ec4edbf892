"""What the next inner solve is asked for: tolerances in the solver's units, reset batches from the noise, search batches."""

from typing import TYPE_CHECKING

import numpy as np

from ..oracle.draw import words
from ..oracle.subproblem import Subproblem
from ..solvers.base import Goal
from ..solvers.ray import far_away
from ..solvers.reset import sampled_look
from .standing import Standing

if TYPE_CHECKING:
    from .run import Run

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


def searches_always(outer: int) -> bool:
    """At outer iterations 0, 1, 3, 7, ... even an infeasible point is searched: it may be a saddle of the violation."""
    return (outer + 1) & outer == 0


def ready(run: Standing) -> float:
    """The violation that a candidate for a certificate may have, unscaled."""
    return run.settings.tolerance.gradient * (SAMPLED if run.program.population is None else READY)


def gradient_tolerance(run: Standing) -> float:
    """What stationarity is held to at the present point, unscaled."""
    tolerance = run.settings.tolerance
    if tolerance.relative is None:
        return tolerance.gradient
    size = float(np.linalg.norm(np.asarray(run.z, np.float64)[: run.program.parameters.size]))
    return min(tolerance.gradient, tolerance.relative / max(1.0, size))


def largest_reset(spent: float) -> int:
    """The most thetas that an estimate on a stream may have after so much work."""
    return min(max(RESET_BASE, int(RESET_SHARE * spent)), LARGEST_RESET)


def next_goal(run: "Run", sub: Subproblem) -> Goal:
    """Tolerances and batches of the next inner solve."""
    tolerance, population = run.settings.tolerance, run.program.population
    gradient = gradient_tolerance(run) * run.scales.objective * run.tighter
    large = population or 0
    if population is None:
        given = words(run.settings.seed, run.outer, NOISE)
        seen, work = sampled_look(sub.lagrangian, run.z, run.z, given, np.int32(SMALLEST_RESET))
        noise = seen.noise
        run.work += work.tally()
        wanted = max(
            float(noise.stationarity) / (RESET_ACCURACY * gradient) ** 2,
            float(noise.constraint) / (RESET_ACCURACY * tolerance.gradient * run.tighter) ** 2,
        )
        gradient *= SAMPLED
        affordable = largest_reset(run.work.total)
        large = int(np.clip(wanted, SMALLEST_RESET, affordable)) if np.isfinite(wanted) else SMALLEST_RESET
    searched = (SEARCH_SHARE * run.work.total + SEARCH_BASE) / SEARCH_STEPS * run.curvature_factor
    return Goal(
        gradient=gradient,
        curvature=tolerance.curvature * run.scales.objective,
        steps=run.settings.max_inner,
        population=population,
        large_batch=large,
        curvature_batch=int(min(max(searched, SMALLEST_SEARCH), LARGEST_RESET)),
        runaway=run.runaway,
        feasibility=np.inf if searches_always(run.outer) else ready(run),
        judged=population is not None,
        ready=ready(run),
        far=far_away(run.origin, np.asarray(run.z, np.float64)[: run.program.parameters.size]),
        weak=tolerance.gradient * run.scales.objective,
    )

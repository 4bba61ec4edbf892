"""Several starts: a nonconvex problem has several minimisers, and the best certified one is what people want.

    x_0 = x0,    x_k = P_X(x0 + s xi_k),    xi_k ~ N(0, I) from the seed and k

with s = reach max(r, max(1, |x0|) / sqrt(d)) in every array of the parameters, r the root mean square of its entries in x0: an
array with a size of its own is drawn anew at that size, and what is zero moves so that all of d zeros move by about 1.

1. Every start is a run of its own with the same seed: the best one is what `minimize(problem, x_k)` finds. Compiled programs are
   shared. Budgets hold for all of them together, in their order: a start that nothing is left for is not begun.
2. The best of several has the best of several chances to be wrong: where samples are drawn, each run has its share of the failure
   probability, (1 - confidence) / count.
3. Two certified objectives are distinct where they differ by more than sigma |x - y| + |lam_x| v_x + |lam_y| v_y, with sigma the
   larger stationarity and v the feasibilities that were measured: a valley as level as its ends would explain no more.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce, wraps
from operator import add
from typing import Any

import jax
import numpy as np

from ..certificate import Tolerance
from ..errors import InputError
from ..oracle import Tally
from ..problem import Problem
from ..problem.layout import flatten_parameters
from ..solvers import Solver
from .limits import Clock
from .record import shown_to_the_end
from .result import Result, Seconds, Spread, Tried, WorkDone
from .settings import Settings, Starts
from .setup import Start
from .status import Status
from .warm_start import begin

PLACE = 2  # what random numbers of a seed are for: where a start lies

log = logging.getLogger("mescal")


def best_of(problem: Problem, x0: Any, solver: Solver, settings: Settings, start: Start | None) -> Result:
    """The best of the runs from all starts, with the work and the seconds of all."""
    if settings.checkpoint is not None:
        raise InputError(
            f"checkpoint= with {settings.starts.count} starts",
            "checkpoints of one run",
            "leave one of them out, or keep checkpoints in a loop of your own over points(problem, x0, ...) of mescal.run.starts",
        )
    clock, count, ears = Clock(), settings.starts.count, Ears(settings.callback)
    base = x0 if start is None or x0 is not None else problem.unlifted(start.x)[0]
    show, share = settings.progress, (1 - settings.confidence) / count
    rows = None if show is None else lambda row: show(row)  # without `ended`: more runs may come
    each = replace(settings, starts=Starts(), progress=rows, callback=ears.callback, confidence=1 - share)
    runs: list[Result] = []
    for k in range(count):
        spent = sum(run.work.total for run in runs)
        left = {"max_work": settings.max_work - spent, "max_seconds": settings.max_seconds - clock.here}
        if min(left.values()) <= 0:
            break
        log.info("Start %d of %d", k + 1, count)
        if callable(name := getattr(show, "begin", None)):
            name(f"start {k + 1} of {count}")
        begun = x0 if k == 0 else place(problem, base, k, settings.seed, settings.starts.reach)
        run, _ = begin(problem, begun, solver, replace(each, **left), start if k == 0 else None)
        runs.append(run.go())
        if ears.called_off or run.here.signals.asked or runs[-1].status is Status.INTERRUPTED:
            break
    shown_to_the_end(settings)
    return together(runs, settings, clock.here)


class Ears:
    """A callback that remembers whether it ended a run: one that is certified where it stopped does not say so."""

    def __init__(self, callback: Callable[..., Any] | None):
        self.called_off, self.callback = False, None
        if callback is None:
            return

        @wraps(callback)  # so that it is called with as many arguments
        def hear(*given: Any) -> Any:
            self.called_off = True  # also by what it raises
            answer = callback(*given)
            self.called_off = bool(answer)
            return answer

        self.callback = hear


def place(problem: Problem, x0: Any, k: int, seed: int, reach: float = 1.0) -> Any:
    """Where the k-th start lies, in the structure and the types of x0, which itself is the start 0."""
    if k == 0:
        return x0
    spec, vector = flatten_parameters(x0, "x0")
    vector = vector.astype(np.float64)
    common = max(1.0, float(np.linalg.norm(vector))) / np.sqrt(vector.size)
    size, begun = np.empty_like(vector), 0
    for shape in spec.shapes:
        part = slice(begun, begun + int(np.prod(shape)))
        own = vector[part]
        size[part] = max(common, float(np.linalg.norm(own)) / np.sqrt(max(own.size, 1)))
        begun = part.stop
    moved = vector + reach * size * np.random.default_rng([seed, PLACE, k]).standard_normal(vector.size)
    with jax.enable_x64(True):
        inside = problem.stated_domain.project(spec.arrays(moved))
        found = np.concatenate([np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(inside)])
    return spec.restore(found)


def together(runs: Sequence[Result], settings: Settings, seconds: float) -> Result:
    """The best run, with what all of them cost and how they came out."""
    chosen = min(range(len(runs)), key=lambda k: _rank(runs[k], settings.tol))
    best, last = runs[chosen], runs[-1]
    groups = distinct(runs)
    tried = tuple(
        Tried(run.objective, run.certificate.violation.value, run.status, run.work.total, run.seconds.total, group)
        for run, group in zip(runs, groups, strict=True)
    )
    ended_by = (Status.INTERRUPTED, Status.STOPPED, Status.TIME_LIMIT, Status.WORK_LIMIT)
    unbounded = [k for k, run in enumerate(runs) if run.status is Status.UNBOUNDED and k != chosen]
    said = [f"Start {k} found that the objective falls without end: no minimiser is the best one." for k in unbounded]
    return replace(
        best,
        status=last.status if not best.converged and last.status in ended_by else best.status,
        work=WorkDone(*(_sum([getattr(run.work, part) for run in runs]) for part in ("solver", "judge", "searches"))),
        seconds=Seconds(
            seconds,
            min(seconds, sum(run.seconds.compile for run in runs)),
            sum(run.seconds.certificate for run in runs),
        ),
        warnings=(*best.warnings, *said),
        spread=Spread(settings.starts.count, chosen, tried),
    )


def _sum(tallies: list[Tally]) -> Tally:
    return reduce(add, tallies, Tally())


def _rank(run: Result, tolerance: Tolerance) -> tuple[bool, bool, float]:
    """Certified ones by their objective, then feasible ones by it, then the others by their violation; NaN is last."""
    violation = run.certificate.violation.value
    feasible = violation <= tolerance.violation
    decides = run.objective if feasible else violation
    return not run.converged, not feasible, float(np.nan_to_num(decides, nan=np.inf, posinf=np.inf, neginf=-np.inf))


def distinct(runs: Sequence[Result]) -> list[int | None]:
    """The number of the objective at which each certified run ended, from the lowest; None for those that are not certified."""
    groups: list[int | None] = [None] * len(runs)
    lowest: list[Result] = []  # of each group, with which its members are compared
    for k in sorted((k for k, run in enumerate(runs) if run.converged), key=lambda k: runs[k].objective):
        if not lowest or _differ(lowest[-1], runs[k]):
            lowest.append(runs[k])
        groups[k] = len(lowest) - 1
    return groups


def _differ(lower: Result, higher: Result) -> bool:
    distance = float(np.linalg.norm(_flat(lower) - _flat(higher)))
    low, high = lower.certificate, higher.certificate
    steep = max(low.stationarity.upper, high.stationarity.upper)
    loose = sum(one.multiplier_norm * one.feasibility.upper for one in (low, high))
    return high.objective.lower - low.objective.upper > steep * distance + loose


def _flat(run: Result) -> np.ndarray:
    return flatten_parameters(run.x, "x")[1].astype(np.float64)

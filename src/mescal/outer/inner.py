"""One inner solve on the host: chunks of compiled steps until it ends or a budget is used up, and what came out."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ..oracle import Lagrangian
from ..solvers.base import BROKEN, EXHAUSTED, RUNNING, VERIFIED, Goal, Outcome, Progress
from ..solvers.drive import advance, begin
from ..solvers.verification import verify
from ..theory.boosting import Boost
from .goals import next_goal
from .status import Status

if TYPE_CHECKING:
    from .run import Run


@dataclass(frozen=True)
class Solved:
    """How an inner solve ended: the solver's status, a budget that stopped it, and what the outer loop looks at."""

    outcome: Outcome
    progress: Progress
    status: int
    stop: Status | None
    copies: int = 1


def solve(run: "Run", oracle: Lagrangian, penalty: float) -> Solved:
    """The subproblem of this outer iteration, from the present point."""
    key = jax.random.fold_in(run.key, run.outer)
    if run.promise is None:
        return one_solve(run, oracle, next_goal(run, oracle), key)
    request = run.promise.request(run, oracle, penalty)
    if request.boost is None:
        return one_solve(run, oracle, request.goal, key)
    return boosted(run, oracle, request.goal, request.boost, key)


def boosted(run: "Run", oracle: Lagrangian, goal: Goal, boost: Boost, key: jax.Array) -> Solved:
    """The first of R independent copies that passes the verification (`theory.boosting.boost`).

    If none does, the one without negative curvature that is the most stationary, as EXHAUSTED: nothing is verified then.
    """
    best, least = None, (True, math.inf)
    for copy in range(boost.copies):
        solved = one_solve(run, oracle, goal, jax.random.fold_in(key, copy))
        if solved.stop is not None:
            return replace(solved, copies=copy + 1)
        if solved.status == BROKEN:
            best = solved if best is None else best
            continue
        z, fresh = solved.outcome.z, jax.random.fold_in(key, boost.copies + copy)
        assert goal.constants is not None and run.promise is not None
        verdict = verify(run.solver.name, run.promise.solver.search, oracle, z, boost, goal.constants, fresh)
        run.work += verdict.work
        if verdict.passed:
            return replace(solved, status=VERIFIED, copies=copy + 1)
        if (verdict.negative, verdict.stationarity) < least:
            best, least = replace(solved, status=EXHAUSTED), (verdict.negative, verdict.stationarity)
    assert best is not None
    return replace(best, copies=boost.copies)


def one_solve(run: "Run", oracle: Lagrangian, goal: Goal, key: jax.Array) -> Solved:
    """One solve of one goal; its work and its memory become the run's."""
    plan = run.solver.plan(goal, run.dtype)
    state = begin(run.solver, oracle, run.z, plan, run.memory, key)
    state, stop = chunks(run, oracle, state, plan)
    outcome, spent = run.solver.outcome(oracle, run.z, state, plan, goal)
    run.work += state.progress.work.tally() + spent
    run.searches += state.progress.searches.tally()
    run.memory = state.memory
    return Solved(outcome, state.progress, int(state.progress.status), stop)


def chunks(run: "Run", oracle: Lagrangian, state: Any, plan: Any) -> tuple[Any, Status | None]:
    """Chunks until the solve ends, with the budget that stopped it; an interruption keeps all that was done."""
    chunk, begun = jnp.int32(run.solver.chunk), state
    while True:
        try:
            state = advance(run.solver, oracle, state, plan, chunk)
            jax.block_until_ready(state)  # the state is kept by now: what interrupts the wait loses nothing
        except KeyboardInterrupt:
            if state is begun:
                raise
            return state, Status.INTERRUPTED
        if int(state.progress.status) != RUNNING:
            return state, None
        if run.clock.seconds > run.settings.max_seconds:
            return state, Status.TIME_LIMIT
        if (run.work + state.progress.work.tally()).total > run.settings.max_work:
            return state, Status.WORK_LIMIT

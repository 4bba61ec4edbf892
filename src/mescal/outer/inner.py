"""One inner solve on the host: chunks of compiled steps until it ends or a budget is used up, and what came out."""

import logging
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax

from ..errors import InputError
from ..oracle import memory
from ..oracle.draw import words
from ..oracle.host import fold_in
from ..oracle.subproblem import Subproblem
from ..solvers.base import BROKEN, EXHAUSTED, RUNNING, VERIFIED, Goal, Outcome, Progress
from ..solvers.drive import advance, begin
from .ending import stop_inside
from .goals import next_goal
from .state import Unfinished
from .status import Status

if TYPE_CHECKING:
    from ..theory.boosting import Boost
    from .run import Run

log = logging.getLogger("mescal")


@dataclass(frozen=True)
class Solved:
    """How an inner solve ended: the solver's status, a budget that stopped it, and what the outer loop looks at."""

    outcome: Outcome
    progress: Progress
    status: int
    stop: Status | None
    copies: int = 1


def solve(run: "Run", sub: Subproblem, penalty: float) -> Solved:
    """The subproblem of this outer iteration, from the present point."""
    key = words(run.settings.seed, run.outer) if run.solver.host else fold_in(run.key, run.outer)
    if run.unfinished is not None:
        goal, state = run.unfinished
        run.unfinished = None
        return one_solve(run, sub, goal, key, state)
    if run.promise is None:
        return one_solve(run, sub, next_goal(run, sub), key)
    request = run.promise.request(run, sub.lagrangian, penalty)
    if request.boost is None:
        return one_solve(run, sub, request.goal, key)
    return boosted(run, sub, request.goal, request.boost, key)


def boosted(run: "Run", sub: Subproblem, goal: Goal, boost: "Boost", key: Any) -> Solved:
    """The first of R independent copies that passes the verification (`theory.boosting.boost`).

    If none does, the one without negative curvature that is the most stationary, as EXHAUSTED: nothing is verified then.
    """
    from ..solvers.verification import verify  # here: practical modes need nothing of the theory

    best, least = None, (True, math.inf)
    for copy in range(boost.copies):
        solved = one_solve(run, sub, goal, jax.random.fold_in(key, copy), keep=False)
        if solved.stop is not None:
            return replace(solved, copies=copy + 1)
        if solved.status == BROKEN:
            best = solved if best is None else best
            continue
        z, fresh = solved.outcome.z, jax.random.fold_in(key, boost.copies + copy)
        assert goal.constants is not None and run.promise is not None
        verdict = verify(run.solver.name, run.promise.solver.search, sub.lagrangian, z, boost, goal.constants, fresh)
        run.work += verdict.work
        if verdict.passed:
            return replace(solved, status=VERIFIED, copies=copy + 1)
        if (verdict.negative, verdict.stationarity) < least:
            best, least = replace(solved, status=EXHAUSTED), (verdict.negative, verdict.stationarity)
    assert best is not None
    return replace(best, copies=boost.copies)


def one_solve(run: "Run", sub: Subproblem, goal: Goal, key: Any, state: Any = None, keep: bool = True) -> Solved:
    """One solve of one goal, from its start or from a `state` in its course; its work and its memory become the run's.

    With `keep`, checkpoints hold it between chunks.
    """
    try:
        return _solve(run, sub, goal, key, state, keep)
    except jax.errors.JaxRuntimeError as error:
        if not memory.is_out_of_memory(error):
            raise
        first = error
    if memory.shrink():
        run.micro = run.micro_batch()
        log.warning("The device ran out of memory: once more with micro-batches of %d samples", run.micro)
        try:
            return _solve(run, sub.smaller(run.micro), goal, key, state, keep)
        except jax.errors.JaxRuntimeError as error:
            if not memory.is_out_of_memory(error):
                raise
            first = error
    raise OutOfDeviceMemory(
        f"the device has too little memory for this problem, also with micro-batches of {run.micro} samples",
        "room for the data, a few gradients, and one micro-batch",
        "use float32 data, shard them over more devices, keep them on the disk, or make the model smaller",
    ) from first


class OutOfDeviceMemory(InputError, MemoryError):
    """A device that is too small for a problem."""


def _solve(run: "Run", sub: Subproblem, goal: Goal, key: Any, state: Any, keep: bool) -> Solved:
    plan = run.solver.plan(goal, run.dtype)
    run.watchdog.move("the first chunk of an inner solve, which is compiled where it is new")
    state = begin(run.solver, sub, run.z, plan, run.memory, key) if state is None else state
    state, stop = _chunks(run, sub, state, plan, goal, keep)
    seen_by = sub if run.solver.host else sub.lagrangian
    outcome, spent = run.solver.outcome(seen_by, run.z, state, plan, goal)
    run.work += state.progress.work.tally() + spent
    run.searches += state.progress.searches.tally()
    run.memory = state.memory
    return Solved(outcome, state.progress, int(state.progress.status), stop)


def _chunks(run: "Run", sub: Subproblem, state: Any, plan: Any, goal: Goal, keep: bool) -> tuple[Any, Status | None]:
    """Chunks until the solve ends, with what stopped it; an interruption keeps all that was done.

    How many steps a chunk has never depends on a clock, so a run that is carried on takes the steps it would have taken.
    """
    chunk, begun = run.solver.pace(goal), state
    while True:
        try:
            state = advance(run.solver, sub, state, plan, goal, chunk)
            jax.block_until_ready(state)  # the state is kept by now: what interrupts the wait loses nothing
            interrupted = False
        except KeyboardInterrupt:
            if state is begun:
                raise
            interrupted = True
        run.watchdog.move(f"outer iteration {run.outer}")
        if int(state.progress.status) != RUNNING and not interrupted:
            return state, None
        stop = Status.INTERRUPTED if interrupted else stop_inside(run, state)
        if keep:
            run.save(Unfinished(goal, state), force=stop is not None)
        if stop is not None:
            return state, stop

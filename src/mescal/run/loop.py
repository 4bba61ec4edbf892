"""The loop: legs of a method, each read, judged where it is worth it, recorded and learnt from, until something ends it.

It is the same for MESCAL and for the baselines: budgets, signals, checkpoints, the record and the judge are here, and in no method.
A leg is chunks of steps until it is over or a budget is used up, once more with less memory where the device has too little.
"""

import logging
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from ..blas import one_thread
from ..certificate import Certificate
from ..errors import InputError
from ..oracle import memory
from ..solvers.base import BROKEN, RUNAWAY, RUNNING
from .between_solves import narrower
from .judging import (
    cannot_decide,
    has_stalled,
    is_infeasible,
    judge,
    kink_beside,
    last_judgement,
    looked_for_ray,
    looked_for_ray_at_the_end,
    refused,
)
from .limits import called_off, used_up
from .method import Method
from .record import begun, recorded, shown_to_the_end
from .result import Result, Seconds, WorkDone
from .setup import Setup
from .state import Leg, Reading, State
from .status import Status

log = logging.getLogger("mescal")


class Run(NamedTuple):
    """A run that is ready to go, or to go on."""

    method: Method
    here: Setup
    state: State
    probe: np.ndarray  # what the functions say at the start, for checkpoints

    def go(self) -> Result:
        """Legs until a certificate, a cap, a budget, or an interruption; then the folder of the checkpoints is let go."""
        try:
            return go(self.method, self.here, self.state)
        finally:
            if self.here.checkpoints is not None:
                self.here.checkpoints.release()
            shown_to_the_end(self.here.settings)


def go(method: Method, here: Setup, state: State) -> Result:
    """Legs until a certificate, a cap, a budget, or an interruption."""
    status: Status | None = None
    legs = state.outer + (state.leg is not None)
    certificate: Certificate | None = None
    with here.signals, here.watchdog:
        try:
            started, state = len(state.history), begun(here, state)
            status = _called_off(here, state) if len(state.history) > started else None
            while status is None and state.outer < method.cap(here):
                legs, began = state.outer + 1, state
                state, taken = _take(method, here, state)
                state, certificate, status = _look_at(method, here, began, state, taken)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if status is None:
            _save(here, state, force=True)
        if status in (None, Status.NOT_FINITE):
            state = looked_for_ray_at_the_end(here, state, method.oracle(here, state))
            status = status if state.ray is None else Status.UNBOUNDED
        here.watchdog.move("the last certificate")
        told = replace(here, reason=method.reason(here, state))
        result = hand_back(told, state, status or Status.OUTER_LIMIT, certificate, legs)
    if here.checkpoints is not None and result.status.final:
        here.checkpoints.end()
    return result


def _take(method: Method, here: Setup, state: State) -> tuple[State, tuple[Any, Reading | None]]:
    """The next leg, or the one that a checkpoint brought, as the method reads it, with what its steps saw."""
    if state.leg is None:
        state, leg = method.plan(here, state, method.oracle(here, state))
    else:
        state, leg = replace(state, leg=None), state.leg
    state, oracle, leg, stop = to_its_end(method, here, state, leg, keep=leg.boost is None)
    after, reading = method.read(here, state, oracle, leg, stop)
    return after, (oracle, reading)


class OutOfDeviceMemory(InputError, MemoryError):
    """A device that is too small for a problem."""


def to_its_end(
    method: Method, here: Setup, state: State, leg: Leg, copy: int = 0, keep: bool = True
) -> tuple[State, Any, Leg, Status | None]:
    """A leg taken to its end, with what its steps saw, and what stopped it; with `keep`, checkpoints hold it between chunks."""
    while True:
        try:
            # far steps may overflow: what that makes is infinite, and no step is taken there
            with one_thread(), np.errstate(over="ignore", invalid="ignore"):
                return state, *_chunks(method, here, state, leg, copy, keep)
        except jax.errors.JaxRuntimeError as error:
            if not memory.is_out_of_memory(error):
                raise
            last = error
        if not memory.shrink():
            break
        state = replace(state, micro=here.micro_batch(state.scales))
        log.warning("The device ran out of memory: once more with micro-batches of %d samples", state.micro)
    raise OutOfDeviceMemory(
        f"the device has too little memory for this problem, also with micro-batches of {state.micro} samples",
        "room for the data, a few gradients, and one micro-batch",
        "use float32 data, shard them over more devices, keep them on the disk, or make the model smaller",
    ) from last


def _chunks(
    method: Method, here: Setup, state: State, leg: Leg, copy: int, keep: bool
) -> tuple[Any, Leg, Status | None]:
    """Chunks until the leg is over; an interruption keeps all that was done."""
    here.watchdog.move("the first chunk of a leg, which is compiled where it is new")
    oracle = method.oracle(here, state)
    if leg.inner is None:
        leg = leg._replace(inner=method.init(here, state, oracle, leg, copy))
    begun = leg
    while True:
        try:
            leg = leg._replace(inner=method.step(here, oracle, leg))
            jax.block_until_ready(leg.inner)  # it is kept by now: what interrupts the wait loses nothing
            interrupted = False
        except KeyboardInterrupt:
            if leg is begun:
                raise
            interrupted = True
        here.watchdog.move(f"outer iteration {state.outer}")
        progress = leg.inner.progress
        if int(progress.status) != RUNNING and not interrupted:
            return oracle, leg, None
        work = state.work + progress.work.tally()
        stop = Status.INTERRUPTED if interrupted else used_up(here.settings, here.clock, here.signals, work)
        if keep and here.checkpoints is not None:
            here.checkpoints.save(here, replace(state, leg=leg), force=stop is not None)
        if stop is not None:
            return oracle, leg, stop


def _look_at(
    method: Method, here: Setup, began: State, state: State, taken: tuple[Any, Reading | None]
) -> tuple[State, Certificate | None, Status | None]:
    """Judge, record and learn: the next state, or how the run ended, with its certificate where it has one."""
    oracle, reading = taken
    if reading is None:
        return state, None, Status.NOT_FINITE
    ended = Status.NOT_FINITE if reading.ended == BROKEN else reading.stop
    certificate = None
    if reading.candidate and ended is None:
        here.watchdog.move("the judge")
        state, certificate = judge(here, state, reading.multipliers)
    certified = certificate is not None and certificate.passes(here.settings.tol)
    if reading.stop is None and not certified:
        state = looked_for_ray(here, began, state, oracle, reading)
    state = recorded(here, state, reading, certificate)
    stop = _called_off(here, state)
    if ended is not None:
        return state, None, reading.stop or ended
    if certified:
        return replace(state, multipliers=reading.multipliers, ray=None), certificate, Status.CERTIFIED
    if state.ray is not None:
        return state, None, Status.UNBOUNDED
    if certificate is not None:
        state = refused(here, state, certificate)
    elif reading.ended != RUNAWAY and has_stalled(here, state, reading):
        state, found = judge(here, state, reading.multipliers)
        if is_infeasible(found):
            return replace(state, multipliers=reading.multipliers), found, Status.INFEASIBLE
        state = narrower(here, replace(state, work=state.work + found.work))
    stood, state = state.z, method.learn(here, state, oracle, reading, certificate)
    if certificate is not None and np.array_equal(state.z, stood) and cannot_decide(here, state, certificate):
        return replace(state, multipliers=reading.multipliers), certificate, Status.UNDECIDED
    state = replace(state, outer=state.outer + 1)
    stop = used_up(here.settings, here.clock, here.signals, state.work) or stop
    _save(here, state, force=stop is not None)
    return state, None, stop


def _called_off(here: Setup, state: State) -> Status | None:
    """Whether the callback, which sees every row of the history, ends the run."""
    return called_off(here.settings, state.history[-1], lambda: here.problem.unlifted(here.parameters(state))[0])


def _save(here: Setup, state: State, force: bool):
    if here.checkpoints is not None:
        here.checkpoints.save(here, state, force)


def hand_back(here: Setup, state: State, status: Status, own: Certificate | None, legs: int) -> Result:
    """Everything, with a certificate of the last good point whatever happened."""
    finite = status is not Status.NOT_FINITE
    state, certificate = last_judgement(here, state, own, finite)
    if finite and certificate.passes(here.settings.tol):
        status = Status.CERTIFIED
    kink = kink_beside(here, state, certificate) if status is Status.OUTER_LIMIT else None
    x, auxiliary = here.problem.unlifted(here.problem.settled(here.parameters(state)))
    return Result(
        x=x,
        auxiliary={name: np.asarray(value) for name, value in auxiliary.items()},
        slack=certificate.slack,
        multipliers=certificate.multipliers,
        status=status if kink is None else Status.KINK,
        certificate=certificate,
        objective=certificate.objective.value,
        history=state.history.named(certificate.multipliers),
        work=WorkDone(state.work, state.judged + certificate.work, state.searches),
        seconds=Seconds(here.clock.seconds, here.clock.compiling, certificate.seconds),
        tolerance=here.settings.tol,
        solver=here.solver.name,
        seed=here.settings.seed,
        penalty=state.scales.penalty(state.penalty),
        outer_iterations=legs,
        warnings=here.warnings if kink is None else (*here.warnings, str(kink)),
        reason=here.reason,
        ray=state.ray,
    )

"""The loop: legs of a method, each read, judged where it is worth it, recorded and learnt from, until something ends it.

It is the same for MESCAL and for the baselines: budgets, signals, checkpoints, the record and the judge are here, and in no method.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..certificate import Certificate
from ..solvers.base import BROKEN, RUNAWAY
from .judging import has_stalled, is_infeasible, judge, last_judgement, refused
from .leg import to_its_end
from .limits import called_off, used_up
from .method import Method
from .record import begun, recorded
from .result import Result, Seconds, WorkDone
from .setup import Setup
from .state import Reading, State
from .status import Status


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


def go(method: Method, here: Setup, state: State) -> Result:
    """Legs until a certificate, a cap, a budget, or an interruption."""
    status: Status | None = None
    legs = state.outer + (state.leg is not None)
    certificate: Certificate | None = None
    with here.signals, here.watchdog:
        try:
            state = begun(here, state)
            while status is None and state.outer < method.cap(here):
                legs = state.outer + 1
                state, reading = _take(method, here, state)
                state, certificate, status = _look_at(method, here, state, reading)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if status is None:
            _save(here, state, force=True)
        here.watchdog.move("the last certificate")
        result = hand_back(here, state, status or Status.OUTER_LIMIT, certificate, legs)
    if here.checkpoints is not None and result.status.final:
        here.checkpoints.end()
    return result


def _take(method: Method, here: Setup, state: State) -> tuple[State, tuple[object, Reading | None]]:
    """The next leg, or the one that a checkpoint brought, as the method reads it, with what its steps saw."""
    if state.leg is None:
        state, leg = method.plan(here, state, method.oracle(here, state))
    else:
        state, leg = replace(state, leg=None), state.leg
    state, oracle, leg, stop = to_its_end(method, here, state, leg, keep=leg.boost is None)
    state, reading = method.read(here, state, oracle, leg, stop)
    return state, (oracle, reading)


def _look_at(
    method: Method, here: Setup, state: State, taken: tuple[object, Reading | None]
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
    state = recorded(here, state, reading, certificate)
    if ended is not None:
        return state, None, reading.stop or ended
    if state.ray is not None:
        return state, None, Status.UNBOUNDED
    if certificate is not None:
        if certificate.passes(here.settings.tolerance):
            return replace(state, multipliers=reading.multipliers), certificate, Status.CERTIFIED
        state = refused(here, state, certificate)
    elif reading.ended != RUNAWAY and has_stalled(here, state, reading):
        state, found = judge(here, state, reading.multipliers)
        if is_infeasible(found):
            return replace(state, multipliers=reading.multipliers), found, Status.INFEASIBLE
        state = replace(state, work=state.work + found.work)
    row = state.history[-1]
    state = method.learn(here, state, oracle, reading, certificate)
    state = replace(state, outer=state.outer + 1)
    stop = used_up(here.settings, here.clock, here.signals, state.work) or called_off(here.settings, row)
    _save(here, state, force=stop is not None)
    return state, None, stop


def _save(here: Setup, state: State, force: bool):
    if here.checkpoints is not None:
        here.checkpoints.save(here, state, force)


def hand_back(here: Setup, state: State, status: Status, own: Certificate | None, legs: int) -> Result:
    """Everything, with a certificate of the last good point whatever happened."""
    finite = status is not Status.NOT_FINITE
    state, certificate = last_judgement(here, state, own, finite)
    if finite and certificate.passes(here.settings.tolerance):
        status = Status.CERTIFIED
    return Result(
        x=here.parameters(state),
        slack=certificate.slack,
        multipliers=certificate.multipliers,
        status=status,
        certificate=certificate,
        objective=certificate.objective.value,
        history=state.history,
        work=WorkDone(state.work, state.judged + certificate.work, state.searches),
        seconds=Seconds(here.clock.seconds, here.clock.compiling, certificate.seconds),
        tolerance=here.settings.tolerance,
        solver=here.solver.name,
        seed=here.settings.seed,
        penalty=state.scales.penalty(state.penalty),
        outer_iterations=legs,
        warnings=here.warnings,
        reason=here.reason,
        ray=state.ray,
    )

"""Boosting of an inner solve in a theory mode: the first of R independent copies that passes the verification."""

import math
from dataclasses import replace

import jax

from ..solvers.base import BROKEN, EXHAUSTED, VERIFIED
from ..solvers.paper.verification import verify
from .loop import to_its_end
from .mescal import Mescal
from .setup import Setup
from .state import Leg, Reading, State


def best_of_copies(
    method: Mescal, here: Setup, before: State, leg: Leg, state: State, reading: Reading | None
) -> tuple[State, Reading | None]:
    """The first copy that passes (`theory.boosting.boost`); the first of them has been taken, from `before` to `state`.

    If none passes, the one without negative curvature that is the most stationary, as EXHAUSTED: nothing is verified then.
    """
    boost, key, schedule = leg.boost, method.key(here, before), method.schedule
    assert schedule is not None
    best, least = None, (True, math.inf)
    for copy in range(boost.copies):
        if copy:
            begun = replace(before, work=state.work, searches=state.searches, memory=state.memory)
            begun, oracle, taken, stop = to_its_end(method, here, begun, leg._replace(inner=None), copy, keep=False)
            state, reading = method.read_one(here, begun, oracle, taken, stop)
            if stop is not None:
                return state, reading and reading._replace(copies=copy + 1)
        if reading is None or reading.ended == BROKEN:
            best = (state, reading) if best is None else best
            continue
        lagrangian = method.oracle(here, before).lagrangian
        fresh = jax.random.fold_in(key, boost.copies + copy)
        search = schedule.solver.search
        verdict = verify(here.solver.name, search, lagrangian, reading.outcome.z, boost, leg.goal.constants, fresh)
        state = replace(state, work=state.work + verdict.work)
        if verdict.passed:
            return state, _ended(method, here, state, reading, VERIFIED, copy + 1)
        if (verdict.negative, verdict.stationarity) < least:
            best, least = (state, reading), (verdict.negative, verdict.stationarity)
    assert best is not None
    kept, reading = best
    kept = replace(kept, work=state.work, searches=state.searches, memory=state.memory)
    if reading is None or reading.ended == BROKEN:
        return kept, reading
    return kept, _ended(method, here, kept, reading, EXHAUSTED, boost.copies)


def _ended(method: Mescal, here: Setup, state: State, reading: Reading, ended: int, copies: int) -> Reading:
    candidate = method.is_candidate(here, state, reading.constraint, ended, float(reading.outcome.stationarity))
    return reading._replace(ended=ended, copies=copies, candidate=candidate)

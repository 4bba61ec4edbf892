"""Epochs: what every practical solver does around its own recursion; on the host, around compiled looks and recursions.

An epoch starts with a reset: the exact gradient of a finite population, or one from a large batch. Then

1. descent: if the value at the reset is above that of the reset before, go back there, raise the smoothness fourfold
   and shrink the trust radius (without this test the same code ends far out in a flat region). On a stream the
   gradient may have been noise, so it is estimated again, from more samples for every failure in a row;
2. stop: if |P_T(-g)| <= 0.9 eps, search for negative curvature; none: verified; some: move along it. Without a search,
   as stationary only, where the outer loop said that a point this infeasible is no candidate;
3. run away: if the constraint exceeds what the outer loop allows, give up: L may have no minimum at this penalty;
4. otherwise run the solver's recursion, until its period ends, its running estimate falls below 0.8 eps, or it has gone
   as far from the reset as a descent test can answer for.
"""

import abc
from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled, leaf
from ..curvature import Search
from ..oracle import Lagrangian, Tally, Work
from ..oracle.draw import as_key, words
from ..oracle.subproblem import Array, Seen, Subproblem
from .base import (
    BROKEN,
    EXHAUSTED,
    FARAWAY,
    RUNAWAY,
    RUNNING,
    STATIONARY,
    VERIFIED,
    Goal,
    Memory,
    Outcome,
    Progress,
    SubSolver,
    fresh_progress,
    next_progress,
)
from .move import SURE, escape
from .reset import VERIFY, Target, fresh_constraint, take_reset
from .searching import MANY_ROWS, critical_cone, search_at

TRIGGER = 0.8  # of the tolerance: a running estimate below it asks for a reset
CURVATURE = 0.8  # of the tolerance: what the search is asked to find
BACKTRACK = 4.0  # factor on the smoothness, and on the inverse of the trust radius, when a reset finds no descent
REGAIN = 2.0  # factor on the trust radius when it does
STEEPEST = 1e18  # smoothness at most: its square is a number in float32, and a step by its inverse changes none
LONGEST_PERIOD = 512  # steps between resets at most
FAILURES = 24  # resets in a row without descent that end a solve: the smoothness has grown by 4^24
BROKEN_RESETS = 8  # resets in a row that are not finite before the problem is blamed
LOOKED = 1 << 22  # thetas of the resets in a chunk: with large ones, it has few
FLOOR_DECAY = 0.5  # of the floor under the smoothness at every reset that finds descent
SMALLEST_MICRO = 64  # samples of a micro-batch where the size of batches is data
RESET, SEARCH, ESCAPE, RECURSION, DUAL = range(5)  # what random numbers of an epoch are for


class EpochState(NamedTuple):
    """Progress, memory, and the last reset that descended."""

    progress: Progress
    memory: Memory
    reset: Seen
    first_value: Array  # of the augmented Lagrangian at the start; NaN before the first reset
    failures: Array  # resets in a row that did not descend
    epochs: Array  # so far; 0 before the first reset


class Inner(eqx.Module):
    """What a recursion hands back: where it got to, the smoothness it saw, its steps and work."""

    z: jax.Array
    smoothness: jax.Array
    steps: jax.Array
    work: Work


class EpochSolver(SubSolver):
    """A practical solver: a recursion inside epochs."""

    search: eqx.AbstractVar[Search]
    batch: eqx.AbstractVar[Any]
    period: eqx.AbstractVar[Any]

    @abc.abstractmethod
    def recurse(
        self, oracle: Lagrangian, reset: Seen, memory: Memory, target: Target, key: jax.Array, budget: jax.Array
    ) -> Inner:
        """Steps from a reset, at most `budget` of them; compiled."""

    def plan(self, goal: Goal, dtype: Any) -> Target:
        """The goal as arrays."""
        return Target(
            leaf(goal.gradient, dtype),
            leaf(goal.curvature, dtype),
            leaf(goal.steps, np.int32),
            leaf(self._period(goal), np.int32),
            leaf(goal.large_batch, np.int32),
            leaf(goal.curvature_batch, np.int32),
            leaf(goal.feasibility, dtype),
            leaf(goal.runaway, dtype),
        )

    def pace(self, goal: Goal) -> int:
        """Steps between two looks at the clock: few where resets are large."""
        return max(1, min(self.chunk, LOOKED // max(1, goal.large_batch)))

    def _period(self, goal: Goal) -> int:
        """Steps between resets: on a stream as many as take half as many batches as a reset holds, within bounds."""
        if goal.population is not None:
            return int(self.period)
        return int(np.clip(goal.large_batch // (2 * int(self.batch)), int(self.period), LONGEST_PERIOD))

    def init(self, sub: Subproblem, z: Array, target: Target, memory: Memory, key: Array) -> EpochState:
        """Before the first reset."""
        z = sub.project(z)
        return EpochState(
            progress=fresh_progress(z, key),
            memory=memory,
            reset=_unknown(sub, z),
            first_value=np.asarray(np.nan),
            failures=np.asarray(0),
            epochs=np.asarray(0),
        )

    def step(self, sub: Subproblem, state: EpochState, target: Target, goal: Goal) -> EpochState:
        """One epoch."""
        progress, memory, epoch = state.progress, state.memory, int(state.epochs)
        seed = tuple(int(word) for word in progress.key)
        before = state.reset if epoch else None
        failures, first = int(state.failures), epoch == 0
        candidate, noise, spent = take_reset(sub, progress.z, before, target, (*seed, epoch, RESET), failures)
        broken = not candidate.finite
        worse = before is not None and (broken or candidate.value > before.value + noise)
        reset = before if worse else candidate
        assert reset is not None
        smoothness, floor, trust = (float(part) for part in (memory.smoothness, memory.floor, memory.trust))
        if worse:
            smoothness = floor = min(BACKTRACK * max(smoothness, floor), STEEPEST)
            trust = max(trust / BACKTRACK, 1 / STEEPEST)
        else:
            floor, trust = FLOOR_DECAY * floor, min(1.0, trust * REGAIN)
        again = worse and sub.population is None  # the gradient of the reset may have been noise
        returned = before is not None and np.array_equal(progress.z, before.z)
        stop = not worse and reset.stationarity <= VERIFY * float(target.gradient)
        failures = failures + 1 if worse else failures if returned else 0
        work, looked, escaped, curvature = progress.work.tally() + spent, Tally(), 0, float(progress.curvature)
        z, status, taken = reset.z, RUNNING, 1
        if stop and self._is_searched(sub, reset, goal):
            z, status, curvature, looked = self._search(sub, reset, target, goal, (*seed, epoch))
            escaped = int(status == RUNNING)
        elif stop:
            status = STATIONARY
        elif not again:
            memory = Memory.of(smoothness, floor, trust, progress.z.dtype)
            budget = int(target.steps) - int(progress.steps)
            inner = _recurse(
                self,
                sub.lagrangian,
                reset.arrays(reset.z.dtype),
                memory,
                target,
                words(*seed, epoch, RECURSION),
                np.int32(budget),
            )
            z, smoothness, taken = np.asarray(inner.z), float(inner.smoothness), int(inner.steps)
            work = work + inner.work.tally()
        steps = int(progress.steps) + taken
        if status == RUNNING and (steps >= int(target.steps) or failures >= FAILURES):
            status = EXHAUSTED
        if status == RUNNING and float(np.linalg.norm(reset.z[: sub.parameters].astype(np.float64))) > goal.far:
            status = FARAWAY
        if not first and float(np.linalg.norm(reset.constraint)) > float(target.runaway):
            status = RUNAWAY
        if broken and (first or failures >= BROKEN_RESETS):
            status = BROKEN
        there, total = z if status == RUNNING else reset.z, work + looked
        progress = next_progress(progress, there, steps, status, total, looked, reset.stationarity, curvature, escaped)
        return EpochState(
            progress=progress,
            memory=Memory.of(smoothness, floor, trust, z.dtype),
            reset=reset.arrays(),
            first_value=np.asarray(reset.value) if first else state.first_value,
            failures=np.asarray(failures),
            epochs=np.asarray(epoch + 1),
        )

    def _is_searched(self, sub: Subproblem, reset: Seen, goal: Goal) -> bool:
        """Whether a stationary point is a candidate for a certificate, or one that a larger penalty alone would not leave."""
        if sub.violation(reset.constraint) <= goal.ready:
            return True
        worth = sub.violation(reset.constraint) <= goal.feasibility
        return worth and (sub.looks is None or sub.stuck(reset))

    def _search(self, sub, reset: Seen, target: Target, goal: Goal, seed: tuple[int, ...]):
        """Where to go on, the status, the curvature that was seen, and the work, at a point that is stationary."""
        error = SURE * float(np.sqrt(float(reset.noise) / max(1, int(target.large_batch))))
        weak = max(goal.weak, goal.gradient) + error
        judged = goal.judged and sub.violation(reset.constraint) <= goal.ready
        if judged and critical_cone(sub, reset, weak).weak <= MANY_ROWS:
            return reset.z, VERIFIED, float("nan"), Tally()  # the judge looks for negative curvature, and says where
        batch = int(target.curvature_batch)
        tolerance = CURVATURE * float(target.curvature)
        found, looked = search_at(self.search, sub, reset, tolerance, (*seed, SEARCH), batch, weak)
        if found.direction is None:
            return reset.z, VERIFIED, found.curvature, looked
        moved, tried = escape(sub, reset.z, found.direction, found.curvature, (*seed, ESCAPE), batch)
        stays = VERIFIED if judged else EXHAUSTED
        return moved, stays if np.array_equal(moved, reset.z) else RUNNING, found.curvature, looked + tried

    def outcome(self, sub: Subproblem, start: Array, state: EpochState, plan: Target, goal: Goal):
        """The last reset that descended. On a stream multipliers move by samples of their own, as Algorithm 1 draws them: those of
        the reset were kept because the stop test passed on them.
        """
        at, dual, spent = state.reset, None, Tally()
        if sub.population is None and sub.form.constraints:
            given = words(*(int(word) for word in state.progress.key), int(state.epochs), DUAL)
            mean, work = fresh_constraint(sub.lagrangian, np.asarray(at.z), given, np.int32(goal.large_batch))
            spent, fresh = work.tally(), np.asarray(mean, np.float64)
            dual = fresh if np.isfinite(fresh).all() else None
        outcome = Outcome(
            z=at.z,
            value=at.value,
            first_value=state.first_value,
            objective=float(at.objective),
            constraint=at.constraint,
            multipliers=at.multipliers,
            stationarity=state.progress.stationarity,
            regularity=at.regularity,
            step=1 / max(float(state.memory.smoothness), 1e-300),
            batch=int(self.batch),
            large_batch=goal.large_batch,
            dual=dual,
        )
        return outcome, spent


def as_data(number: Any, usual: int) -> Any:
    """An option as data of the compiled recursion, so that a sweep over it compiles once; the usual value is built in."""
    return number if isinstance(number, int) and number == usual else np.int32(number)


def suited(oracle: Lagrangian, batch: Any) -> Lagrangian:
    """The oracle for batches whose size is data: in small micro-batches, of which the last one is masked."""
    return oracle if isinstance(batch, int) else replace(oracle, micro=min(oracle.micro, SMALLEST_MICRO))


def _unknown(sub: Subproblem, z: Array) -> Seen:
    """A place for the first reset."""
    m, infinite, nothing = sub.form.constraints, np.asarray(np.inf), np.asarray(0.0)
    known = sub.population is None or sub.gives_jacobian
    rows, jacobian = np.zeros(m), np.zeros((m, z.size)) if known else None
    return Seen(z, infinite, infinite, np.zeros(z.size), rows, rows, infinite, infinite, jacobian, nothing)


@compiled
def _recurse(
    solver: EpochSolver, oracle: Lagrangian, reset: Seen, memory: Memory, target: Target, given, budget
) -> Inner:
    return solver.recurse(oracle, reset, memory, target, as_key(given), jnp.asarray(budget))

"""Epochs: what every practical solver does around its own recursion.

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
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..curvature import Search
from ..oracle import Lagrangian, Tally, Work
from ..oracle.host import leaf
from .base import (
    BROKEN,
    EXHAUSTED,
    RUNAWAY,
    RUNNING,
    STATIONARY,
    VERIFIED,
    Goal,
    Memory,
    Outcome,
    Progress,
    Solver,
    fresh_progress,
)
from .move import escape
from .reset import VERIFY, Reset, Target, take_reset

TRIGGER = 0.8  # of the tolerance: a running estimate below it asks for a reset
CURVATURE = 0.8  # of the tolerance: what the search is asked to find
BACKTRACK = 4.0  # factor on the smoothness, and on the inverse of the trust radius, when a reset finds no descent
REGAIN = 2.0  # factor on the trust radius when it does
LONGEST_PERIOD = 512  # steps between resets at most
FAILURES = 24  # resets in a row without descent that end a solve: the smoothness has grown by 4^24
BROKEN_RESETS = 8  # resets in a row that are not finite before the problem is blamed
LOOKED = 1 << 22  # thetas of the resets in a chunk: with large ones, it has few
FLOOR_DECAY = 0.5  # of the floor under the smoothness at every reset that finds descent


class EpochState(eqx.Module):
    """Progress, memory, and the last reset that descended."""

    progress: Progress
    memory: Memory
    reset: Reset
    first_value: jax.Array  # of the augmented Lagrangian at the start; NaN before the first reset
    failures: jax.Array  # resets in a row that did not descend


class Inner(eqx.Module):
    """What a recursion hands back: where it got to, the smoothness it saw, its steps and work."""

    z: jax.Array
    smoothness: jax.Array
    steps: jax.Array
    work: Work


class EpochSolver(Solver):
    """A practical solver: a recursion inside epochs."""

    search: eqx.AbstractVar[Search]
    batch: eqx.AbstractVar[int]
    period: eqx.AbstractVar[int]

    @abc.abstractmethod
    def recurse(
        self, oracle: Lagrangian, reset: Reset, memory: Memory, target: Target, key: jax.Array, budget: jax.Array
    ) -> Inner:
        """Steps from a reset, at most `budget` of them."""

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
            return self.period
        return int(np.clip(goal.large_batch // (2 * self.batch), self.period, LONGEST_PERIOD))

    def init(self, oracle: Lagrangian, z: jax.Array, target: Target, memory: Memory, key: jax.Array) -> EpochState:
        """Before the first reset."""
        z = oracle.project(z)
        reset = Reset.unknown(oracle, z)
        return EpochState(fresh_progress(z, key), memory, reset, jnp.asarray(jnp.nan, z.dtype), jnp.int32(0))

    def step(self, oracle: Lagrangian, state: EpochState, target: Target) -> EpochState:
        """One epoch."""
        progress, memory = state.progress, state.memory
        key_reset, key_search, key_escape, key_inner, key_next = jax.random.split(progress.key, 5)
        candidate, noise, spent = take_reset(oracle, progress.z, state.reset, target, key_reset, state.failures)
        broken = ~jnp.isfinite(candidate.value) | ~jnp.all(jnp.isfinite(candidate.gradient))
        first = jnp.isinf(state.reset.value)
        worse = ~first & (broken | (candidate.value > state.reset.value + noise))
        reset = _select(worse, state.reset, candidate)
        smoothness = jnp.where(worse, BACKTRACK * jnp.maximum(memory.smoothness, memory.floor), memory.smoothness)
        floor = jnp.where(worse, smoothness, FLOOR_DECAY * memory.floor)
        trust = jnp.where(worse, memory.trust / BACKTRACK, jnp.minimum(1, memory.trust * REGAIN))
        memory = Memory(smoothness, floor, trust)
        again = worse & (oracle.population is None)  # the gradient of the reset may have been noise
        returned = ~first & jnp.all(progress.z == state.reset.z)
        stop = ~worse & (reset.stationarity <= VERIFY * target.gradient)
        feasible = jnp.linalg.norm(reset.constraint / oracle.form.constraint_scale) <= target.feasibility
        work = progress.work + spent

        def searching(_):
            found, looked = self.search(
                oracle, reset.z, CURVATURE * target.curvature, key_search, target.curvature_batch
            )
            moved, tried = jax.lax.cond(
                found.negative,
                lambda: escape(oracle, reset.z, found.direction, found.curvature, key_escape, target.curvature_batch),
                lambda: (reset.z, Work.zero()),
            )
            escaped = found.negative & jnp.any(moved != reset.z)
            status = jnp.where(found.negative & ~escaped, EXHAUSTED, jnp.where(escaped, RUNNING, VERIFIED))
            return moved, status.astype(jnp.int32), found.curvature, escaped.astype(jnp.int32), looked + tried

        def passing(_):
            status = jnp.where(stop, STATIONARY, RUNNING).astype(jnp.int32)
            return reset.z, status, progress.curvature, jnp.int32(0), Work.zero()

        z, status, curvature, escaped, looked = jax.lax.cond(stop & feasible, searching, passing, None)

        def recursing(_):
            return self.recurse(oracle, reset, memory, target, key_inner, target.steps - progress.steps)

        def resting(_):
            return Inner(z, memory.smoothness, jnp.int32(1), Work.zero())

        inner = jax.lax.cond(stop | again, resting, recursing, None)
        steps = progress.steps + inner.steps
        status = jnp.where((status == RUNNING) & (steps >= target.steps), EXHAUSTED, status)
        failures = jnp.where(worse, state.failures + 1, jnp.where(returned, state.failures, 0))
        status = jnp.where((status == RUNNING) & (failures >= FAILURES), EXHAUSTED, status)
        status = jnp.where(~first & (jnp.linalg.norm(reset.constraint) > target.runaway), RUNAWAY, status)
        status = jnp.where(broken & (first | (failures >= BROKEN_RESETS)), BROKEN, status)
        done = status != RUNNING
        progress = Progress(
            z=jnp.where(done, reset.z, inner.z),
            key=key_next,
            steps=steps,
            status=status.astype(jnp.int32),
            work=work + looked + inner.work,
            searches=progress.searches + looked,
            stationarity=reset.stationarity,
            curvature=curvature,
            escapes=progress.escapes + escaped,
        )
        first_value = jnp.where(first, reset.value, state.first_value)
        return EpochState(progress, Memory(inner.smoothness, memory.floor, memory.trust), reset, first_value, failures)

    def outcome(self, oracle, start, state: EpochState, plan, goal):
        """The last reset that descended; nothing is left to measure."""
        at = state.reset
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
            batch=self.batch,
            large_batch=goal.large_batch,
        )
        return outcome, Tally()


def _select(condition: jax.Array, first: Any, second: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), first, second)

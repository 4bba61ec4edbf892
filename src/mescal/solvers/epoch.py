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
from ..oracle.exact import one_pass
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
from .move import SURE, best_slack, escape, paired_differences

TRIGGER = 0.8  # of the tolerance: a running estimate below it asks for a reset
VERIFY = 0.9  # of the tolerance: a reset gradient below it is accepted
CURVATURE = 0.8  # of the tolerance: what the search is asked to find
BACKTRACK = 4.0  # factor on the smoothness, and on the inverse of the trust radius, when a reset finds no descent
REGAIN = 2.0  # factor on the trust radius when it does
NORM_TEST = 0.5  # of the last gradient: standard error of a reset gradient on a stream
SMALLEST_RESET = 1024  # thetas of a reset on a stream
LONGEST_PERIOD = 512  # steps between resets at most
FAILURES = 24  # resets in a row without descent that end a solve: the smoothness has grown by 4^24
BROKEN_RESETS = 8  # resets in a row that are not finite before the problem is blamed
ROUNDINGS = 8.0  # units of rounding by which an exact value may be above another one and still count as no worse
LOOKED = 1 << 22  # thetas of the resets in a chunk: with large ones, it has few
FLOOR_DECAY = 0.5  # of the floor under the smoothness at every reset that finds descent


class Target(eqx.Module):
    """A goal as array leaves: tolerances, the cap t* on steps, sizes of large batches."""

    gradient: jax.Array
    curvature: jax.Array
    steps: jax.Array
    period: jax.Array  # steps between resets
    large_batch: jax.Array
    gradient_noise: jax.Array  # per theta; 0 where resets are exact
    curvature_batch: jax.Array
    feasibility: jax.Array  # of a point that is worth a curvature search, in the problem's units
    runaway: jax.Array  # a constraint of this size ends the solve


class Reset(eqx.Module):
    """A reset: the point, its value and gradient, the constraint there, and how stationary it is at which multipliers.

    `regularity` is |P_T(-J'c)| / |c|, NaN where unknown: where it vanishes, the violation cannot fall to first order.
    """

    z: jax.Array
    value: jax.Array
    objective: jax.Array  # f alone
    gradient: jax.Array
    constraint: jax.Array
    multipliers: jax.Array
    stationarity: jax.Array
    regularity: jax.Array
    jacobian: jax.Array | None  # of the constraint; None where one pass does not give it


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
            leaf(goal.gradient_noise, dtype),
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
        nothing, unknown = jnp.zeros(oracle.form.constraints, z.dtype), jnp.asarray(jnp.inf, z.dtype)
        known = oracle.population is None or one_pass(oracle.form)
        jacobian = jnp.zeros((nothing.size, z.size), z.dtype) if known else None
        reset = Reset(z, unknown, unknown, jnp.zeros_like(z), nothing, nothing, unknown, unknown, jacobian)
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


def take_reset(
    oracle: Lagrangian, z: jax.Array, before: Reset, target: Target, key: jax.Array, failures: jax.Array
) -> tuple[Reset, jax.Array, Work]:
    """A reset at z, exact or from a large batch, and the noise of its value against the last reset's.

    Exact values are so to rounding: where they differ by no more, the gradient, which still tells points apart there,
    decides.
    """
    if oracle.population is not None:
        reset, work = exact_reset(oracle, z)
        return reset, jnp.where(reset.stationarity < before.stationarity, rounding_of(reset), 0), work
    return sampled_reset(oracle, z, before, target, key, failures)


def exact_reset(oracle: Lagrangian, z: jax.Array) -> tuple[Reset, Work]:
    """From a full pass; slacks are moved to their best for this x, which c being known costs nothing."""
    at, work = oracle.exact(z)
    if at.jacobian is not None:
        relaxed = best_slack(oracle, z, at.constraint)
        at, z = oracle.shifted(at, z, relaxed), relaxed
    stationarity = jnp.linalg.norm(oracle.project_tangent(z, -at.gradient))
    multipliers = oracle.multipliers + oracle.penalty * at.constraint
    regular = regularity(oracle, z, at)
    f = at.value - (oracle.multipliers + oracle.penalty / 2 * at.constraint) @ at.constraint
    reset = Reset(z, at.value, f, at.gradient, at.constraint, multipliers, stationarity, regular, at.jacobian)
    return reset, work


def rounding_of(reset: Reset) -> jax.Array:
    """What an exact value may be off by: the parts it is summed from, and z, are known to so many units of rounding."""
    parts = jnp.abs(reset.objective) + jnp.abs(reset.value - reset.objective)
    return ROUNDINGS * jnp.finfo(reset.z.dtype).eps * (parts + jnp.abs(reset.gradient) @ jnp.abs(reset.z))


def sampled_reset(
    oracle: Lagrangian, z: jax.Array, before: Reset, target: Target, key: jax.Array, failures: jax.Array
) -> tuple[Reset, jax.Array, Work]:
    """From a batch that is as large as the last gradient, the failures since, and the tolerance ask for.

    The error of the mean constraint, times al J', is an error of the multiplier, not of stationarity: multipliers may move
    within it to make the point as stationary as it is. Values are differences to the last reset on common samples.
    """
    known = jnp.isfinite(before.value)
    wanted = target.gradient_noise / (NORM_TEST * jnp.linalg.norm(before.gradient)) ** 2
    wanted = jnp.maximum(wanted, SMALLEST_RESET) * 4.0 ** jnp.minimum(failures, 12)
    wanted = jnp.where(known, jnp.clip(wanted, SMALLEST_RESET, target.large_batch), target.large_batch)
    n = jnp.where(jnp.isfinite(wanted), wanted, target.large_batch).astype(jnp.int32)
    at, work = oracle.estimate(z, jax.random.fold_in(key, 1), n)
    reach = SURE * oracle.penalty * jnp.sqrt(at.constraint_variance)
    shift = best_shift(oracle, z, at, reach)
    stationarity = jnp.linalg.norm(oracle.project_tangent(z, -(at.gradient + shift @ at.jacobian)))
    difference, error, compared = paired_differences(oracle, z[None], before.z, jax.random.fold_in(key, 2), n)
    value = jnp.where(known, before.value + difference[0], 0)
    multipliers = oracle.multipliers + oracle.penalty * at.constraint + shift
    stationarity = jnp.where(n >= target.large_batch, stationarity, jnp.inf)  # a small batch verifies nothing
    regular = regularity(oracle, z, at)
    reset = Reset(z, value, at.objective, at.gradient, at.constraint, multipliers, stationarity, regular, at.jacobian)
    return reset, SURE * error[0], work + compared


def regularity(oracle: Lagrangian, z: jax.Array, at: Any) -> jax.Array:
    """|P_T(-J'c)| / |c| at z; infinite without violation, NaN where the Jacobian was not needed."""
    size = jnp.linalg.norm(at.constraint)
    if at.jacobian is None:
        return jnp.asarray(jnp.nan, z.dtype)
    slope = jnp.linalg.norm(oracle.project_tangent(z, -(at.constraint @ at.jacobian)))
    return jnp.where(size > 0, slope / jnp.where(size > 0, size, 1), jnp.inf)


def best_shift(oracle: Lagrangian, z: jax.Array, at: Any, reach: jax.Array) -> jax.Array:
    """argmin over |mu_j| <= reach_j of |P(g + J'mu)| on the face of z, by least squares and clipping."""
    if oracle.form.constraints == 0:
        return reach
    rows = jax.vmap(lambda row: oracle.project_face(z, row))(at.jacobian)
    gradient = oracle.project_face(z, at.gradient)
    gram = rows @ rows.T
    ridge = jnp.finfo(z.dtype).eps * jnp.trace(gram) * jnp.eye(gram.shape[0], dtype=z.dtype)
    return jnp.clip(-jnp.linalg.solve(gram + ridge + jnp.finfo(z.dtype).tiny, rows @ gradient), -reach, reach)


def _select(condition: jax.Array, first: Any, second: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), first, second)

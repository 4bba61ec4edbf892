"""One loop in the null space of the constraints (`docs/null-space.md`), with SPIDER recursions of plain expectations.

    every epoch: (g, c, J) at x from all rows or a large batch;   then, on small batches S:
    (g, c, J) += (g, c, J)_S(x+) - (g, c, J)_S(x)
    x+ = x + d:   d = argmin g'd + (L/2)|d|^2   s.t.  J_j d = -c_j/2 (c_j <= 0: <= -c_j for inequalities),  x + d in X
    |P_T(-(g + J'lam))| and |c| small: a search on Null(J) for H = grad^2 f + sum lam_j grad^2 c_j, and a move along what it finds

No product of expectations is estimated, so nothing is biased, and no penalty grows: there is no outer loop. Practical mode, with
the safeguards of `epoch`: a descent test at every reset, a trust radius, and L by the secants of the Lagrangian's gradient.

1. Descent is that of L(.; lam, beta) at the multipliers of the reset before, not of Fletcher's function, whose multipliers move.
   Where |c| fell and L rose, beta rises fourfold instead, up to L/sigma^2, sigma the smallest singular value of J: what the normal
   step needs at most.
2. Inequalities are rows of the subproblem, not squared slacks; slacks are set for the judge alone.
3. Rows that are not independent end the solve as IRREGULAR.
"""

import math
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import prepared
from ..curvature import Lanczos, Search
from ..oracle import Lagrangian, Tally, Work
from ..oracle.draw import as_key, words
from ..oracle.subproblem import Array, Subproblem
from .base import (
    BROKEN,
    EXHAUSTED,
    FARAWAY,
    IRREGULAR,
    RUNNING,
    Goal,
    Memory,
    Outcome,
    Progress,
    SubSolver,
    fresh_progress,
    next_progress,
)
from .epoch import BACKTRACK, BROKEN_RESETS, FAILURES, FLOOR_DECAY, LOOKED, REGAIN, STEEPEST, TRIGGER
from .move import DECAY, REACH
from .single_loop.known import (
    RISE,
    Known,
    closeness,
    face_of,
    is_finite,
    may_rise,
    room,
    settled,
    sharpest,
    take_reset,
    thetas,
    with_slack,
)
from .single_loop.linear_step import linear_step
from .single_loop.null_cone import left_along
from .spider import PERIODS, SMALLEST_BATCH

NORMAL = 0.5  # of the violation: what a step removes of it, to first order
ENOUGH = 0.5  # of the thetas that a candidate asks for: they follow from a noise that eight groups of samples tell
MOST_ROWS = 64  # of c: the memory of J, and the equations of a step
LONGEST = 512  # steps of a recursion
RESET, RECURSION = 0, 3  # what random numbers of an epoch are for, beside those of `null_cone`


class NullSpaceState(NamedTuple):
    """Progress, memory, the last reset that descended, and beta."""

    progress: Progress
    memory: Memory
    at: Known
    first_value: Array
    penalty: Array
    failures: Array  # resets in a row that did not descend
    epochs: Array


class NullSpace(SubSolver):
    """Settings of the single loop.

    **Arguments:**

    - `batch`: thetas of a recursive step; default: the square root of a finite population, at least 64.
    - `period`: steps between resets; default: as many as cost a full pass, from 32 to 128.
    - `search`: the negative-curvature search.
    """

    name: ClassVar[str] = "null-space"
    single_loop: ClassVar[bool] = True
    chunk: ClassVar[int] = 4  # epochs, each with a recursion on the host

    batch: int = eqx.field(static=True, default=0)  # 0: to be sized
    period: int = eqx.field(static=True, default=0)
    search: Search = Lanczos()

    def sized(self, population):
        """Batch and period for a population, as SPIDER has them."""
        whole = population or 0
        batch = self.batch or max(SMALLEST_BATCH, 2 ** round(math.log2(max(1.0, math.sqrt(whole)))))
        longest = 2 ** round(math.log2(max(1.0, whole / (2 * batch))))
        return replace(self, batch=batch, period=self.period or min(max(longest, PERIODS[0]), PERIODS[1]))

    def pace(self, goal: Goal) -> int:
        """Epochs between two looks at the clock: few where resets are large."""
        return max(1, min(self.chunk, LOOKED // max(1, goal.large_batch)))

    def plan(self, goal: Goal, dtype: Any) -> Any:
        """Nothing is compiled for a goal."""
        return ()

    def init(self, sub: Subproblem, z: Array, plan: Any, memory: Memory, key: Array) -> NullSpaceState:
        """Before the first reset."""
        z = sub.project(z)
        d, m = sub.parameters, sub.form.constraints
        nothing = Known(
            z, np.asarray(np.nan), np.zeros(m), np.zeros(d), np.zeros((m, d)), sub.multipliers,
            np.asarray(np.inf), np.asarray(np.inf), np.zeros(2), np.asarray(True),
        )  # fmt: skip
        beta = np.asarray(sub.penalty, np.float64)
        return NullSpaceState(
            fresh_progress(z, key), memory, nothing, np.asarray(np.nan), beta, np.asarray(0), np.asarray(0)
        )

    def step(self, sub: Subproblem, state: NullSpaceState, plan: Any, goal: Goal) -> NullSpaceState:
        """One epoch: a reset, and what follows from it."""
        progress, memory, epoch = state.progress, state.memory, int(state.epochs)
        seed, failures, beta = tuple(int(word) for word in progress.key), int(state.failures), float(state.penalty)
        before = state.at if epoch else None
        smoothness, floor, trust = (float(part) for part in (memory.smoothness, memory.floor, memory.trust))
        n = thetas(sub, before, goal, failures)
        there, noise, work = take_reset(sub, progress.z, before, beta, smoothness, n, (*seed, epoch, RESET))
        finite = is_finite(there)
        worse = before is not None and not (finite and there.value <= before.value + noise)
        if worse and finite and before is not None and may_rise(sub, there, before, beta, smoothness):
            beta, worse = RISE * beta, False
        at = before if worse else there
        assert at is not None
        if worse:
            smoothness = floor = min(BACKTRACK * max(smoothness, floor), STEEPEST)
            trust, failures = max(trust / BACKTRACK, 1 / STEEPEST), failures + 1
        else:
            floor, trust, failures = FLOOR_DECAY * floor, min(1.0, trust * REGAIN), 0
        work, looked, escaped, curvature = progress.work.tally() + work, Tally(), 0, float(progress.curvature)
        violation, status, taken = sub.violation(with_slack(sub, at)), RUNNING, 1
        z = at.z
        close = at.stationarity <= closeness(sub) * goal.gradient and violation <= goal.ready
        if not worse and close and ENOUGH * sharpest(sub, at, goal) <= n:
            z, status, curvature, looked = left_along(self.search, sub, at, beta, goal, (*seed, epoch))
            escaped = int(status == RUNNING)
        elif sub.population is not None or not (worse or close):  # else it may have been noise: once more, sharper
            learnt, most = (smoothness, floor, trust), min(self._period(sub, n), goal.steps - int(progress.steps))
            z, smoothness, taken, spent = self._recurse(sub, at, goal, learnt, beta, most, (*seed, epoch))
            work = work + spent
        steps = int(progress.steps) + taken
        if status == RUNNING:
            status = _status(sub, at, goal, steps, failures)
        if not finite and (before is None or failures >= BROKEN_RESETS):
            status = BROKEN
        z = z if status == RUNNING else at.z
        progress = next_progress(progress, z, steps, status, work + looked, looked, at.stationarity, curvature, escaped)
        first = np.asarray(at.value) if before is None else state.first_value
        memory = Memory.of(smoothness, floor, trust, z.dtype)
        arrays = Known(*(np.asarray(part) for part in at))
        return NullSpaceState(
            progress, memory, arrays, first, np.asarray(beta), np.asarray(failures), np.asarray(epoch + 1)
        )

    def _period(self, sub: Subproblem, n: int) -> int:
        """Steps until the next reset: on a stream, as many as cost what a reset of n thetas did."""
        return self.period if sub.population is not None else int(np.clip(n // (2 * self.batch), PERIODS[0], LONGEST))

    def _recurse(
        self,
        sub: Subproblem,
        at: Known,
        goal: Goal,
        learnt: tuple[float, float, float],
        beta: float,
        most: int,
        seed: Any,
    ) -> tuple[Array, float, int, Tally]:
        """Steps on small batches; where they led, the smoothness that was seen, how many, and the work."""
        d, face = sub.parameters, face_of(sub)
        smoothness, floor, trust = learnt
        z, g, c, jacobian, lam = at.z, at.gradient, at.constraint, at.jacobian, at.multipliers
        start, radius = z[:d].astype(np.float64), trust * max(1.0, float(np.linalg.norm(z[:d])) / 10)
        work, taken, dtype, changes = Tally(), 0, z.dtype, prepared(_changes, sub.lagrangian, self.batch)
        while taken < max(1, most):
            x = z[:d].astype(np.float64)
            step = linear_step(face, x, g, jacobian, _wanted(sub, c), ~sub.inequality, max(smoothness, 1 / STEEPEST))
            length = float(np.linalg.norm(step.d))
            moved = sub.project(
                np.concatenate([x + min(1.0, radius / max(length, 1e-300)) * step.d, z[d:]]).astype(dtype)
            )
            given = words(*seed, RECURSION, taken)
            change, spent = changes(np.stack([z, moved]), given)
            work, taken = work + spent.tally(), taken + 1
            dg, dc, dj = (np.asarray(part, np.float64) for part in change)
            dx = float(np.linalg.norm(moved[:d].astype(np.float64) - x))
            if not (np.isfinite(dg).all() and np.isfinite(dc).all() and np.isfinite(dj).all()) or dx == 0:
                z = z if dx else moved
                break
            bend = float(np.linalg.norm(dg[:d] + lam @ dj[:, :d])) / dx
            smoothness = max(DECAY * smoothness, bend, floor)
            z, g, c, jacobian = moved, g + dg[:d], c + dc, jacobian + dj[:, :d]
            small = dx * smoothness <= TRIGGER * goal.gradient and sub.violation(room(sub, c, lam)) <= goal.ready
            if small or float(np.linalg.norm(z[:d].astype(np.float64) - start)) > REACH * radius:
                break
        return settled(sub, z, c, at.multipliers, beta), smoothness, taken, work

    def outcome(self, sub: Subproblem, start: Array, state: NullSpaceState, plan: Any, goal: Goal):
        """The last reset that descended; nothing is left to measure."""
        at = state.at
        constraint = with_slack(sub, at)
        rows = np.concatenate([at.jacobian, sub.scale[:, None] * sub.columns], axis=1)
        outcome = Outcome(
            z=at.z,
            value=at.value,
            first_value=state.first_value,
            objective=float(at.objective),
            constraint=constraint,
            multipliers=at.multipliers,
            stationarity=at.stationarity,
            regularity=np.asarray(sub.regularity(at.z, constraint, rows)),  # pyright: ignore[reportArgumentType]
            step=1 / max(float(state.memory.smoothness), 1e-300),
            batch=int(self.batch),
            large_batch=goal.large_batch,
        )
        return outcome, Tally()


def _status(sub: Subproblem, at: Known, goal: Goal, steps: int, failures: int) -> int:
    """What an epoch that came to no candidate says: that it goes on, or why not."""
    if not bool(at.regular):
        return IRREGULAR
    if steps >= goal.steps or failures >= FAILURES:
        return EXHAUSTED
    return FARAWAY if float(np.linalg.norm(at.z[: sub.parameters].astype(np.float64))) > goal.far else RUNNING


def _changes(oracle: Lagrangian, batch: int, points: jax.Array, given: jax.Array) -> tuple[Any, Work]:
    """(g, c, J) at the second point less those at the first, on the same samples."""
    small = replace(oracle, micro=batch)
    both, work = jax.vmap(lambda z: small.estimate(z, as_key(given), jnp.int32(batch)))(points)
    parts = both.objective_gradient, both.constraint, both.jacobian
    work = jax.tree.map(lambda part: part[0], work)
    return tuple(part[1] - part[0] for part in parts), work + work


def _wanted(sub: Subproblem, c: Array) -> Array:
    """What J d is asked to be: half of the violation less, and no further than an inequality allows."""
    return np.where(sub.inequality & (c <= 0), -c, -NORMAL * c)

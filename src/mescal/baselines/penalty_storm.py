"""Single-loop quadratic penalty method with STORM (Alacaoglu and Wright 2024, expectation constraints).

    Q_rho = f + rho/2 |c|^2;     z_{k+1} = P(z_k - tau_k G_k)
    G_{k+1} = grad Q_{rho_{k+1}}(z_{k+1}; S) + (1 - a_k) (G_k - grad Q_{rho_k}(z_k; S))
    rho_k = rho_0 r^(1/5),   tau_k = r^(-2/5) / (2 L(rho_k)) ~ r^(-3/5),   a_k = min(1, a_0 r^(-4/5)),   r = 1 + k/k_0

One loop, a fixed small batch, no multipliers: stationarity and violation both fall like k^(-1/5), the violation like
|lam*| / rho_k. For a tolerance eps the theory takes rho of order 1/eps.

Deviations: 1. rho_0 starts at max(1, L_f/|J|^2), at which objective and penalty are equally curved. Where a stationary point
is infeasible by v, the loop starts anew from it with rho_0 larger by 2 v/eps: the violation falls like 1/rho. 2. L(rho) =
L_f + rho (|J|^2 + sum_j |c_j| L_j) is estimated where the steps go; a trust radius holds steps that an estimate from a flat
region would make too long. 3. k_0 = 100 delays the decay. 4. The last iterate is measured, not a random one. 5. Slacks have
steps in their own unit (`storm.metric_step`).
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..run.scaling import SMALLEST_SMOOTHNESS
from ..solvers.base import EXHAUSTED, STATIONARY, Progress, fresh_progress
from ..solvers.epoch import TRIGGER
from .base import Baseline
from .measure import read_penalised
from .storm import metric_step, moved_on, paired_gradients, recursion, running

SAFE = 2.0  # times the penalty at which the violation would just meet the tolerance
HIGHEST = 1e8  # penalty


class Memory(eqx.Module):
    """G, the steps since the start, rho_0, and tau_k."""

    estimate: jax.Array
    steps: jax.Array
    penalty: jax.Array
    step: jax.Array


class Plan(eqx.Module):
    """The tolerance, the most steps of a leg, and L(rho) = curved + rho * penalised."""

    gradient: jax.Array
    least: jax.Array
    most: jax.Array
    curved: jax.Array
    penalised: jax.Array


class State(eqx.Module):
    """All that is carried, and how far a leg has come."""

    progress: Progress
    memory: Memory


class PenaltyStorm(Baseline):
    """Settings of the single-loop penalty method.

    **Arguments:**

    - `batch`: thetas of a step, both gradients on the same ones.
    - `penalty`: rho_0; 0 leaves it to the tolerance.
    - `momentum`: a_0.
    - `delay`: k_0, steps before the decay sets in.
    - `max_outer`: legs of steps at most.
    """

    name: ClassVar[str] = "penalty-storm"

    batch: int = eqx.field(static=True, default=64)
    penalty: float = eqx.field(static=True, default=0.0)
    momentum: float = eqx.field(static=True, default=1.0)
    delay: int = eqx.field(static=True, default=100)
    max_outer: int = eqx.field(static=True, default=100)

    def begin(self, view):
        """rho_0, and G from the first measurement."""
        penalty, seen = self.penalty or view.bounds.balanced(), view.seen
        rho = view.array(penalty)
        memory = Memory(seen.gradient + rho * seen.constraint @ seen.jacobian, jnp.int32(0), rho, 0 * rho)
        return view.learnt(own=memory, penalty=penalty)

    def plan(self, view):
        """The next leg."""
        bounds = view.bounds
        penalised = bounds.jacobian**2 + jnp.abs(view.seen.constraint) @ bounds.slope[1:]
        least, most = view.least(self.batch), view.leg
        return Plan(view.array(TRIGGER * view.target), jnp.int32(least), jnp.int32(most), bounds.slope[0], penalised)

    def init(self, oracle, z, plan, memory, key):
        """Where the last leg ended."""
        return State(fresh_progress(z, key), memory)

    def _rho(self, memory: Memory, k: jax.Array) -> jax.Array:
        return memory.penalty * self._decay(memory, k) ** (1 / 5)

    def _decay(self, memory: Memory, k: jax.Array) -> jax.Array:
        return 1 + k.astype(memory.estimate.dtype) / self.delay

    def step(self, oracle, state, plan):
        """One step."""
        progress, memory = state.progress, state.memory
        k = memory.steps
        rho, later = self._rho(memory, k), self._rho(memory, k + 1)
        share = jnp.minimum(1, self.momentum * self._decay(memory, k) ** (-4 / 5))
        smoothness = jnp.maximum(plan.curved + rho * plan.penalised, SMALLEST_SMOOTHNESS)
        length = self._decay(memory, k) ** (-2 / 5) / 2
        z = metric_step(oracle, progress.z, memory.estimate, length, smoothness, rho)
        now, before, spent = paired_gradients(oracle, z, progress.z, jnp.stack([later, rho]), progress.key, self.batch)
        estimate = recursion(memory.estimate, now, before, share)
        small = jnp.linalg.norm(oracle.project_tangent(z, -estimate)) <= plan.gradient
        taken = progress.steps + 1
        status = jnp.where(small & (taken >= plan.least), STATIONARY, running(taken >= plan.most, EXHAUSTED))
        finite = jnp.all(jnp.isfinite(estimate)) & jnp.all(jnp.isfinite(z))
        return State(
            moved_on(progress, z, finite, status, spent), Memory(estimate, k + 1, memory.penalty, length / smoothness)
        )

    def read(self, view, oracle, state, z, seen):
        """At the multipliers rho c, or, where it is feasible, at the best ones: the method has none of its own."""
        memory = state.memory
        rho = float(self._rho(memory, memory.steps))
        oracle, violation = view.learnt(penalty=rho).oracle(), view.array(view.violation)
        return read_penalised(oracle, z, seen, violation, float(memory.step), self.batch, rho)

    def learn(self, view, measured):
        """A larger rho_0 where a stationary point is not feasible enough."""
        seen = measured.seen
        size = float(jnp.linalg.norm(seen.constraint))
        if self.penalty or size <= view.violation or float(measured.stationarity) > view.target:
            return view
        penalty = min(view.penalty * SAFE * size / view.violation, HIGHEST)
        rho = view.array(penalty)
        estimate = seen.gradient + rho * seen.constraint @ seen.jacobian
        return view.learnt(own=Memory(estimate, jnp.int32(0), rho, view.memory.step), penalty=penalty)

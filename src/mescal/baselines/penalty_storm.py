"""Single-loop penalty method with STORM, and its variant with multipliers (Alacaoglu and Wright 2024, expectation constraints).

    L_rho = f + lam . c + rho/2 |c|^2;     z_{k+1} = P(z_k - tau_k G_k)
    G_{k+1} = grad L_{rho_{k+1}}(z_{k+1}, lam_{k+1}; S) + (1 - a_k) (G_k - grad L_{rho_k}(z_k, lam_k; S))
    rho_k = rho_0 r^(1/5),   tau_k = r^(-2/5) / (2 L(rho_k)) ~ r^(-3/5),   a_k = min(1, a_0 r^(-4/5)),  r = 1 + k/k_0
    lam_{k+1} = lam_k + min(rho_k/2, gamma_k/|c~|) c~,   c~ on fresh samples,   gamma_k = (Lam/k_0) log(2)^2 / (r log(1+r)^2)

One loop and a fixed small batch: nothing is ever started anew, and the recursion carries G over every change of rho and lam.
Without multipliers (lam = 0, the default) stationarity and violation both fall like k^(-1/5), the violation like |lam*|/rho_k;
with them it falls like |lam* - lam_k|/rho_k, and as gamma_k is summable, |lam_k| <= sum gamma_k whatever the samples say. The
order of the work is the same. For a tolerance eps the theory takes rho of order 1/eps.

Deviations: 1. rho_0 = max(L_f/|J|^2, Lam/eps), at which the violation meets the tolerance eps once the point is stationary;
Lam = |grad f|/s_min(J) at the start, by which the multipliers there are bounded. Where Lam is too small, r^(1/5) has to make
up for it. 2. L(rho) = L_f + sum_j |lam_j| L_j + rho (|J|^2 + sum_j |c_j| L_j) is estimated where the steps go; a trust radius
holds steps that an estimate from a flat region would make too long. 3. k_0 = 100 delays the decay, and a_0 = 1/4 makes
a_k = (tau_k L)^2, the share at which fresh noise and drift of G are of one size. 4. The last iterate is
measured, not a random one. 5. Slacks have steps in their own unit (`storm.metric_step`).
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..oracle import Work
from ..run.scaling import SMALLEST_SMOOTHNESS
from ..solvers.base import EXHAUSTED, STATIONARY, Progress, fresh_progress
from ..solvers.epoch import TRIGGER
from .baseline import Baseline
from .measure import read_penalised
from .storm import metric_step, moved_on, paired_gradients, recursion, running

DUAL = 1 / 2  # of the penalty: the longest dual step; with one primal step to each, longer ones would overshoot
HIGHEST = 1e8  # penalty at the start
RANK = 1e-6  # of the largest singular value of J: below, it counts as zero (float32)
FRESH = 1 << 21  # of the key of the dual step's samples


class Memory(eqx.Module):
    """G, the steps since the start, rho_0, tau_k, lam_k and Lam."""

    estimate: jax.Array
    steps: jax.Array
    penalty: jax.Array
    step: jax.Array
    multipliers: jax.Array
    reach: jax.Array


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
    - `multipliers`: the variant with multipliers.
    - `penalty`: rho_0; 0 leaves it to the tolerance.
    - `momentum`: a_0.
    - `delay`: k_0, steps before the decay sets in.
    - `max_outer`: legs of steps at most.
    """

    name: ClassVar[str] = "penalty-storm"

    batch: int = eqx.field(static=True, default=64)
    multipliers: bool = eqx.field(static=True, default=False)
    penalty: float = eqx.field(static=True, default=0.0)
    momentum: float = eqx.field(static=True, default=0.25)
    delay: int = eqx.field(static=True, default=100)
    max_outer: int = eqx.field(static=True, default=100)

    def begin(self, view):
        """rho_0, Lam, and G from the first measurement."""
        seen = view.seen
        bound = reach(np.asarray(seen.gradient, np.float64), np.asarray(seen.jacobian, np.float64))
        asked = min(max(view.bounds.balanced(), bound / view.violation), HIGHEST)
        penalty = self.penalty or asked
        rho = view.array(penalty)
        estimate = seen.gradient + rho * seen.constraint @ seen.jacobian
        largest = view.array(min(bound, HIGHEST * view.violation))
        memory = Memory(estimate, jnp.int32(0), rho, 0 * rho, jnp.zeros_like(seen.constraint), largest)
        return view.learnt(own=memory, penalty=penalty)

    def plan(self, view):
        """The next leg."""
        bounds = view.bounds
        penalised = bounds.jacobian**2 + jnp.abs(view.seen.constraint) @ bounds.slope[1:]
        curved = bounds.smoothness(view.memory.multipliers)
        least, most = view.least(self.batch), view.leg
        return Plan(view.array(TRIGGER * view.target), jnp.int32(least), jnp.int32(most), curved, penalised)

    def init(self, oracle, z, plan, memory, key):
        """Where the last leg ended."""
        return State(fresh_progress(z, key), memory)

    def _rho(self, memory: Memory, k: jax.Array) -> jax.Array:
        return memory.penalty * self._decay(memory, k) ** (1 / 5)

    def _decay(self, memory: Memory, k: jax.Array) -> jax.Array:
        return 1 + k.astype(memory.estimate.dtype) / self.delay

    def dual_bound(self, memory: Memory, k: jax.Array) -> jax.Array:
        """gamma_k."""
        r = self._decay(memory, k)
        return memory.reach / self.delay * jnp.log(2.0) ** 2 / (r * jnp.log1p(r) ** 2)

    def step(self, oracle, state, plan):
        """One step."""
        progress, memory = state.progress, state.memory
        k, key = memory.steps, progress.key
        rho, later = self._rho(memory, k), self._rho(memory, k + 1)
        share = jnp.minimum(1, self.momentum * self._decay(memory, k) ** (-4 / 5))
        smoothness = jnp.maximum(plan.curved + rho * plan.penalised, SMALLEST_SMOOTHNESS)
        length = self._decay(memory, k) ** (-2 / 5) / 2
        z = metric_step(oracle, progress.z, memory.estimate, length, smoothness, rho)
        multipliers, spent = self._dual(oracle, z, memory, rho, key)
        both = jnp.stack([later, rho]), jnp.stack([multipliers, memory.multipliers])
        now, before, more = paired_gradients(oracle, z, progress.z, both, key, self.batch)
        estimate = recursion(memory.estimate, now, before, share)
        small = jnp.linalg.norm(oracle.project_tangent(z, -estimate)) <= plan.gradient
        taken = progress.steps + 1
        status = jnp.where(small & (taken >= plan.least), STATIONARY, running(taken >= plan.most, EXHAUSTED))
        finite = jnp.all(jnp.isfinite(estimate)) & jnp.all(jnp.isfinite(z))
        kept = Memory(estimate, k + 1, memory.penalty, length / smoothness, multipliers, memory.reach)
        return State(moved_on(progress, z, finite, status, spent + more), kept)

    def _dual(self, oracle, z, memory: Memory, rho, key) -> tuple[jax.Array, Work]:
        """lam_{k+1}, and what it cost."""
        if not self.multipliers:
            return memory.multipliers, Work.zero()
        seen, spent = oracle.constraint(z, jax.random.fold_in(key, FRESH), self.batch)
        size = jnp.maximum(jnp.linalg.norm(seen), jnp.finfo(z.dtype).tiny)
        return memory.multipliers + jnp.minimum(DUAL * rho, self.dual_bound(memory, memory.steps) / size) * seen, spent

    def read(self, view, oracle, state, z, seen):
        """At the multipliers lam + rho c, or, where it is feasible, at the best ones."""
        memory = state.memory
        rho = float(self._rho(memory, memory.steps))
        oracle = view.learnt(penalty=rho, dual=np.asarray(memory.multipliers, np.float64)).oracle()
        return read_penalised(oracle, z, seen, view.array(view.violation), float(memory.step), self.batch, rho)

    def learn(self, view, measured):
        """Nothing: a measurement does not touch the loop."""
        return view


def reach(gradient: np.ndarray, jacobian: np.ndarray) -> float:
    """|grad f| / s_min(J) over the singular values of J above rounding: no multiplier that fits grad f is larger."""
    values = np.linalg.svd(jacobian, compute_uv=False) if jacobian.size else np.zeros(0)
    values = values[values > RANK * values.max(initial=0.0)]
    return float(np.linalg.norm(gradient) / values.min()) if values.size else 0.0

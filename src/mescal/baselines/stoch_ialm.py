"""Stochastic inexact augmented Lagrangian method with PStorm (Li, Chen, Liu, Lu, Xu 2024).

    al_k = al_0 sigma^k;   z_{k+1} ~ argmin L(.; y_k, al_k), stationary to eps, by PStorm;
    y_{k+1} = y_k + min(1, gamma_k / |c|) c,   gamma_k summable: feasibility comes from the penalty, y stays bounded

PStorm:  z+ = P(z - eta_t d),   d+ = g_S(z+) + (1 - beta_t) (d - g_S(z)),   eta_t = e_t / L,   e_t = e_0 (4/(t+4))^(1/3)
         beta_t = (1 + 24 e_t^2 - eta_{t+1}/eta_t) / (1 + 4 e_t^2), which makes the error of d telescope

With `rounds` and `steps` a run stops as its theorem says, by counting: so many subproblems, in each so many steps, al_k growing
every time, and each hands back z_tau with P(tau = t) proportional to eta_t (weights of a reservoir). `rounds_for` has the
number at which al_K makes |c| <= eps; the theorem's steps are of order eps^-3.

Deviations: 1. L is estimated, by bounds at the start and by the secants of the paired gradients; a trust radius holds steps
that an estimate from a flat region would make too long. 2. Unless steps are
counted, PStorm stops when its running estimate is small and a measurement
(the paper's final batch of order eps^-2) confirms it, at the iterate that was measured and not at a random one; a refuted
estimate is replaced by the measured gradient. 3. Slacks of inequalities have steps in their own unit (`storm.metric_step`).
4. There, the penalty grows only while the violation is above the tolerance.
"""

import math
from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..run.between_solves import dual_step, summable_bound
from ..solvers.base import EXHAUSTED, STATIONARY, Progress, fresh_progress
from ..solvers.epoch import TRIGGER
from .baseline import Baseline
from .bounds import FORGET
from .measure import Seen, read_penalised
from .storm import metric_step, moved_on, paired_gradients, parameter_secant, recursion, running

LEGS = 12  # of one subproblem at most
LOTTERY = 1 << 21  # of the key of a step: what decides whether it is the one to be handed back


class Memory(eqx.Module):
    """The last measurement, the smoothness, the steps and legs of this subproblem, its number, and |c| at the start."""

    seen: Seen
    smoothness: jax.Array
    steps: jax.Array
    legs: jax.Array
    subproblem: jax.Array
    first_violation: jax.Array


class Plan(eqx.Module):
    """The tolerance, the least and the most steps of a leg, and |J|."""

    gradient: jax.Array
    least: jax.Array
    most: jax.Array
    jacobian: jax.Array


class State(eqx.Module):
    """The running estimate d of the gradient of L; z_tau, and the weights of the candidates so far."""

    progress: Progress
    memory: Memory
    estimate: jax.Array
    chosen: jax.Array
    weight: jax.Array


class StochIALM(Baseline):
    """Settings of the stochastic inexact augmented Lagrangian method.

    **Arguments:**

    - `batch`: thetas of a step of PStorm, both gradients on the same ones.
    - `first_step`: e_0, the first step in units of 1/L; the proof takes 1/8.
    - `growth`: sigma, of the penalty.
    - `rounds`, `steps`: the subproblems of a run and the steps of each, if these are to be counted; 0: stop by measurements.
    - `max_outer`: legs of steps at most, where they are not counted.
    """

    name: ClassVar[str] = "stoch-ialm"

    batch: int = eqx.field(static=True, default=64)
    first_step: float = eqx.field(static=True, default=0.125)
    growth: float = eqx.field(static=True, default=5.0)
    rounds: int = eqx.field(static=True, default=0)
    steps: int = eqx.field(static=True, default=0)
    max_outer: int = eqx.field(static=True, default=100)

    def legs(self):
        """One for each subproblem, where they are counted."""
        return self.rounds or self.max_outer

    def is_over(self, view, measured):
        """Never by a measurement, where steps are counted."""
        return not self.steps and super().is_over(view, measured)

    def point(self, state):
        """z_tau, where steps are counted."""
        return state.chosen if self.steps else state.progress.z

    def begin(self, view):
        """al_0 = max(1, L/|J|^2), at which objective and penalty are equally curved."""
        view = view.learnt(penalty=view.bounds.balanced())
        nothing, first = jnp.int32(0), jnp.linalg.norm(view.seen.constraint)
        return self._fresh(view, Memory(view.seen, view.array(0), nothing, nothing, nothing, first))

    def _fresh(self, view, memory: Memory):
        """With the last measurement, and the smoothness that bounds say there; secants are not forgotten at once."""
        weight = view.array(view.dual) + view.array(view.penalty) * view.seen.constraint
        bound = view.bounds.smoothness(weight) + view.array(view.penalty) * view.bounds.jacobian**2
        smoothness = jnp.maximum(bound, FORGET * memory.smoothness)
        return view.learnt(own=replace(memory, seen=view.seen, smoothness=smoothness))

    def plan(self, view):
        """The next leg."""
        least, most = (self.steps, self.steps) if self.steps else (view.least(self.batch), view.leg)
        return Plan(view.array(TRIGGER * view.target), jnp.int32(least), jnp.int32(most), view.bounds.jacobian)

    def init(self, oracle, z, plan, memory, key):
        """d from the last measurement, at the present multipliers and penalty."""
        weight = oracle.multipliers + oracle.penalty * memory.seen.constraint
        estimate = memory.seen.gradient + weight @ memory.seen.jacobian
        return State(fresh_progress(z, key), memory, estimate, z, jnp.zeros((), z.dtype))

    def _share(self, t):
        """e_t."""
        return self.first_step * (4 / (t + 4)) ** (1 / 3)

    def step(self, oracle, state, plan):
        """One step of PStorm."""
        progress, memory, estimate = state.progress, state.memory, state.estimate
        t = memory.steps.astype(estimate.dtype)
        share, ratio = self._share(t), ((t + 4) / (t + 5)) ** (1 / 3)
        beta = jnp.clip((1 + 24 * share**2 - ratio) / (1 + 4 * share**2), 0, 1)
        z = metric_step(oracle, progress.z, estimate, share, memory.smoothness, oracle.penalty)
        same = jnp.stack([oracle.penalty] * 2), jnp.stack([oracle.multipliers] * 2)
        now, before, spent = paired_gradients(oracle, z, progress.z, same, progress.key, self.batch)
        estimate = recursion(estimate, now, before, beta)
        seen = parameter_secant(oracle, now - before, z - progress.z, plan.jacobian)
        small = jnp.linalg.norm(oracle.project_tangent(z, -estimate)) <= plan.gradient
        taken = progress.steps + 1
        status = jnp.where(small & (taken >= plan.least), STATIONARY, running(taken >= plan.most, EXHAUSTED))
        finite = jnp.all(jnp.isfinite(estimate)) & jnp.all(jnp.isfinite(z))
        weight = state.weight + share / memory.smoothness
        chance = jax.random.uniform(jax.random.fold_in(progress.key, LOTTERY), (), z.dtype)
        takes = chance * weight < share / memory.smoothness
        chosen = jnp.where(takes & finite, progress.z, state.chosen)
        memory = replace(memory, steps=memory.steps + 1, smoothness=jnp.maximum(memory.smoothness, seen))
        return State(moved_on(progress, z, finite, status, spent), memory, estimate, chosen, weight)

    def read(self, view, oracle, state, z, seen):
        """At the multipliers y + al c, or, where it is feasible, at the best ones."""
        step = self._share(float(state.memory.steps)) / max(float(state.memory.smoothness), 1e-30)
        return read_penalised(oracle, z, seen, view.array(view.violation), step, self.batch)

    def learn(self, view, measured):
        """The next subproblem where this one is solved, or has had its legs; else the same with a fresh estimate."""
        memory, solved = view.memory, float(measured.stationarity) <= view.target
        if not self.steps and not solved and int(memory.legs) + 1 < LEGS:
            return self._fresh(view, replace(memory, legs=memory.legs + 1))
        constraint = np.asarray(measured.seen.constraint, np.float64)
        bound = summable_bound(int(memory.subproblem), float(memory.first_violation))
        grows = self.steps or np.linalg.norm(constraint) > view.violation
        grown = view.penalty * (self.growth if grows else 1.0)
        view = view.learnt(dual=dual_step(view.dual, constraint, 1.0, bound), penalty=grown)
        nothing = jnp.int32(0)
        return self._fresh(view, replace(memory, steps=nothing, legs=nothing, subproblem=memory.subproblem + 1))


def rounds_for(reach: float, penalty: float, growth: float, tolerance: float) -> int:
    """K + 1 with K = ceil(log_sigma(D/(al_0 eps))): |c(z_K)| <= D/al_K <= eps, where D bounds |lam* - y| + |grad L|/s_min(J)."""
    return 1 + max(0, math.ceil(math.log(reach / (penalty * tolerance), growth)))

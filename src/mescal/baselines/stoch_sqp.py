"""Stochastic sequential quadratic programming for expectation equalities (Shen, Zeng, Zhou 2025), with H = I.

    [I J'; J 0] [d; y] = -[g; c],   so   y = (J J')^-1 (c - J g),   d = -(g + J'y);   g, c, J from one batch
    tau_trial = (1 - sigma) |c|_1 / (g'd + |d|^2/2)  (infinite where that is not positive);  tau falls to it, by a factor at least
    Dq = |c|_1 - tau g'd,   xi_trial = Dq / (tau |d|^2);  xi likewise;   x+ = x + a d

a is the longest step for which the merit function tau f + |c|_1 is sure to fall, by L and Gamma, the Lipschitz constants of
grad f and (summed over rows) of J:

    psi(a) = (eta - 1) a beta Dq + (|1 - a| - 1 + a) |c|_1 + (tau L + Gamma) a^2 |d|^2 / 2  <=  0,
    a_min = 2 (1 - eta) beta xi tau / (tau L + Gamma)  <=  a  <=  a_min + theta beta

Deviations: 1. L and Gamma are estimated where the steps go, and a trust radius holds |a d|. 2. a is the root of psi; the
authors lengthen a_min by factors 1.1 up to it. 3. The batch doubles after a leg that did not halve the residual, up to what
the tolerance asks for; on finite populations the last doubling is the whole population. 4. J J' has a ridge of rounding size.
"""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ..sets import Reals
from ..solvers.base import EXHAUSTED, Progress, fresh_progress
from ..solvers.move import natural_radius
from .baseline import Baseline
from .measure import Measured, least_squares, plain, stationarity
from .storm import moved_on, running

ETA, SIGMA, BETA, THETA = 0.5, 0.1, 1.0, 10.0  # of the authors' code
STILL = 100  # roundings of g: a shorter d would only show tau and xi its rounding, and they are kept
LESS = 1e-2  # factor by which tau and xi fall at least


class Memory(eqx.Module):
    """The merit parameter tau, the ratio xi, the size of a batch, the last step length."""

    merit: jax.Array
    ratio: jax.Array
    batch: jax.Array
    length: jax.Array


class Plan(eqx.Module):
    """The steps of a leg, whether they look at the whole population, L and Gamma."""

    most: jax.Array
    whole: jax.Array
    objective: jax.Array
    constraint: jax.Array


class State(eqx.Module):
    """All that is carried, and how far a leg has come."""

    progress: Progress
    memory: Memory


class StochSQP(Baseline):
    """Settings of stochastic SQP.

    **Arguments:**

    - `batch`: thetas of the first steps.
    - `merit`: tau_0.
    - `max_outer`: legs of steps at most.
    """

    name: ClassVar[str] = "stoch-sqp"

    batch: int = eqx.field(static=True, default=64)
    merit: float = eqx.field(static=True, default=1.0)
    max_outer: int = eqx.field(static=True, default=100)

    def declines(self, problem):
        """Inequalities and domains have no place in its subproblem."""
        named = [name for name, constraint in problem.constraints.items() if constraint.kind == "<="]
        if named:
            return f"{self.name} with the inequality {named[0]!r}; its subproblem knows equalities alone"
        if not isinstance(problem.domain, Reals):
            return f"{self.name} on {problem.domain}; its subproblem knows no bounds on x"
        return None

    def begin(self, view):
        """At the start."""
        first = Memory(view.array(self.merit), view.array(1), jnp.int32(self.batch), view.array(0))
        return view.learnt(own=first)

    def plan(self, view):
        """The next leg."""
        population = view.here.program.population
        whole = population is not None and int(view.memory.batch) >= population
        slope = view.bounds.slope
        return Plan(jnp.int32(view.leg), jnp.asarray(whole), slope[0], jnp.sum(slope[1:]))

    def init(self, oracle, z, plan, memory, key):
        """Where the last leg ended."""
        return State(fresh_progress(z, key), memory)

    def step(self, oracle, state, plan):
        """One step."""
        progress, memory = state.progress, state.memory
        z, tiny = progress.z, jnp.finfo(progress.z.dtype).tiny
        (gradient, constraint, jacobian), spent = self._sample(oracle, z, progress.key, plan, memory)
        gram = jacobian @ jacobian.T
        ridge = jnp.finfo(z.dtype).eps * jnp.trace(gram) + tiny
        gram = gram + ridge * jnp.eye(constraint.size, dtype=z.dtype)
        y = jnp.linalg.solve(gram, constraint - jacobian @ gradient) if constraint.size else constraint
        d = -(gradient + y @ jacobian)
        size, slope, squared = jnp.sum(jnp.abs(constraint)), gradient @ d, d @ d
        rise = slope + squared / 2
        trial = jnp.where(rise > 0, (1 - SIGMA) * size / jnp.where(rise > 0, rise, 1), jnp.inf)
        norm = jnp.sqrt(squared)
        still = norm <= STILL * jnp.finfo(z.dtype).eps * jnp.linalg.norm(gradient)
        merit = jnp.where(still, memory.merit, fall(memory.merit, trial))
        decrease = size - merit * slope
        ratio = jnp.where(still, memory.ratio, fall(memory.ratio, decrease / jnp.maximum(merit * squared, tiny)))
        curved = jnp.maximum(merit * plan.objective + plan.constraint, 1e-12)
        length = longest(decrease, size, curved * squared, 2 * (1 - ETA) * BETA * ratio * merit / curved)
        length = jnp.minimum(length, natural_radius(z) / jnp.maximum(norm, tiny))
        moved = z + length * d
        finite = jnp.all(jnp.isfinite(moved)) & jnp.isfinite(merit) & jnp.isfinite(ratio)
        status = running(progress.steps + 1 >= plan.most, EXHAUSTED)
        return State(moved_on(progress, moved, finite, status, spent), Memory(merit, ratio, memory.batch, length))

    def _sample(self, oracle, z, key, plan, memory):
        """g, c and J from one batch, in micro-batches as large as the first batch, or from the whole population."""

        def batch():
            at, spent = replace(plain(oracle), micro=self.batch).estimate(z, key, memory.batch)
            return (at.gradient, at.constraint, at.jacobian), spent

        def whole():
            (_, constraint, gradient, jacobian), spent = oracle.linearise(z)
            return (gradient, constraint, jacobian), spent

        return batch() if oracle.population is None else jax.lax.cond(plan.whole, whole, batch)

    def read(self, view, oracle, state, z, seen):
        """At least-squares multipliers."""
        multipliers = least_squares(oracle, z, seen)
        norm, _ = stationarity(oracle, z, seen, multipliers, jnp.zeros_like(multipliers))
        memory = state.memory
        return Measured(z, seen, multipliers, norm, float(memory.length), int(memory.batch))

    def learn(self, view, measured):
        """A larger batch where the last leg did not help."""
        if view.improved:
            return view
        batch = jnp.minimum(2 * view.memory.batch, jnp.int32(view.state.notes.full_batch))
        return view.learnt(own=replace(view.memory, batch=batch))


def fall(value: jax.Array, trial: jax.Array) -> jax.Array:
    """The value, or where it exceeds the trial, the trial, but lower by `LESS` at least."""
    return jnp.where(value <= trial, value, jnp.minimum((1 - LESS) * value, trial))


def longest(decrease: jax.Array, size: jax.Array, bend: jax.Array, least: jax.Array) -> jax.Array:
    """The largest a with psi(a) <= 0, between a_min and a_min + theta beta; `bend` is (tau L + Gamma) |d|^2."""
    gain, bend = (1 - ETA) * BETA * decrease, jnp.maximum(bend, jnp.finfo(bend.dtype).tiny)
    short = 2 * gain / bend  # while a <= 1
    # beyond: bend/2 a^2 + (2 size - gain) a - 2 size = 0
    slope = 2 * size - gain
    root = jnp.sqrt(slope**2 + 4 * bend * size)
    long = jnp.where(slope > 0, 4 * size / jnp.maximum(slope + root, jnp.finfo(bend.dtype).tiny), (root - slope) / bend)
    return jnp.clip(jnp.where(short <= 1, short, jnp.maximum(long, 1)), least, least + THETA * BETA)

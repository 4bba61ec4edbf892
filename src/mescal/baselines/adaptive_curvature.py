"""Negative curvature with adaptive sampling, for problems without constraints (Berahas, Bollapragada and Dong 2026).

At every iteration, with a search on at most n_H thetas and a gradient estimate g from n_g:

    1.  u with u'Hu <= -eps_H/2 found:  y = x +- r u;   none:  y = x
    2.  x+ = y - a g(y)
    3.  n_g = ceil(Var / (theta^2 |g|^2 + eps_g^2/4)) where the norm test, Var/n_g <= theta^2 |g|^2 + eps_g^2/4, fails

It is the method that the paper names for Option I, a point that is second-order stationary in expectation, which its source
proves for all of space without a count of samples: the tests make both errors small in mean. Such a point is where the search
finds nothing and |g| <= eps_g with the norm test met.

Deviations: 1. The search is sub-sampled Lanczos, which grows its own batch until fresh samples agree; that is the sample
control of H. n_H is the whole of a finite population, and bounded by the work so far on a stream. 2. The source has r =
2 |u'Hu|/L_H; here r and the sign are those of a ladder of radii at which L is lowest on paired samples, so that L_H need not be
known. 3. a = 1/L_g, L_g estimated where the steps go, doubled where L rose for certain; a trust radius holds the step. 4. The
gradient step is steepest descent; the source's practical variant takes Newton-CG directions there.
"""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..curvature import Lanczos, Search
from ..oracle import Work
from ..run.between_solves import LARGEST_RESET, SEARCH_BASE, SEARCH_SHARE, SEARCH_STEPS, SMALLEST_SEARCH
from ..run.scaling import SMALLEST_SMOOTHNESS
from ..sets import Reals
from ..solvers.base import EXHAUSTED, STATIONARY, Progress, fresh_progress
from ..solvers.epoch import CURVATURE, TRIGGER
from ..solvers.move import LENGTHS, SURE, natural_radius, paired_differences
from .baseline import Baseline
from .measure import Measured, stationarity
from .storm import moved_on, running


class Memory(eqx.Module):
    """n_g, L_g, and where the last gradient step began."""

    batch: jax.Array
    smoothness: jax.Array
    before: jax.Array


class Plan(eqx.Module):
    """Tolerances, n_H, the largest n_g, the most steps of a leg, and the present estimate of L_g."""

    gradient: jax.Array
    curvature: jax.Array
    searched: jax.Array
    largest: jax.Array
    most: jax.Array
    smoothness: jax.Array


class State(eqx.Module):
    """All that is carried, and how far a leg has come."""

    progress: Progress
    memory: Memory


class AdaptiveCurvature(Baseline):
    """Settings of the two-step method with adaptive sampling.

    **Arguments:**

    - `batch`: thetas of the first gradient.
    - `share`: theta of the norm test.
    - `search`: the negative-curvature search of every iteration.
    - `max_outer`: legs of steps at most.
    """

    name: ClassVar[str] = "adaptive-curvature"
    chunk: ClassVar[int] = 2  # a step may be a whole search

    batch: int = eqx.field(static=True, default=64)
    share: float = eqx.field(static=True, default=0.5)
    search: Search = Lanczos()
    max_outer: int = eqx.field(static=True, default=100)

    def declines(self, problem):
        """It knows neither constraints nor bounds."""
        if problem.constraints:
            return f"{self.name} with the constraint {next(iter(problem.constraints))!r}; it is made for none"
        if not isinstance(problem.domain, Reals):
            return f"{self.name} on {problem.domain}; it knows no bounds on x"
        return None

    def begin(self, view):
        """At the start."""
        first = Memory(jnp.int32(self.batch), view.bounds.slope[0], view.array(view.state.z))
        return view.learnt(own=first)

    def plan(self, view):
        """The next leg."""
        population, spent = view.here.program.population, view.state.work.total
        searched = (SEARCH_SHARE * spent + SEARCH_BASE) / SEARCH_STEPS * view.state.curvature_factor
        within = int(np.clip(searched, SMALLEST_SEARCH, LARGEST_RESET))
        return Plan(
            gradient=view.array(TRIGGER * view.target),
            curvature=view.array(CURVATURE * view.here.settings.tol.curvature),
            searched=jnp.int32(within if population is None else population),
            largest=jnp.int32(view.state.notes.full_batch if population is None else population),
            most=jnp.int32(view.leg),
            smoothness=view.bounds.slope[0],
        )

    def init(self, oracle, z, plan, memory, key):
        """Where the last leg ended; what L_g was there is not forgotten at once."""
        smoothness = jnp.maximum(plan.smoothness, memory.smoothness / 2)
        return State(fresh_progress(z, key), replace(memory, smoothness=smoothness, before=z))

    def step(self, oracle, state, plan):
        """One iteration."""
        progress, memory = state.progress, state.memory
        z, tiny = progress.z, jnp.finfo(progress.z.dtype).tiny
        key_search, key_move, key_gradient = jax.random.split(progress.key, 3)
        found, looked = self.search(oracle, z, plan.curvature, key_search, plan.searched)
        y, tried = jax.lax.cond(
            found.negative,
            lambda: self._along(oracle, z, found.direction, key_move, plan.searched),
            lambda: (z, Work.zero()),
        )
        gradient, variance, rose, spent = self._gradient(oracle, y, memory, key_gradient)
        smoothness = jnp.maximum(memory.smoothness, SMALLEST_SMOOTHNESS) * jnp.where(rose, 2, 1)
        norm = jnp.linalg.norm(gradient)
        allowed = self.share**2 * norm**2 + plan.gradient**2 / 4
        exact = memory.batch >= plan.largest
        sure = exact | (variance <= allowed * memory.batch.astype(z.dtype))
        wanted = jnp.minimum(variance / jnp.maximum(allowed, tiny), plan.largest.astype(z.dtype))
        batch = jnp.where(sure, memory.batch, jnp.maximum(jnp.ceil(wanted).astype(jnp.int32), memory.batch))
        over = sure & ~found.negative & (norm <= plan.gradient)
        length = jnp.minimum(1 / smoothness, natural_radius(y) / jnp.maximum(norm, tiny))
        moved = jnp.where(over, y, y - length * gradient)
        finite = jnp.all(jnp.isfinite(moved)) & jnp.isfinite(variance)
        taken = progress.steps + 1
        status = jnp.where(over, STATIONARY, running(taken >= plan.most, EXHAUSTED))
        ahead = moved_on(progress, moved, finite, status, spent + looked + tried)._replace(
            searches=progress.searches + looked,
            curvature=found.curvature,
            escapes=progress.escapes + found.negative.astype(jnp.int32),
        )
        return State(ahead, Memory(batch, smoothness, y))

    def _along(self, oracle, z, direction, key, n):
        """The lowest of the moves along a direction that are lower for certain; z where none is."""
        reach = jnp.maximum(1, jnp.linalg.norm(z)) * jnp.asarray(LENGTHS, z.dtype)
        points = z + jnp.concatenate([reach, -reach])[:, None] * direction
        change, error, spent = paired_differences(oracle, points, z, key, n)
        bound = change + SURE * error
        best = jnp.argmin(bound)
        return jnp.where(bound[best] < 0, points[best], z), spent

    def _gradient(self, oracle, y, memory: Memory, key):
        """g(y), its variance per theta, and whether L rose for certain since the last gradient step began."""

        def sampled():
            seen, spent = replace(oracle, micro=self.batch).compare(y, memory.before, key, memory.batch)
            rose = seen.change > SURE * seen.error
            return seen.estimate.gradient, seen.noise.gradient, rose, spent

        def exact():
            at, first = oracle.exact(y)
            value, second = oracle.exact_value(memory.before)
            return at.gradient, jnp.zeros_like(value), at.value > value, first + second

        if oracle.population is None:
            return sampled()
        return jax.lax.cond(memory.batch >= oracle.population, exact, sampled)

    def read(self, view, oracle, state, z, seen):
        """There are no multipliers."""
        nothing = jnp.zeros_like(seen.constraint)
        norm, _ = stationarity(oracle, z, seen, nothing, nothing)
        return Measured(z, seen, nothing, norm, 1 / float(state.memory.smoothness), int(state.memory.batch))

    def learn(self, view, measured):
        """Nothing: its samples follow from its own tests."""
        return view

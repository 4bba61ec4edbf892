"""SPIDER-SFO+ (Fang, Li, Lin, Zhang 2018; the paper's Algorithm 6) with every parameter from `theory.spider`.

    block j:  w = search(z_t);  then T_m times
        g_t = mean of S1 gradients at z_t if q divides t, else g_{t-1} + mean over S2 of [grad(z_t) - grad(z_{t-1})]
        w found:  z_{t+1} = z_t - b_j eta w,  b_j = +-1 fair, once per block
        else:     stop if |g_t| <= 2 et;  z_{t+1} = z_t - eta g_t/|g_t|

Guarantee, for X = R^d: |grad L| <= eps_g and lambda_min >= -eps_H with probability at least 1/2. Deviations from the paper
are those of `theory.spider`; the loop has J blocks where it prints J + 1. With X smaller than R^d moves are projected, and
|P_T(-g)| takes the place of |g| in the stop test.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ...curvature import Search
from ...oracle import Work
from ...theory import spider
from ..base import BROKEN, EXHAUSTED, RUNNING, VERIFIED, Goal, Memory, Progress, fresh_progress
from .theory_mode import (
    SEARCH,
    SearchPlan,
    TheorySolver,
    counts,
    fair_sign,
    finite,
    known_constants,
    look,
    reset_gradient,
    search_plan,
)


class SpiderPlan(eqx.Module):
    """The parameters of Algorithm 6 as arrays."""

    large_batch: jax.Array  # S1
    exact_resets: jax.Array
    small_batch: jax.Array  # S2
    period: jax.Array  # q
    block_steps: jax.Array  # T_m
    steps: jax.Array  # J T_m
    step_length: jax.Array  # eta
    stop_threshold: jax.Array  # 2 et
    search: SearchPlan


class SpiderState(eqx.Module):
    """z_t in `progress`; z_{t-1}, g_{t-1}, and b_j w of the block (zero: no negative curvature)."""

    progress: Progress
    memory: Memory
    previous: jax.Array
    gradient: jax.Array
    direction: jax.Array


class SpiderTheory(TheorySolver):
    """Settings of SPIDER in theory mode; it needs the constants of the subproblem, and its guarantee is for X = R^d.

    **Arguments:**

    - `sharp`: a reduced tolerance from the concentration of the estimator instead of the printed logarithm, and sharper
      constants of the subproblem: the same guarantee for far less work (`theory.spider`, `theory.constants`).
    - `ratio`: n0, which trades small batches for long periods at equal work.
    - `search`: the negative-curvature search.
    - `surrogate`: the estimator that the theorems are about.
    """

    name: ClassVar[str] = "spider-theory"
    guarantee: ClassVar[float | None] = spider.SUCCESS_PROBABILITY

    sharp: bool = eqx.field(static=True, default=False)
    ratio: float = eqx.field(static=True, default=1.0)
    search: Search = SEARCH
    surrogate: str = eqx.field(static=True, default="pair")

    def plan(self, goal: Goal, dtype: Any) -> SpiderPlan:
        """Algorithm 6's parameters for the goal."""
        constants = known_constants(goal, self.name)
        p = spider.parameters(
            constants, goal.gradient, goal.curvature, ratio=self.ratio, population=goal.population, sharp=self.sharp
        )
        large, small, period, block, steps = counts(
            self.name,
            gradients_of_a_reset=p.large_batch,
            samples_of_an_update=p.small_batch,
            steps_between_resets=p.period,
            steps_of_a_block=p.block_steps,
            steps=p.blocks * p.block_steps,
        )
        return SpiderPlan(
            large_batch=large,
            exact_resets=jnp.asarray(p.exact_resets),
            small_batch=small,
            period=period,
            block_steps=block,
            steps=steps,
            step_length=jnp.asarray(p.step_length, dtype),
            stop_threshold=jnp.asarray(p.stop_threshold, dtype),
            search=search_plan(
                self.name, constants, p.search_tolerance, p.search_failure, dtype, self.search, goal.dimension
            ),
        )

    def sizes(self, plan):
        """See `TheorySolver`."""
        return plan.step_length, plan.small_batch, plan.large_batch

    def init(self, oracle, z, plan, memory, key):
        """At the start, before the first search."""
        z = oracle.project(z)
        return SpiderState(fresh_progress(z, key), memory, z, jnp.zeros_like(z), jnp.zeros_like(z))

    def step(self, oracle, state, plan):
        """One mini-step, with the search in front where a block begins."""
        progress, z, t = state.progress, state.progress.z, state.progress.steps
        key_next, key_search, key_sign, key_estimate = jax.random.split(progress.key, 4)
        begins = t % plan.block_steps == 0

        def searching():
            found, looked = look(self.search, oracle, z, plan.search, key_search)
            return fair_sign(key_sign, z.dtype) * found.direction, found.curvature, looked

        direction, curvature, looked = jax.lax.cond(
            begins, searching, lambda: (state.direction, progress.curvature, Work.zero())
        )

        def update():
            change, work = oracle.difference(z, state.previous, key_estimate, plan.small_batch)
            return state.gradient + change, work

        gradient, spent = jax.lax.cond(
            t % plan.period == 0,
            lambda: reset_gradient(oracle, z, key_estimate, plan.large_batch, plan.exact_resets),
            update,
        )
        escaping = jnp.any(direction != 0)
        stationarity = jnp.linalg.norm(oracle.project_tangent(z, -gradient))
        broken = ~finite(gradient, direction)
        stop = ~escaping & (stationarity <= plan.stop_threshold)
        length = jnp.maximum(jnp.linalg.norm(gradient), jnp.finfo(z.dtype).tiny)
        moved = oracle.project(z - plan.step_length * jnp.where(escaping, direction, gradient / length))
        moves = t + jnp.where(stop | broken, 0, 1)
        ended = jnp.where(stop, VERIFIED, jnp.where(moves >= plan.steps, EXHAUSTED, RUNNING))
        return SpiderState(
            Progress(
                z=jnp.where(broken, state.previous, jnp.where(stop, z, moved)),
                key=key_next,
                steps=moves,
                status=jnp.where(broken, BROKEN, ended).astype(jnp.int32),
                work=progress.work + looked + spent,
                searches=progress.searches + looked,
                stationarity=stationarity,
                curvature=curvature,
                escapes=progress.escapes + (begins & escaping).astype(jnp.int32),
            ),
            state.memory,
            z,
            gradient,
            direction,
        )

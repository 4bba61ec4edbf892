"""The recursion of SPIDER-SFO+ (Fang, Li, Lin, Zhang 2018; the paper's Algorithm 6): its steps, whoever set its plan.

    block j:  w = search(z_t);  then T_m times
        g_t = mean of S1 gradients at z_t if q divides t, else g_{t-1} + mean over S2 of [grad(z_t) - grad(z_{t-1})]
        w found:  z_{t+1} = z_t - b_j eta w,  b_j = +-1 fair, once per block
        else:     stop if |g_t| <= 2 et;  z_{t+1} = z_t - eta g_t/|g_t|

With X smaller than R^d moves are projected, and |P_T(-g)| takes the place of |g| in the stop test.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...curvature import Search
from ...oracle import Work
from ..base import BROKEN, EXHAUSTED, RUNNING, VERIFIED, Memory, Progress, fresh_progress
from .theory_mode import fair_sign, finite, look, reset_gradient


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
    search: Any  # a `SearchPlan`, or one set by hand


class SpiderState(eqx.Module):
    """z_t in `progress`; z_{t-1}, g_{t-1}, and b_j w of the block (zero: no negative curvature)."""

    progress: Progress
    memory: Memory
    previous: jax.Array
    gradient: jax.Array
    direction: jax.Array


class SpiderSteps(eqx.Module):
    """One mini-step at a time, compiled."""

    search: Search

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

"""The recursion of SG-HV-NC (Arjevani et al. 2020; the paper's Algorithms 2 and 3): its steps, whoever set its plan.

    for t = 1..T, with probability q:  z_{t+1} = z_t - eta g_t,                         b = b_g
                  otherwise:           u = search(z_t);  none: z and g stay as they are
                                       else z_{t+1} = z_t +- (y/L_H) u, fair sign,       b = b_H
    g_{t+1} (HVP-RVR): with probability b the mean of B fresh gradients at z_{t+1}; otherwise, with dz = z_{t+1} - z_t,
        g_t + sum_{j=1..J} H(z_t + (j-1)/J dz; theta_j) dz/J,   J = ceil(5 (s_H^2 + L_H e) |dz|^2/(b e^2))
    output: uniform over z_1, ..., z_T

The estimate at z_{T+1}, which nothing uses, is not computed. With X smaller than R^d moves are projected; the path then is
the segment between two points of X.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...curvature import Search
from ...oracle import Lagrangian, Work
from ..base import BROKEN, RUNNING, VERIFIED, Memory, Progress, fresh_progress
from .theory_mode import fair_sign, finite, look, replaces, reset_gradient

LONGEST_PATH = 2.0**30  # products: a path that asks for more would not end


class SgHvNcPlan(eqx.Module):
    """The parameters of Algorithms 2 and 3 as arrays."""

    steps: jax.Array  # T
    step_size: jax.Array  # eta
    first_order_probability: jax.Array  # q
    curvature_step: jax.Array  # y/L_H
    reset_batch: jax.Array  # B
    exact_resets: jax.Array
    first_order_reset_probability: jax.Array  # b_g
    second_order_reset_probability: jax.Array  # b_H
    path_density: jax.Array  # 5 (s_H^2 + L_H e)/e^2
    search: Any  # a `SearchPlan`, or one set by hand


class SgHvNcState(eqx.Module):
    """z_t in `progress`; z_{t-1}, g_{t-1}, the b of the move between them (0: there was none), the output so far."""

    progress: Progress
    memory: Memory
    previous: jax.Array
    gradient: jax.Array
    reset_probability: jax.Array
    candidate: jax.Array


class SgHvNcSteps(eqx.Module):
    """One iteration at a time, compiled."""

    search: Search

    def init(self, oracle, z, plan, memory, key):
        """At z_1, before its estimate."""
        z = oracle.project(z)
        zero = jnp.zeros((), z.dtype)
        return SgHvNcState(fresh_progress(z, key), memory, z, jnp.zeros_like(z), zero, z)

    def step(self, oracle, state, plan):
        """The estimate at z_t, the choice between z_t and the output so far, and the move to z_{t+1}."""
        progress, z = state.progress, state.progress.z
        keys = jax.random.split(progress.key, 7)
        key_next, key_estimate, key_reset, key_output, key_order, key_search, key_sign = keys
        t = progress.steps + 1
        gradient, spent = estimate(oracle, state, plan, t == 1, key_reset, key_estimate)
        candidate = jnp.where(replaces(key_output, t), z, state.candidate)
        first_order = jax.random.bernoulli(key_order, plan.first_order_probability)

        def searching():
            found, looked = look(self.search, oracle, z, plan.search, key_search)
            return found.direction, found.negative, found.curvature, looked

        def passing():
            return jnp.zeros_like(z), jnp.asarray(False), progress.curvature, Work.zero()

        direction, negative, curvature, looked = jax.lax.cond(first_order, passing, searching)
        along = fair_sign(key_sign, z.dtype) * plan.curvature_step * direction
        moved = oracle.project(z + jnp.where(first_order, -plan.step_size * gradient, along))
        probability = jnp.where(
            first_order,
            plan.first_order_reset_probability,
            jnp.where(negative, plan.second_order_reset_probability, 0),
        )
        broken = ~finite(gradient, moved)
        last = t >= plan.steps
        return SgHvNcState(
            Progress(
                z=jnp.where(broken, state.previous, jnp.where(last, candidate, moved)),
                key=key_next,
                steps=t,
                status=jnp.where(broken, BROKEN, jnp.where(last, VERIFIED, RUNNING)).astype(jnp.int32),
                work=progress.work + spent + looked,
                searches=progress.searches + looked,
                stationarity=jnp.linalg.norm(oracle.project_tangent(z, -gradient)),
                curvature=curvature,
                escapes=progress.escapes + negative.astype(jnp.int32),
            ),
            state.memory,
            z,
            gradient,
            probability.astype(z.dtype),
            candidate,
        )


def estimate(
    oracle: Lagrangian, state: SgHvNcState, plan: SgHvNcPlan, first: jax.Array, key_reset: jax.Array, key: jax.Array
) -> tuple[jax.Array, Work]:
    """HVP-RVR (Algorithm 3): the gradient at z_t from g_{t-1}, by a reset or along the path from z_{t-1}."""
    z, previous, probability = state.progress.z, state.previous, state.reset_probability
    squared = jnp.sum((z - previous) ** 2)
    asked = jnp.ceil(plan.path_density * squared / jnp.where(probability > 0, probability, 1))
    samples = jnp.clip(asked, 1, LONGEST_PATH).astype(jnp.int32)
    reset = first | jax.random.bernoulli(key_reset, probability)

    def along_the_path():
        change, work = oracle.path_hvp(z, previous, key, samples)
        return state.gradient + change, work

    return jax.lax.switch(
        jnp.where(reset, 1, jnp.where(squared > 0, 2, 0)),
        [
            lambda: (state.gradient, Work.zero()),
            lambda: reset_gradient(oracle, z, key, plan.reset_batch, plan.exact_resets),
            along_the_path,
        ],
    )

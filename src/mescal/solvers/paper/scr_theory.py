"""SCR with every parameter from `theory.scr`, whose constants are derived there.

    g = mean of n1 gradients + a random vector of fixed length;   B = mean of n2 Hessians at z_t, the same for all products
    d = argmin g.d + d'Bd/2 + (L_H/6)|d|^3,  by Lanczos from g to the end of its Krylov space;   z_{t+1} = z_t + d
    stop after a step no longer than r

Guarantee, for X = R^d with d at most 256: |grad L| <= eps_g and lambda_min >= -eps_H with probability at least 2/3. Steps of
the paper that are not needed with an exact minimiser, the Cauchy step and the final solver, are left out. With X smaller
than R^d moves are projected.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from ...curvature import Search
from ...curvature.contract import random_direction, unit
from ...curvature.lanczos import empty, lanczos_step
from ...oracle import Lagrangian, Work
from ...theory import scr
from ..base import BROKEN, EXHAUSTED, RUNNING, VERIFIED, Goal, Memory, Progress, fresh_progress
from ..newton.cubic import in_krylov_space
from .theory_mode import LARGEST, SEARCH, TheorySolver, counts, finite, known_constants, reset_gradient

DIRECTIONS = 256  # Lanczos steps at most


class ScrPlan(eqx.Module):
    """The parameters of SCR as arrays."""

    gradient_batch: jax.Array  # n1
    exact_gradients: jax.Array
    hessian_factor: jax.Array  # n2 = ceil(factor (ln d + logarithm))
    hessian_logarithm: jax.Array
    perturbation: jax.Array
    rho: jax.Array  # L_H
    radius: jax.Array  # r
    steps: jax.Array  # T

    def hessian_batch(self, dimension: int) -> jax.Array:
        """n2 for so many variables, on 32 bits."""
        asked = jnp.ceil(self.hessian_factor * (jnp.log(float(dimension)) + self.hessian_logarithm))
        return jnp.maximum(1, jnp.minimum(asked, float(LARGEST // 2))).astype(jnp.int32)


class ScrState(eqx.Module):
    """z_t in `progress`."""

    progress: Progress
    memory: Memory


class ScrTheory(TheorySolver):
    """Settings of SCR in theory mode; it needs the constants of the subproblem, and its guarantee is for X = R^d.

    **Arguments:**

    - `sharp`: sharper constants of the subproblem (`theory.constants`): the same guarantee for less work.
    - `search`: of the verification, where a run is boosted; SCR itself needs none.
    - `surrogate`: the estimator that the theorems are about, in its symmetric form: Lanczos needs one.
    """

    name: ClassVar[str] = "scr-theory"
    guarantee: ClassVar[float | None] = scr.SUCCESS_PROBABILITY
    chunk: ClassVar[int] = 16

    sharp: bool = eqx.field(static=True, default=False)
    search: Search = SEARCH
    surrogate: str = eqx.field(static=True, default="cross")

    def plan(self, goal: Goal, dtype: Any) -> ScrPlan:
        """SCR's parameters for the goal."""
        constants = known_constants(goal, self.name)
        p = scr.parameters(constants, goal.gradient, goal.curvature, population=goal.population)
        batch, steps, _ = counts(
            self.name,
            gradients_of_a_step=p.gradient_batch,
            steps=p.steps,
            products_of_a_step=2 * p.hessian_batch(DIRECTIONS),
        )
        return ScrPlan(
            gradient_batch=batch,
            exact_gradients=jnp.asarray(p.exact_gradients),
            hessian_factor=jnp.asarray(p.hessian_factor, dtype),
            hessian_logarithm=jnp.asarray(p.hessian_logarithm, dtype),
            perturbation=jnp.asarray(p.perturbation, dtype),
            rho=jnp.asarray(constants.hessian_lipschitz, dtype),
            radius=jnp.asarray(p.radius, dtype),
            steps=steps,
        )

    def sizes(self, plan):
        """See `TheorySolver`."""
        return plan.radius, jnp.ceil(plan.hessian_factor * plan.hessian_logarithm), plan.gradient_batch

    def init(self, oracle, z, plan, memory, key):
        """At the start."""
        return ScrState(fresh_progress(oracle.project(z), key), memory)

    def step(self, oracle, state, plan):
        """One cubic step."""
        progress, z = state.progress, state.progress.z
        key_next, key_gradient, key_noise, key_hessian = jax.random.split(progress.key, 4)
        gradient, spent = reset_gradient(oracle, z, key_gradient, plan.gradient_batch, plan.exact_gradients)
        perturbed = gradient + plan.perturbation * random_direction(oracle, z, key_noise)
        move, solved = _cubic_move(oracle, z, perturbed, plan, key_hessian)
        broken = ~finite(gradient, move)
        last = jnp.linalg.norm(move) <= plan.radius
        steps = progress.steps + 1
        ended = jnp.where(last, VERIFIED, jnp.where(steps >= plan.steps, EXHAUSTED, RUNNING))
        return ScrState(
            Progress(
                z=jnp.where(broken, z, oracle.project(z + jnp.where(broken, 0, move))),
                key=key_next,
                steps=steps,
                status=jnp.where(broken, BROKEN, ended).astype(jnp.int32),
                work=progress.work + spent + solved,
                searches=progress.searches,
                stationarity=jnp.linalg.norm(oracle.project_tangent(z, -gradient)),
                curvature=progress.curvature,
                escapes=progress.escapes,
            ),
            state.memory,
        )


def _cubic_move(
    oracle: Lagrangian, z: jax.Array, g: jax.Array, plan: ScrPlan, key: jax.Array
) -> tuple[jax.Array, Work]:
    """d, and the work."""
    cap = min(DIRECTIONS, z.size)
    batch = plan.hessian_batch(z.size)

    def going(carry):
        krylov, ended, _ = carry
        return ~ended & (krylov.taken < cap)

    def advance(carry):
        krylov, _, work = carry
        product, spent = oracle.symmetric_hvp(z, krylov.basis[krylov.taken], key, batch)
        krylov, beta = lanczos_step(krylov, product, jnp.zeros_like(plan.rho))
        return krylov, (beta == 0) | ~jnp.isfinite(beta), work + spent

    krylov, _, work = jax.lax.while_loop(going, advance, (empty(unit(g), cap), jnp.asarray(False), Work.zero()))
    y = in_krylov_space(krylov, jnp.linalg.norm(g), plan.rho)
    return y @ krylov.basis[:-1], work

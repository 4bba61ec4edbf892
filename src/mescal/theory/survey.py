"""What a few samples say about a subproblem before it is solved: sizes of gradients, the constraint, and gradient noise.

The noise is that of the U-statistic surrogate, by its influence form (per theta):

    psi_i = dF_i + J_i'(lam + al cbar) + al Jbar'(C_i - cbar),     sigma_g^2 = trace of the covariance of psi

Its last term only moves the multiplier; without it, the noise is that of stationarity at a multiplier of one's choice.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..oracle import Lagrangian, Work
from ..oracle.draw import draw_rows

SAMPLES = 1024  # for means
NOISE_SAMPLES = 128  # for the covariance, which needs a gradient per sample


class Survey(eqx.Module):
    """Means over samples: c(z) as it stands, |grad f|, the norms of the rows of J, and three noises per theta."""

    constraint: jax.Array
    objective_gradient: jax.Array
    jacobian_rows: jax.Array
    gradient_noise: jax.Array
    stationarity_noise: jax.Array
    constraint_noise: jax.Array  # trace of the covariance of C
    work: Work


@jax.jit
def survey(oracle: Lagrangian, z: jax.Array, key: jax.Array) -> Survey:
    """Look at the subproblem at z. Norms are of the part in the parameters, slacks left out."""
    form, program = oracle.form, oracle.form.program
    m, size = form.constraints, program.parameters.size
    rows = draw_rows(program, oracle.data, key, 0, SAMPLES)

    def means(y):
        objective, constraint = form.evaluate(y, rows, SAMPLES)
        return jnp.mean(objective), jnp.mean(constraint, axis=0)

    (objective, constraint), pull = jax.vjp(means, z)
    gradient = pull((jnp.ones_like(objective), jnp.zeros_like(constraint)))[0]
    basis = jnp.eye(m, dtype=z.dtype)
    jacobian = jax.vmap(lambda row: pull((jnp.zeros_like(objective), row))[0])(basis).reshape(m, z.size)
    weight = oracle.multipliers + oracle.penalty * constraint
    few = jax.tree.map(lambda leaf: leaf[:NOISE_SAMPLES], rows)

    def influence(row):
        single = jax.tree.map(lambda leaf: leaf[None], row)
        (_, c), back = jax.vjp(lambda y: jax.tree.map(lambda v: v[0], form.evaluate(y, single, 1)), z)
        pulled = back((jnp.ones((), z.dtype), weight))[0]
        return pulled + oracle.penalty * ((c - constraint) @ jacobian), pulled, c

    if jax.tree.leaves(few):
        spreads = [jnp.sum(jnp.var(part, axis=0, ddof=1)) for part in jax.vmap(influence)(few)]
    else:
        spreads = [jnp.zeros((), z.dtype)] * 3
    spent = Work.of(
        gradient_samples=SAMPLES + NOISE_SAMPLES,
        objective_gradients=SAMPLES + NOISE_SAMPLES,
        constraint_values=m * (SAMPLES + NOISE_SAMPLES),
        constraint_gradients=m * (SAMPLES + NOISE_SAMPLES),
    )
    return Survey(
        constraint, jnp.linalg.norm(gradient[:size]), jnp.linalg.norm(jacobian[:, :size], axis=1), *spreads, spent
    )

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
SMALLEST_SMOOTHNESS = 1e-8  # where the gradient or the curvature along it vanishes; trust radius and descent take over
NOISE_SAMPLES = 128  # for the covariance, which needs a gradient per sample


class Survey(eqx.Module):
    """What samples at z say.

    `constraint` is the mean of c as it stands. Sizes are natural scales of f and of the rows of c: what they change by
    over a distance max(1, |x|), or between samples, whichever is more. A gradient alone would not do: it vanishes where a
    function saturates.
    """

    constraint: jax.Array
    objective_size: jax.Array
    constraint_sizes: jax.Array
    gradient_noise: jax.Array
    stationarity_noise: jax.Array
    constraint_noise: jax.Array  # trace of the covariance of C, in the problem's units, as feasibility is measured
    smoothness: jax.Array  # |H g| / |g| along the gradient of L: a scale to start from, secants take over
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
    each = form.evaluate(z, rows, SAMPLES)
    reach = jnp.maximum(1, jnp.linalg.norm(z[:size]))

    def slope(y):
        (value, rows_of_c), back = jax.vjp(means, y)
        return back((jnp.ones_like(value), oracle.multipliers + oracle.penalty * rows_of_c))[0]

    steepest = slope(z).at[size:].set(0)
    length = jnp.maximum(jnp.linalg.norm(steepest), jnp.finfo(z.dtype).tiny)
    bent = jax.jvp(slope, (z,), (steepest / length,))[1]
    smoothness = jnp.maximum(jnp.linalg.norm(bent[:size]), SMALLEST_SMOOTHNESS)
    few = draw_rows(program, oracle.data, key, 0, NOISE_SAMPLES)  # the first of them; drawn, since rows may be spread

    def influence(row):
        single = jax.tree.map(lambda leaf: leaf[None], row)
        (_, c), back = jax.vjp(lambda y: jax.tree.map(lambda v: v[0], form.evaluate(y, single, 1)), z)
        pulled = back((jnp.ones((), z.dtype), weight))[0]
        return pulled + oracle.penalty * ((c - constraint) @ jacobian), pulled, c / form.constraint_scale

    if jax.tree.leaves(few):
        spreads = [jnp.sum(jnp.var(part, axis=0, ddof=1)) for part in jax.vmap(influence)(few)]
    else:
        spreads = [jnp.zeros((), z.dtype)] * 3
    spent = Work.of(
        gradient_samples=SAMPLES + NOISE_SAMPLES,
        hvp_samples=SAMPLES,
        objective_gradients=SAMPLES + NOISE_SAMPLES,
        constraint_values=m * (SAMPLES + NOISE_SAMPLES),
        constraint_gradients=m * (SAMPLES + NOISE_SAMPLES),
    )
    return Survey(
        constraint=constraint,
        objective_size=jnp.maximum(jnp.linalg.norm(gradient[:size]) * reach, jnp.std(each[0])),
        constraint_sizes=jnp.maximum(
            jnp.linalg.norm(jacobian[:, :size], axis=1) * reach, jnp.sqrt(jnp.mean(each[1] ** 2, axis=0))
        ),
        gradient_noise=spreads[0],
        stationarity_noise=spreads[1],
        constraint_noise=spreads[2],
        smoothness=smoothness,
        work=spent,
    )

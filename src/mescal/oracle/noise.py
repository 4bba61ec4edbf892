"""The noise of estimates at a point, per theta: that of the U-statistic surrogate, by its influence form

    psi_i = dF_i + J_i'(lam + al cbar) + al Jbar'(C_i - cbar),     sigma_g^2 = trace of the covariance of psi

Its last term only moves the multiplier; without it, the noise is that of stationarity at a multiplier of one's choice.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .draw import draw_rows
from .lagrangian import Lagrangian
from .work import Work

SAMPLES = 128  # for the covariance, which needs a gradient per sample


class Noise(NamedTuple):
    """Traces of covariances: an average over n thetas has these, divided by n."""

    gradient: jax.Array
    stationarity: jax.Array
    constraint: jax.Array  # of C in the problem's units, as feasibility is measured


def noise(
    oracle: Lagrangian, z: jax.Array, key: jax.Array, constraint: jax.Array, jacobian: jax.Array
) -> tuple[Noise, Work]:
    """The noise at z, from the first samples of the batch that `key` names; means of c and of its Jacobian are given."""
    form, m = oracle.form, oracle.form.constraints
    weight = oracle.multipliers + oracle.penalty * constraint
    few = draw_rows(form.program, oracle.data, key, 0, SAMPLES)
    if not jax.tree.leaves(few):
        nothing = jnp.zeros((), z.dtype)
        return Noise(nothing, nothing, nothing), Work.zero()

    def influence(row):
        single = jax.tree.map(lambda leaf: leaf[None], row)
        (_, c), back = jax.vjp(lambda y: jax.tree.map(lambda v: v[0], form.evaluate(y, single, 1)), z)
        pulled = back((jnp.ones((), z.dtype), weight))[0]
        return pulled + oracle.penalty * ((c - constraint) @ jacobian), pulled, c / form.constraint_scale

    spreads = [jnp.sum(jnp.var(part, axis=0, ddof=1)) for part in jax.vmap(influence)(few)]
    work = Work.of(
        gradient_samples=SAMPLES,
        objective_gradients=SAMPLES,
        constraint_values=m * SAMPLES,
        constraint_gradients=m * SAMPLES,
    )
    return Noise(*spreads), work

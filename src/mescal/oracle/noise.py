"""The noise of estimates at a point, per theta: that of the U-statistic surrogate, by its influence form

    psi_i = dF_i + J_i'(lam + al cbar) + al Jbar'(C_i - cbar),     sigma_g^2 = trace of the covariance of psi

Its last term only moves the multiplier; without it, the noise is that of stationarity at a multiplier of one's choice.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .draw import by_sample, draw_rows
from .lagrangian import Lagrangian
from .work import Work

SAMPLES = 128  # for the covariance, which needs a gradient per sample ...
TOGETHER = 1 << 24  # ... and these so many at a time that they have at most this many entries


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
    few = by_sample(draw_rows(form.program, oracle.data, key, 0, SAMPLES))
    if not jax.tree.leaves(few):
        nothing = jnp.zeros((), z.dtype)
        return Noise(nothing, nothing, nothing), Work.zero()

    def influence(row):
        single = jax.tree.map(lambda leaf: leaf[:, None], row)
        (_, c), back = jax.vjp(lambda y: jax.tree.map(lambda v: v[0], form.evaluate(y, single, 1)), z)
        pulled = back((jnp.ones((), z.dtype), weight))[0]
        return pulled + oracle.penalty * ((c - constraint) @ jacobian), pulled, c / form.constraint_scale

    spreads = [spread / (SAMPLES - 1) for spread in squared_deviations(influence, few, z.size)]
    work = Work.of(
        gradient_samples=SAMPLES,
        objective_gradients=SAMPLES,
        constraint_values=m * SAMPLES,
        constraint_gradients=m * SAMPLES,
    )
    return Noise(*spreads), work


def squared_deviations(of: Callable[[Any], tuple[jax.Array, ...]], rows: Any, size: int) -> list[jax.Array]:
    """For each part of `of(row)`, sum_i |part_i - mean|^2; few rows at a time where the parts are large."""
    chunk = SAMPLES
    while chunk > 1 and chunk * size > TOGETHER:
        chunk //= 2

    def some(part):
        values = jax.vmap(of)(part)
        means = [jnp.mean(value, axis=0) for value in values]
        return means, [jnp.sum((value - mean) ** 2) for value, mean in zip(values, means, strict=True)]

    def merge(known, part):
        (count, means, sums), (others, more) = known, some(part)
        steps = [other - mean for mean, other in zip(means, others, strict=True)]
        weight = count * chunk / (count + chunk)
        sums = [a + b + weight * jnp.sum(step**2) for a, b, step in zip(sums, more, steps, strict=True)]
        means = [mean + chunk / (count + chunk) * step for mean, step in zip(means, steps, strict=True)]
        return (count + chunk, means, sums), None

    chunks = jax.tree.map(lambda leaf: leaf.reshape(SAMPLES // chunk, chunk, *leaf.shape[1:]), rows)
    means, sums = some(jax.tree.map(lambda leaf: leaf[0], chunks))
    rest = jax.tree.map(lambda leaf: leaf[1:], chunks)
    if chunk == SAMPLES:
        return sums
    return jax.lax.scan(merge, (jnp.asarray(chunk, sums[0].dtype), means, sums), rest)[0][2]

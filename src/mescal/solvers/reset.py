"""A reset: what is known of the augmented Lagrangian at one point, exactly, or from a batch as large as it must be there."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..oracle import Lagrangian, Work
from ..oracle.exact import one_pass
from ..oracle.noise import noise
from .move import SURE, best_slack, paired_differences

VERIFY = 0.9  # of the tolerance: a reset gradient below it is accepted
NORM_TEST = 0.5  # of the last gradient: standard error of a reset gradient on a stream
SMALLEST_RESET = 1024  # thetas of a reset on a stream
ROUNDINGS = 8.0  # units of rounding by which an exact value may be above another one and still count as no worse


class Target(eqx.Module):
    """A goal as array leaves: tolerances, the cap t* on steps, sizes of large batches."""

    gradient: jax.Array
    curvature: jax.Array
    steps: jax.Array
    period: jax.Array  # steps between resets
    large_batch: jax.Array
    curvature_batch: jax.Array
    feasibility: jax.Array  # of a point that is worth a curvature search, in the problem's units
    runaway: jax.Array  # a constraint of this size ends the solve


class Reset(eqx.Module):
    """A reset: the point, its value and gradient, the constraint there, and how stationary it is at which multipliers.

    `regularity` is |P_T(-J'c)| / |c|, NaN where unknown: where it vanishes, the violation cannot fall to first order.
    """

    z: jax.Array
    value: jax.Array
    objective: jax.Array  # f alone
    gradient: jax.Array
    constraint: jax.Array
    multipliers: jax.Array
    stationarity: jax.Array
    regularity: jax.Array
    jacobian: jax.Array | None  # of the constraint; None where one pass does not give it
    noise: jax.Array  # of the gradient, per theta; 0 where resets are exact

    @classmethod
    def unknown(cls, oracle: Lagrangian, z: jax.Array) -> "Reset":
        """Before the first."""
        constraint, unknown = jnp.zeros(oracle.form.constraints, z.dtype), jnp.asarray(jnp.inf, z.dtype)
        known = oracle.population is None or one_pass(oracle.form)
        jacobian = jnp.zeros((constraint.size, z.size), z.dtype) if known else None
        return cls(
            z=z,
            value=unknown,
            objective=unknown,
            gradient=jnp.zeros_like(z),
            constraint=constraint,
            multipliers=constraint,
            stationarity=unknown,
            regularity=unknown,
            jacobian=jacobian,
            noise=jnp.zeros_like(unknown),
        )


def take_reset(
    oracle: Lagrangian, z: jax.Array, before: Reset, target: Target, key: jax.Array, failures: jax.Array
) -> tuple[Reset, jax.Array, Work]:
    """A reset at z, exact or from a large batch, and the noise of its value against the last reset's.

    Exact values are so to rounding: where they differ by no more, the gradient, which still tells points apart there,
    decides.
    """
    if oracle.population is not None:
        reset, work = exact_reset(oracle, z)
        return reset, jnp.where(reset.stationarity < before.stationarity, rounding_of(reset), 0), work
    return sampled_reset(oracle, z, before, target, key, failures)


def exact_reset(oracle: Lagrangian, z: jax.Array) -> tuple[Reset, Work]:
    """From a full pass; slacks are moved to their best for this x, which c being known costs nothing."""
    at, work = oracle.exact(z)
    if at.jacobian is not None:
        relaxed = best_slack(oracle, z, at.constraint)
        at, z = oracle.shifted(at, z, relaxed), relaxed
    stationarity = jnp.linalg.norm(oracle.project_tangent(z, -at.gradient))
    multipliers = oracle.multipliers + oracle.penalty * at.constraint
    regular = regularity(oracle, z, at)
    f = at.value - (oracle.multipliers + oracle.penalty / 2 * at.constraint) @ at.constraint
    reset = Reset(
        z=z,
        value=at.value,
        objective=f,
        gradient=at.gradient,
        constraint=at.constraint,
        multipliers=multipliers,
        stationarity=stationarity,
        regularity=regular,
        jacobian=at.jacobian,
        noise=jnp.zeros_like(at.value),
    )
    return reset, work


def rounding_of(reset: Reset) -> jax.Array:
    """What an exact value may be off by: the parts it is summed from, and z, are known to so many units of rounding."""
    parts = jnp.abs(reset.objective) + jnp.abs(reset.value - reset.objective)
    return ROUNDINGS * jnp.finfo(reset.z.dtype).eps * (parts + jnp.abs(reset.gradient) @ jnp.abs(reset.z))


def sampled_reset(
    oracle: Lagrangian, z: jax.Array, before: Reset, target: Target, key: jax.Array, failures: jax.Array
) -> tuple[Reset, jax.Array, Work]:
    """From a batch that is as large as the last gradient, the failures since, and the tolerance ask for.

    A small batch verifies nothing: where the last one found its point stationary, the largest looks at it again.
    The error of the mean constraint, times al J', is an error of the multiplier, not of stationarity: multipliers may move
    within it to make the point as stationary as it is. Values are differences to the last reset on common samples.
    """
    known = jnp.isfinite(before.value)
    size = jnp.linalg.norm(oracle.project_tangent(before.z, -before.gradient))
    wanted = before.noise / (NORM_TEST * size) ** 2
    wanted = jnp.maximum(wanted, SMALLEST_RESET) * 4.0 ** jnp.minimum(failures, 12)
    near = size <= VERIFY * target.gradient
    wanted = jnp.where(known & ~near, jnp.clip(wanted, SMALLEST_RESET, target.large_batch), target.large_batch)
    n = jnp.where(jnp.isfinite(wanted), wanted, target.large_batch).astype(jnp.int32)
    at, work = oracle.estimate(z, jax.random.fold_in(key, 1), n)
    reach = SURE * oracle.penalty * jnp.sqrt(at.constraint_variance)
    shift = best_shift(oracle, z, at, reach)
    stationarity = jnp.linalg.norm(oracle.project_tangent(z, -(at.gradient + shift @ at.jacobian)))
    difference, error, compared = paired_differences(oracle, z[None], before.z, jax.random.fold_in(key, 2), n)
    value = jnp.where(known, before.value + difference[0], 0)
    multipliers = oracle.multipliers + oracle.penalty * at.constraint + shift
    stationarity = jnp.where(n >= target.large_batch, stationarity, jnp.inf)
    regular = regularity(oracle, z, at)
    spread, looked = noise(oracle, z, jax.random.fold_in(key, 1), at.constraint, at.jacobian)
    reset = Reset(
        z=z,
        value=value,
        objective=at.objective,
        gradient=at.gradient,
        constraint=at.constraint,
        multipliers=multipliers,
        stationarity=stationarity,
        regularity=regular,
        jacobian=at.jacobian,
        noise=spread.gradient,
    )
    return reset, SURE * error[0], work + looked + compared


def regularity(oracle: Lagrangian, z: jax.Array, at: Any) -> jax.Array:
    """|P_T(-J'c)| / |c| at z; infinite without violation, NaN where the Jacobian was not needed."""
    size = jnp.linalg.norm(at.constraint)
    if at.jacobian is None:
        return jnp.asarray(jnp.nan, z.dtype)
    slope = jnp.linalg.norm(oracle.project_tangent(z, -(at.constraint @ at.jacobian)))
    return jnp.where(size > 0, slope / jnp.where(size > 0, size, 1), jnp.inf)


def best_shift(oracle: Lagrangian, z: jax.Array, at: Any, reach: jax.Array) -> jax.Array:
    """argmin over |mu_j| <= reach_j of |P(g + J'mu)| on the face of z, by least squares and clipping."""
    if oracle.form.constraints == 0:
        return reach
    rows = jax.vmap(lambda row: oracle.project_face(z, row))(at.jacobian)
    gradient = oracle.project_face(z, at.gradient)
    gram = rows @ rows.T
    ridge = jnp.finfo(z.dtype).eps * jnp.trace(gram) * jnp.eye(gram.shape[0], dtype=z.dtype)
    return jnp.clip(-jnp.linalg.solve(gram + ridge + jnp.finfo(z.dtype).tiny, rows @ gradient), -reach, reach)

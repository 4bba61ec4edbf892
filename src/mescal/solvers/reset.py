"""A reset: what is known of the augmented Lagrangian at one point, exactly, or from a batch as large as it must be there."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..oracle import Lagrangian, Tally, Work
from ..oracle.draw import as_key, words
from ..oracle.lagrangian import Compared, Estimate
from ..oracle.subproblem import Array, Seen, Subproblem, best_shift
from .move import SURE, rounding_of

VERIFY = 0.9  # of the tolerance: a reset gradient below it is accepted
NORM_TEST = 0.5  # of the last gradient: standard error of a reset gradient on a stream
SMALLEST_RESET = 1024  # thetas of a reset on a stream


class Target(eqx.Module):
    """A goal as array leaves: tolerances, the cap t* on steps, sizes of large batches."""

    gradient: Any
    curvature: Any
    steps: Any
    period: Any  # steps between resets
    large_batch: Any
    curvature_batch: Any
    feasibility: Any  # of a point that is worth a curvature search, in the problem's units
    runaway: Any  # a constraint of this size ends the solve


def take_reset(
    sub: Subproblem, z: Array, before: Seen | None, target: Target, key: tuple[int, ...], failures: int
) -> tuple[Seen, float, Tally]:
    """A reset at z, exact or from a large batch, and the noise of its value against the last reset's.

    Exact values are so to rounding: where they differ by no more, the gradient, which still tells points apart there,
    decides.
    """
    if sub.population is None:
        return sampled_reset(sub, z, before, target, key, failures)
    reset, work = sub.look(z)
    closer = before is not None and reset.stationarity < before.stationarity
    return reset, rounding_of(reset) if closer else 0.0, work


def sampled_reset(
    sub: Subproblem, z: Array, before: Seen | None, target: Target, key: tuple[int, ...], failures: int
) -> tuple[Seen, float, Tally]:
    """From a batch that is as large as the last gradient, the failures since, and the tolerance ask for.

    A small batch verifies nothing: where the last one found its point stationary, the largest looks at it again.
    The error of the mean constraint, times al J', is an error of the multiplier, not of stationarity: multipliers may move
    within it to make the point as stationary as it is. Values are differences to the last reset on common samples; at the same
    point there is none, whatever rounding makes of it.
    """
    n = batch_of_reset(sub, before, target, failures)
    start = z if before is None else np.asarray(before.z)
    seen, work = sampled_look(sub.lagrangian, z, start, words(*key), np.int32(n))
    at = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), seen)
    estimate: Estimate = at.estimate
    reach = SURE * sub.penalty * np.sqrt(estimate.constraint_variance)
    face = np.asarray([sub.project_face(z, row) for row in estimate.jacobian]).reshape(estimate.jacobian.shape)
    shift = best_shift(face, sub.project_face(z, estimate.gradient), reach)
    slope = sub.project_tangent(z, -(estimate.gradient + shift @ estimate.jacobian))
    change = 0.0 if np.array_equal(z, start) else float(at.change)
    reset = Seen(
        z=z,
        value=change if before is None else before.value + change,
        objective=float(estimate.objective),
        gradient=estimate.gradient,
        constraint=estimate.constraint,
        multipliers=sub.multipliers + sub.penalty * estimate.constraint + shift,
        stationarity=float(np.linalg.norm(slope)) if n >= int(target.large_batch) else np.inf,
        regularity=sub.regularity(z, estimate.constraint, estimate.jacobian),
        jacobian=estimate.jacobian,
        noise=float(at.noise.gradient),
    )
    if before is None and not np.isfinite(estimate.objective):
        reset = reset._replace(value=np.nan)
    return reset, SURE * float(at.error), work.tally()


def batch_of_reset(sub: Subproblem, before: Seen | None, target: Target, failures: int) -> int:
    """Thetas of the next reset on a stream."""
    largest = int(target.large_batch)
    if before is None:
        return largest
    size = float(np.linalg.norm(sub.project_tangent(before.z, -before.gradient)))
    if size <= VERIFY * float(target.gradient):
        return largest
    wanted = max(before.noise / (NORM_TEST * size) ** 2, SMALLEST_RESET) * 4.0 ** min(failures, 12)
    return int(min(max(wanted, SMALLEST_RESET), largest)) if np.isfinite(wanted) else largest


@compiled
def sampled_look(
    oracle: Lagrangian, z: jax.Array, before: jax.Array, given: jax.Array, n: jax.Array
) -> tuple[Compared, Work]:
    """What n thetas say at z, and of the change of L since `before`; the one program of estimates on a stream."""
    return oracle.compare(z, before, as_key(given), n)


@compiled
def fresh_constraint(oracle: Lagrangian, z: jax.Array, given: jax.Array, n: jax.Array) -> tuple[jax.Array, Work]:
    """The mean of C at z over n fresh thetas: the dual sample S^d of Algorithm 1."""
    return oracle.constraint(z, as_key(given), n)


def regularity(oracle: Lagrangian, z: jax.Array, at: Any) -> jax.Array:
    """|P_T(-J'c)| / |c| at z; infinite without violation, NaN where the Jacobian was not needed; traceable."""
    size = jnp.linalg.norm(at.constraint)
    if at.jacobian is None:
        return jnp.asarray(jnp.nan, z.dtype)
    slope = jnp.linalg.norm(oracle.project_tangent(z, -(at.constraint @ at.jacobian)))
    return jnp.where(size > 0, slope / jnp.where(size > 0, size, 1), jnp.inf)


def best_shift_on_face(oracle: Lagrangian, z: jax.Array, at: Any, reach: jax.Array) -> jax.Array:
    """argmin over |mu_j| <= reach_j of |P(g + J'mu)| on the face of z, by least squares and clipping; traceable."""
    if oracle.form.constraints == 0:
        return reach
    rows = jax.vmap(lambda row: oracle.project_face(z, row))(at.jacobian)
    gradient = oracle.project_face(z, at.gradient)
    gram = rows @ rows.T
    ridge = (
        jnp.finfo(z.dtype).eps * jnp.trace(gram) + jnp.finfo(z.dtype).tiny
    )  # above zero also where the face is a point
    gram = gram + ridge * jnp.eye(gram.shape[0], dtype=z.dtype)
    return jnp.clip(-jnp.linalg.solve(gram, rows @ gradient), -reach, reach)

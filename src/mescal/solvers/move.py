"""Moves that every practical solver makes: a gradient step in a diagonal metric with a trust radius, and an escape.

    x+ = P_X(x - min(1/L, R/|g_x|) g_x),  R = max(1, |x|/10);      s+ = max(0, s - g_s / (al scale^2))

The slack block of the Hessian is al times a diagonal, so slacks have their own, exact step; without it L >= al would make
the steps in x far too short. The projection stays exact in this metric.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..oracle import Lagrangian, Tally, Work
from ..oracle.draw import as_key, words
from ..oracle.subproblem import Array, Subproblem

RADIUS = 1.0  # trust radius while |x| <= 10, then a tenth of |x|: without one, secants from flat regions overshoot
REACH = 8.0  # radii that an epoch may move: many steps over one flat region would else never be tested
LENGTHS = 2.0 ** -np.arange(12)  # of an escape, times max(1, |x|): both signs of each are tried
DECREASE = 1 / 8  # of |rho| r^2: what an escape of length r must bring; a quarter of what the quadratic model promises
GROUPS = 8  # independent groups of samples behind a paired difference
SURE = 2.0  # standard errors


def gradient_step(
    oracle: Lagrangian, z: jax.Array, gradient: jax.Array, smoothness: jax.Array, trust: jax.Array
) -> jax.Array:
    """One projected step; `trust` is the share of the natural radius that may be used."""
    (x, s), (gx, gs) = oracle.form.split(z), oracle.form.split(gradient)
    radius = trust * natural_radius(x)
    length = jnp.minimum(1 / smoothness, radius / jnp.maximum(jnp.linalg.norm(gx), jnp.finfo(z.dtype).tiny))
    return oracle.project(oracle.form.join(x - length * gx, s - gs / slack_curvature(oracle)))


def natural_radius(x: jax.Array) -> jax.Array:
    """R = max(1, |x|/10)."""
    return RADIUS * jnp.maximum(1, jnp.linalg.norm(x) / 10)


def too_far(oracle: Lagrangian, z: jax.Array, reset: jax.Array, trust: jax.Array) -> jax.Array:
    """Whether an epoch has left the region that its next descent test can answer for: `REACH` radii around its reset."""
    x, _ = oracle.form.split(z)
    x0, _ = oracle.form.split(reset)
    return jnp.linalg.norm(x - x0) > REACH * trust * natural_radius(x0)


def slack_curvature(oracle: Lagrangian) -> Any:
    """The diagonal of the Hessian in the slacks: al (scale_j kappa_j)^2."""
    form = oracle.form
    scale = jnp.asarray(form.constraint_scale)[form.program.layout.inequality]
    return oracle.penalty * (scale * jnp.asarray(form.slack_unit)) ** 2


def best_slack(oracle: Lagrangian, z: jax.Array, constraint: jax.Array) -> jax.Array:
    """z with the slacks that minimise L for its x, given c(z) + kappa s as it is at z: free where c is known exactly."""
    form = oracle.form
    if form.program.layout.slack_size == 0:
        return z
    x, s = form.split(z)
    rows = form.program.layout.inequality
    scale = jnp.asarray(form.constraint_scale)[rows] * jnp.asarray(form.slack_unit)
    without = constraint[rows] - scale * s
    return form.join(x, jnp.maximum(0, -(without + oracle.multipliers[rows] / oracle.penalty) / scale))


def paired_differences(
    oracle: Lagrangian, points: jax.Array, z: jax.Array, key: jax.Array, n: Any
) -> tuple[jax.Array, jax.Array, Work]:
    """L(point) - L(z) for several points on the same samples: means and standard errors over independent groups."""
    each = jnp.maximum(jnp.asarray(n) // GROUPS, 2)
    stacked = jnp.concatenate([z[None], points])

    def group(i):
        values, works = jax.vmap(lambda p: oracle.value(p, jax.random.fold_in(key, i), each))(stacked)
        return values[1:] - values[0], jax.tree.map(lambda leaf: leaf[0], works)

    differences, works = jax.lax.map(group, jnp.arange(GROUPS))
    work = jax.tree.map(lambda leaf: leaf[0], works).times(GROUPS * stacked.shape[0])
    error = jnp.std(differences, axis=0, ddof=1) / jnp.sqrt(jnp.asarray(GROUPS, z.dtype))
    return jnp.mean(differences, axis=0), error, work


def escape(
    sub: Subproblem, z: Array, direction: Array, curvature: float, key: tuple[int, ...], n: int
) -> tuple[Array, Tally]:
    """The best move along a direction of negative curvature, both signs and lengths max(1, |x|) 2^-j; z if none is sure.

    So no Hessian-Lipschitz constant is needed. Judged by exact values where there are populations alone, else by paired
    differences on n thetas.
    """
    reach = max(1.0, float(np.linalg.norm(z[: sub.parameters]))) * LENGTHS
    points = [sub.project((z + r * direction).astype(z.dtype)) for r in np.concatenate([reach, -reach])]
    if sub.looks is not None:
        return _exact_escape(sub, z, points, curvature)
    stacked = np.stack(points)
    change, error, work = _compared(sub.lagrangian, stacked, z, words(*key), np.int32(n))
    bound = np.asarray(change, np.float64) + SURE * np.asarray(error, np.float64)
    return _best(z, stacked, bound, curvature), work.tally()


def _exact_escape(sub: Subproblem, z: Array, points: list[Array], curvature: float) -> tuple[Array, Tally]:
    """By exact values, long moves first; once one leads down enough, until shorter ones lead down less."""
    start, work = sub.look(z)
    best, lowest = z, np.inf
    for forth, back in zip(points[: len(LENGTHS)], points[len(LENGTHS) :], strict=True):
        before = lowest
        for point in (forth, back):
            seen, spent = sub.look(point)
            work = work + spent
            change, length = seen.value - start.value, float(np.linalg.norm((point - z).astype(np.float64)))
            if change <= -DECREASE * abs(curvature) * length**2 and change < lowest:
                best, lowest = seen.z, change
        if before < np.inf and lowest >= before:
            break
    return best, work


def _best(z: Array, points: Array, bound: Array, curvature: float) -> Array:
    lengths = np.linalg.norm((points - z).astype(np.float64), axis=1)
    enough = np.isfinite(bound) & (bound <= -DECREASE * abs(curvature) * lengths**2)
    score = np.where(enough, bound, np.inf)
    return points[int(np.argmin(score))] if enough.any() else z


@compiled
def _compared(oracle: Lagrangian, points: jax.Array, z: jax.Array, given: jax.Array, n: jax.Array) -> Any:
    return paired_differences(oracle, points, z, as_key(given), n)

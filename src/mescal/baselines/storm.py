"""What the two STORM methods share: the recursion, a step in a metric, and a step that says when it broke.

    d+ = g_S(z+) + (1 - beta) (d - g_S(z)),     g_S both times on the same small batch S

The error of d contracts by 1 - beta and takes in beta times the noise of a fresh batch, plus that of a gradient difference,
which vanishes with the step (Cutkosky and Orabona 2019).
"""

from dataclasses import replace

import jax
import jax.numpy as jnp

from ..oracle import Lagrangian, Work
from ..solvers.base import BROKEN, RUNNING, Progress
from ..solvers.move import natural_radius

NEXT = 1 << 20  # of the key of the next step, apart from those of sources


def paired_gradients(
    oracle: Lagrangian, z: jax.Array, previous: jax.Array, weights: tuple[jax.Array, jax.Array], key: jax.Array, n: int
) -> tuple[jax.Array, jax.Array, Work]:
    """grad L_S(z) and grad L_S(previous) on the same n thetas, each at its own row of `weights`, penalties and multipliers."""

    def gradient(y, penalty, multipliers):
        return replace(oracle, penalty=penalty, multipliers=multipliers).gradient(y, key, n)[0]

    both = jax.vmap(gradient)(jnp.stack([z, previous]), *weights)
    work = oracle._gradient_work(n)
    return both[0], both[1], work + work


def metric_step(
    oracle: Lagrangian, z: jax.Array, d: jax.Array, share: jax.Array, smoothness: jax.Array, penalty: jax.Array
) -> jax.Array:
    """P(z - share M^-1 d), M = diag(L, al): the slack block of the Hessian is al, and L >= al would shorten all other steps.

    In this metric the Hessian is at most 2 where L bounds that of the parameters, so share = 1/2 is the usual step 1/L.
    """
    (x, s), (gx, gs) = oracle.form.split(z), oracle.form.split(d)
    longest = natural_radius(x) / jnp.maximum(jnp.linalg.norm(gx), jnp.finfo(z.dtype).tiny)
    moved = oracle.form.join(x - jnp.minimum(share / smoothness, longest) * gx, s - share * gs / penalty)
    return oracle.project(moved)


def parameter_secant(oracle: Lagrangian, change: jax.Array, step: jax.Array, jacobian: jax.Array) -> jax.Array:
    """(|dg_x| - 2 al |J| |ds|) / |dx|: the smoothness along a step, less what a move of the slacks alone may explain."""
    (gx, _), (dx, ds) = oracle.form.split(change), oracle.form.split(step)
    length = jnp.linalg.norm(dx)
    rest = jnp.maximum(0, jnp.linalg.norm(gx) - 2 * oracle.penalty * jacobian * jnp.linalg.norm(ds))
    return jnp.where(length > 0, rest / jnp.maximum(length, jnp.finfo(dx.dtype).tiny), 0)


def recursion(estimate: jax.Array, now: jax.Array, before: jax.Array, beta: jax.Array) -> jax.Array:
    """d+ from d and a pair of gradients."""
    return now + (1 - beta) * (estimate - before)


def moved_on(progress: Progress, z: jax.Array, finite: jax.Array, status: jax.Array, work: Work) -> Progress:
    """Progress after a step to z; where something was not finite, the point is kept and the leg is broken off."""
    return progress._replace(
        z=jnp.where(finite, z, progress.z),
        key=jax.random.fold_in(progress.key, NEXT),
        steps=progress.steps + 1,
        status=jnp.where(finite, status, BROKEN).astype(jnp.int32),
        work=progress.work + work,
    )


def running(over: jax.Array, ended: int) -> jax.Array:
    """A status: running until over."""
    return jnp.where(over, ended, RUNNING).astype(jnp.int32)

"""What the theories assume and we estimate: how steep and how curved f and every c_j are where the next steps will go.

At three points, z and on the way along -grad L as far as a trust radius, from one batch of samples:

    slope_j      the largest |eigenvalue| of the Hessian of output j (0: f, then the constraints), by a few Lanczos steps
    concave_j    max(0, -smallest eigenvalue): its weak convexity
    jacobian     |J|
    noise        the trace of the covariance of C, at z

and the largest over the points. Lower bounds of suprema: nothing is promised by them.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..curvature.lanczos import empty, lanczos_step
from ..oracle import Lagrangian, Work
from ..oracle.draw import draw_rows
from ..solvers.move import natural_radius

SAMPLES = 64
STEPS = 6  # of Lanczos: extreme eigenvalues to a few per cent, which the margin covers
MARGIN = 1.1
LARGEST_PENALTY = 1e4  # to start with
WAY = (0.0, 0.25, 1.0)  # of the trust radius
FORGET = 0.5  # of what was seen before: a bound falls by no more at a time


class Bounds(eqx.Module):
    """Estimates for f (index 0) and the rows of c."""

    slope: jax.Array  # (1 + m,)
    concave: jax.Array  # (1 + m,)
    jacobian: jax.Array  # |J|
    gradient: jax.Array  # |grad f|
    noise: jax.Array  # trace of the covariance of C

    def smoothness(self, weight: jax.Array) -> jax.Array:
        """Of the gradient of f + weight . c, weights held fixed."""
        return self.slope[0] + jnp.abs(weight) @ self.slope[1:]

    def balanced(self) -> float:
        """max(1, L_f / |J|^2), within reason: the penalty at which objective and penalty are equally curved."""
        steep = float(self.jacobian) ** 2
        return float(np.clip(float(self.slope[0]) / steep, 1.0, LARGEST_PENALTY)) if steep > 0 else 1.0

    def after(self, before: "Bounds | None") -> "Bounds":
        """These, but no lower than a share of what was seen before."""
        return self if before is None else jax.tree.map(lambda a, b: jnp.maximum(a, FORGET * b), self, before)


@partial(compiled, static_argnums=())
def look_around(oracle: Lagrangian, z: jax.Array, key: jax.Array) -> tuple[Bounds, Work]:
    """Bounds around z."""
    form, program = oracle.form, oracle.form.program
    m, size = form.constraints, program.parameters.size
    rows, steps = draw_rows(program, oracle.data, key, 0, SAMPLES), min(STEPS, size)
    basis = jnp.eye(1 + m, dtype=z.dtype)

    def outputs(y):
        objective, constraint = form.evaluate(y, rows, SAMPLES)
        return jnp.concatenate([jnp.mean(objective)[None], jnp.mean(constraint, axis=0)])

    def gradient(y, output):
        return jax.vjp(outputs, y)[1](output)[0].at[size:].set(0)

    def product(y, output, v):
        return jax.jvp(lambda q: gradient(q, output), (y,), (v,))[1]

    def at(y):
        slopes = jax.vmap(partial(gradient, y))(basis)
        start = jax.random.normal(jax.random.fold_in(key, 1), slopes.shape, z.dtype).at[:, size:].set(0)
        start = start / jnp.linalg.norm(start, axis=1, keepdims=True)

        def extend(i, krylov):
            image = jax.vmap(partial(product, y))(basis, krylov.basis[:, i])
            return jax.vmap(lanczos_step, in_axes=(0, 0, None))(krylov, image, jnp.zeros((), z.dtype))[0]

        krylov = jax.lax.fori_loop(0, steps, extend, jax.vmap(lambda v: empty(v, steps))(start))
        values = jax.vmap(_eigenvalues)(krylov.diagonal, krylov.offdiagonal)
        jacobian = jnp.linalg.norm(slopes[1:], 2) if m else jnp.zeros((), z.dtype)
        return Bounds(
            MARGIN * jnp.max(jnp.abs(values), axis=1),
            MARGIN * jnp.maximum(0, -jnp.min(values, axis=1)),
            jacobian,
            jnp.linalg.norm(slopes[0]),
            noise,
        )

    each = form.evaluate(z, rows, SAMPLES)[1]
    noise = jnp.sum(jnp.var(each, axis=0, ddof=1))
    weight = jnp.concatenate([jnp.ones(1, z.dtype), oracle.multipliers + oracle.penalty * jnp.mean(each, axis=0)])
    steepest = gradient(z, weight)
    length = jnp.maximum(jnp.linalg.norm(steepest), jnp.finfo(z.dtype).tiny)
    reach = natural_radius(z[:size]) / length
    points = jax.vmap(lambda share: oracle.project(z - share * reach * steepest))(jnp.asarray(WAY, z.dtype))
    found = jax.tree.map(lambda leaf: jnp.max(leaf, axis=0), jax.lax.map(at, points))
    return found, _work(m, steps)


def _eigenvalues(diagonal: jax.Array, links: jax.Array) -> jax.Array:
    """Of the tridiagonal matrix; steps after a breakdown add zeros, which lie between the extremes that count."""
    return jnp.linalg.eigvalsh(jnp.diag(diagonal) + jnp.diag(links[:-1], 1) + jnp.diag(links[:-1], -1))


def _work(m: int, steps: int) -> Work:
    gradients, products = SAMPLES * (1 + len(WAY)), SAMPLES * len(WAY) * steps * (1 + m)
    return Work.of(
        gradient_samples=gradients,
        hvp_samples=products,
        objective_gradients=gradients,
        objective_hvps=products,
        constraint_values=m * (gradients + products),
        constraint_gradients=m * (gradients + products),
        constraint_hvps=m * products,
    )

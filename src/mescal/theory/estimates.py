"""Automatic estimates of what the theorems assume: `ProblemConstants` from samples at a few points around a start.

At each of several points z in a ball around the start (projected onto X), from n samples each of F and C:

    bounds        |f|, |grad f|, |c|, |J|, |hess c_j|: of the sample means
    Lipschitz     |hess F_i|, |hess C_ij|: power iteration for every sample, times 1.1
                  |D^3 F_i[u, u]|, |D^3 C_ij[u, u]|: the symmetric power method on the third derivative, times 1.5
    noise         |grad F_i - grad f|, |C_i - c|, |J_i - J|; |hess F_i - hess f| along the top direction of
                  mean_i (H_i - H)^2, likewise for C_ij
    regularity    |P_T(-J'c)| / |c|; the smallest singular value of J on the face where c is lost in its own noise, or
                  everywhere where rows of J have to be independent

and the largest (for regularity: the smallest) over points and samples. These are lower bounds of suprema, so nothing is
promised; they serve practical modes, forecasts, and theory modes that were given nothing better. Constants are those of the
equality form: slacks of inequalities are variables.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..errors import InputError
from ..oracle import Tally
from ..oracle.draw import by_sample, draw_rows
from ..problem import EqualityForm, Problem, equality_form
from .constants import ProblemConstants
from .counts import check_positive

POINTS = 8
SAMPLES = 64
POWER_STEPS = 10  # of a power iteration: for |hess|
NOISE_STEPS = 5  # for the spread of Hessians, three products each
BEND_STEPS = 6  # for |D^3|, each as dear as two products; from two starts
SAFE_SLOPE = 1.1  # on gradient-Lipschitz constants
SAFE_BEND = 1.5  # on Hessian-Lipschitz constants
FLATTEST = 0.1  # L_H is at least this times L_g over the radius: steps along negative curvature stay within reach
SMALLEST_SLOPE = 1e-8


class Estimated(NamedTuple):
    """Constants, and what it cost to estimate them."""

    constants: ProblemConstants
    work: Tally


class Sizes(eqx.Module):
    """What is measured at one point; index 0 is the objective, the others are the constraints."""

    value: jax.Array
    gradients: jax.Array  # |grad f|
    constraint: jax.Array  # |c|
    jacobian: jax.Array  # |J|
    hessians: jax.Array  # of the means, (1 + m,)
    slopes: jax.Array  # of the samples, (1 + m,)
    bends: jax.Array
    gradient_noise: jax.Array
    constraint_noise: jax.Array
    jacobian_noise: jax.Array
    hessian_noise: jax.Array  # (1 + m,)
    regularity: jax.Array


def estimate(
    problem: Problem,
    x0: Any,
    *,
    radius: float | None = None,
    points: int = POINTS,
    samples: int = SAMPLES,
    seed: int = 0,
) -> ProblemConstants:
    """Estimated constants of a problem around x0.

    **Arguments:**

    - `radius`: of the ball around x0 that is looked at; default max(1, |x0|).
    - `points`, `samples`: how many points, x0 among them, and how many samples at each.
    """
    dtype = problem.working_type(x0, "x0")
    program, vector = problem.bind(x0, "x0", dtype)
    form, data = equality_form(program, problem.domain), problem.device_data(program, dtype)
    key = jax.random.key(seed, impl="threefry2x32")
    slack = jnp.zeros(program.layout.slack_size, dtype)
    z = form.project(form.join(jnp.asarray(vector, dtype), slack))
    if program.layout.slack_size:  # slacks that meet the inequalities where they can
        violated = _means(form, data, z, jax.random.fold_in(key, 2), samples)[jnp.asarray(program.layout.inequality)]
        z = form.join(form.split(z)[0], jnp.maximum(-violated, 0))
    return measure_constants(form, data, z, key, radius=radius, points=points, samples=samples).constants


def measure_constants(
    form: EqualityForm,
    data: Any,
    z: jax.Array,
    key: jax.Array,
    *,
    radius: float | None = None,
    points: int = POINTS,
    samples: int = SAMPLES,
    independent: bool = False,
) -> Estimated:
    """The constants of an equality form around z, with the work of finding them.

    With `independent` the regularity is the smallest singular value of J.
    """
    reach = max(1.0, float(jnp.linalg.norm(form.split(z)[0]))) if radius is None else float(radius)
    check_positive(radius=reach, points=points)
    if samples < 2:
        raise InputError(f"samples={samples}", "at least 2", "noise shows between samples; leave it out for 64")
    around = _around(form, z, jax.random.fold_in(key, 0), reach, points)
    sizes = _look(form, data, around, jax.random.fold_in(key, 1), samples, independent)
    seen = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), sizes)
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(seen)):
        raise InputError(
            "a value or a derivative that is not finite, at a point near the start",
            f"finite functions within {reach:g} of it",
            "give a smaller radius, bound x by a domain, or give the constants",
        )
    return Estimated(_constants(form, seen, reach), _work(form.constraints, points * samples))


def _constants(form: EqualityForm, seen: Sizes, reach: float) -> ProblemConstants:
    m = form.constraints

    def most(of: Any, safe: float = 1.0) -> float:
        return safe * float(np.max(of)) if np.size(of) else 0.0

    regularity = float(np.min(seen.regularity))
    if m and regularity <= 0:
        raise InputError(
            "a point near the start where the constraints are violated and cannot be violated less, to first order",
            "C_reg |c| <= |P_T(-J'c)| for some C_reg > 0",
            "start elsewhere, look at a smaller radius, or give the constants",
        )
    slope = max(most(seen.slopes[:, 0], SAFE_SLOPE), SMALLEST_SLOPE)
    return ProblemConstants(
        dimension=form.size,
        constraint_count=m,
        objective_bound=most(np.abs(np.asarray(seen.value))),
        objective_gradient_bound=most(seen.gradients),
        constraint_bound=most(seen.constraint),
        jacobian_bound=most(seen.jacobian),
        constraint_hessian_bound=most(seen.hessians[:, 1:]),
        regularity=regularity if m else 1.0,
        objective_gradient_lipschitz=slope,
        objective_hessian_lipschitz=max(most(seen.bends[:, 0], SAFE_BEND), FLATTEST * slope / reach),
        constraint_gradient_lipschitz=most(seen.slopes[:, 1:], SAFE_SLOPE),
        constraint_hessian_lipschitz=most(seen.bends[:, 1:], SAFE_BEND),
        objective_gradient_noise=most(seen.gradient_noise),
        objective_hessian_noise=most(seen.hessian_noise[:, 0]),
        constraint_noise=most(seen.constraint_noise),
        jacobian_noise=most(seen.jacobian_noise),
        constraint_hessian_noise=most(seen.hessian_noise[:, 1:]),
    )


def _work(m: int, thetas: int) -> Tally:
    products = 2 * POWER_STEPS + 3 * NOISE_STEPS + 1 + 2 * 2 * BEND_STEPS
    return Tally({
        "gradient_samples": thetas,
        "hvp_samples": thetas * products,
        "objective_gradients": thetas,
        "objective_hvps": thetas * products,
        "constraint_values": m * thetas,
        "constraint_gradients": m * thetas,
        "constraint_hvps": m * thetas * products,
    })  # fmt: skip


def _around(form: EqualityForm, z: jax.Array, key: jax.Array, reach: float, points: int) -> jax.Array:
    """z itself and points uniform in the ball, projected."""
    key_direction, key_length = jax.random.split(key)
    directions = jax.random.normal(key_direction, (points - 1, z.size), z.dtype)
    directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
    lengths = reach * jax.random.uniform(key_length, (points - 1, 1), z.dtype) ** (1 / z.size)
    return jnp.concatenate([z[None], jax.vmap(form.project)(z + lengths * directions)])


@partial(compiled, static_argnums=4)
def _means(form: EqualityForm, data: Any, z: jax.Array, key: jax.Array, samples: int) -> jax.Array:
    return jnp.mean(form.evaluate(z, draw_rows(form.program, data, key, 0, samples), samples)[1], axis=0)


@partial(compiled, static_argnums=(4, 5))
def _look(form: EqualityForm, data: Any, points: jax.Array, key: jax.Array, samples: int, independent: bool) -> Sizes:
    """All sizes at all points, on the same samples."""
    rows = by_sample(draw_rows(form.program, data, key, 0, samples))
    return jax.lax.map(lambda z: _at(form, z, rows, samples, key, independent), points)


def _at(form: EqualityForm, z: jax.Array, rows: Any, samples: int, key: jax.Array, independent: bool) -> Sizes:
    m, d = form.constraints, z.size
    index = jnp.arange(samples)
    basis = jnp.eye(1 + m, dtype=z.dtype)
    tiny = jnp.finfo(z.dtype).tiny

    def outputs(y, row):
        objective, constraint = form.evaluate(y, jax.tree.map(lambda leaf: leaf[:, None], row), 1)
        return jnp.concatenate([objective, constraint[0]])

    def gradient(y, row, output):
        return jax.vjp(lambda x: outputs(x, row), y)[1](output)[0]

    def product(y, row, output, v):
        return jax.jvp(lambda x: gradient(x, row, output), (y,), (v,))[1]

    def over(f):
        """f(row, output, v) for every sample and every output, v of shape (n, 1 + m, d)."""
        each = jax.vmap(f, in_axes=(None, 0, 0))
        return lambda v: jax.vmap(lambda i, row, w: each(row, basis, w))(index, rows, v)

    def unit(v):
        return v / jnp.maximum(jnp.linalg.norm(v, axis=-1, keepdims=True), tiny)

    def largest(f, v, steps):
        """The largest |f(v)| along v <- f(v)/|f(v)|, and the last v."""

        def step(carry, _):
            v, most = carry
            image = f(v)
            return (unit(image), jnp.maximum(most, jnp.linalg.norm(image, axis=-1))), None

        (v, most), _ = jax.lax.scan(step, (unit(v), jnp.zeros(v.shape[:-1], v.dtype)), None, length=steps)
        return most, v

    hessian = over(lambda row, output, v: product(z, row, output, v))
    bend = over(lambda row, output, u: jax.jvp(lambda x: product(x, row, output, u), (z,), (u,))[1])

    def mean_hessian(v):  # (1 + m, d)
        return jnp.mean(hessian(jnp.broadcast_to(v, (samples, 1 + m, d))), axis=0)

    def spread(v):  # (mean H_i^2 - H^2) v
        each = hessian(jnp.broadcast_to(v, (samples, 1 + m, d)))
        return jnp.mean(hessian(each), axis=0) - mean_hessian(jnp.mean(each, axis=0))

    keys = jax.random.split(jax.random.fold_in(key, 7), 3)
    start = jax.random.normal(keys[0], (samples, 1 + m, d), z.dtype)
    slopes, top = largest(hessian, start, POWER_STEPS)
    bends = jnp.maximum(
        largest(bend, top, BEND_STEPS)[0],
        largest(bend, jax.random.normal(keys[1], start.shape, z.dtype), BEND_STEPS)[0],
    )
    common = jax.random.normal(keys[2], (1 + m, d), z.dtype)
    hessians, _ = largest(mean_hessian, common, POWER_STEPS)
    _, worst = largest(spread, common, NOISE_STEPS)
    along = hessian(jnp.broadcast_to(worst, start.shape))
    values = jax.vmap(lambda i, row: outputs(z, row))(index, rows)
    slopes_of = jax.vmap(lambda i, row: jax.vmap(lambda output: gradient(z, row, output))(basis))(index, rows)
    mean, derivative = jnp.mean(values, axis=0), jnp.mean(slopes_of, axis=0)
    off = slopes_of - derivative
    jacobian, c = derivative[1:], mean[1:]
    none = jnp.zeros((), z.dtype)
    return Sizes(
        value=mean[0],
        gradients=jnp.linalg.norm(derivative[0]),
        constraint=jnp.linalg.norm(c),
        jacobian=jnp.linalg.norm(jacobian, 2) if m else none,
        hessians=hessians,
        slopes=jnp.max(slopes, axis=0),
        bends=jnp.max(bends, axis=0),
        gradient_noise=jnp.max(jnp.linalg.norm(off[:, 0], axis=-1)),
        constraint_noise=jnp.max(jnp.linalg.norm(values[:, 1:] - c, axis=-1)) if m else none,
        jacobian_noise=jnp.max(jnp.linalg.norm(off[:, 1:], 2, axis=(1, 2))) if m else none,
        hessian_noise=jnp.max(jnp.linalg.norm(along - jnp.mean(along, axis=0), axis=-1), axis=0),
        regularity=_regularity(form, z, jacobian, c, values[:, 1:], independent) if m else none,
    )


def _regularity(
    form: EqualityForm, z: jax.Array, jacobian: jax.Array, c: jax.Array, each: jax.Array, independent: bool
) -> jax.Array:
    size = jnp.linalg.norm(c)
    pull = jnp.linalg.norm(form.project_tangent(z, -(c @ jacobian)))
    error = 2 * jnp.sqrt(jnp.sum(jnp.var(each, axis=0, ddof=1)) / each.shape[0])
    on_face = jax.vmap(lambda row: form.project_face(z, row))(jacobian)
    smallest = jnp.min(jnp.linalg.svd(on_face, compute_uv=False)) if jacobian.shape[0] <= z.size else size * 0
    if independent:
        return smallest
    return jnp.where(size > error, pull / jnp.maximum(size, jnp.finfo(z.dtype).tiny), smallest)

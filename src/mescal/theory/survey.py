"""What a few samples say about a subproblem before it is solved: sizes of gradients, the constraint, and the noise."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from ..compiling import compiled
from ..oracle import Lagrangian, Work
from ..oracle.draw import draw_rows
from ..oracle.noise import Noise, noise

SAMPLES = 1024  # for means
SMALLEST_SMOOTHNESS = 1e-8  # where the gradient or the curvature along it vanishes; trust radius and descent take over


class Survey(eqx.Module):
    """What samples at z say.

    `constraint` is the mean of c as it stands. Sizes are natural scales of f and of the rows of c: what they change by
    over a distance max(1, |x|), or between samples, whichever is more. A gradient alone would not do: it vanishes where a
    function saturates.
    """

    constraint: jax.Array
    objective_size: jax.Array
    constraint_sizes: jax.Array
    noise: Noise
    smoothness: jax.Array  # |H g| / |g| along the gradient of L: a scale to start from, secants take over
    work: Work


@partial(compiled, static_argnums=())
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
    each = form.evaluate(z, rows, SAMPLES)
    reach = jnp.maximum(1, jnp.linalg.norm(z[:size]))

    def slope(y):
        (value, rows_of_c), back = jax.vjp(means, y)
        return back((jnp.ones_like(value), oracle.multipliers + oracle.penalty * rows_of_c))[0]

    steepest = slope(z).at[size:].set(0)
    length = jnp.maximum(jnp.linalg.norm(steepest), jnp.finfo(z.dtype).tiny)
    bent = jax.jvp(slope, (z,), (steepest / length,))[1]
    smoothness = jnp.maximum(jnp.linalg.norm(bent[:size]), SMALLEST_SMOOTHNESS)
    spread, spent = noise(oracle, z, key, constraint, jacobian)
    spent = spent + Work.of(
        gradient_samples=SAMPLES,
        hvp_samples=SAMPLES,
        objective_gradients=SAMPLES,
        constraint_values=m * SAMPLES,
        constraint_gradients=m * SAMPLES,
    )
    return Survey(
        constraint=constraint,
        objective_size=jnp.maximum(jnp.linalg.norm(gradient[:size]) * reach, jnp.std(each[0])),
        constraint_sizes=jnp.maximum(
            jnp.linalg.norm(jacobian[:, :size], axis=1) * reach, jnp.sqrt(jnp.mean(each[1] ** 2, axis=0))
        ),
        noise=spread,
        smoothness=smoothness,
        work=spent,
    )

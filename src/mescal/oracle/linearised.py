"""Many products with one Hessian: the gradient on fixed rows, linearised once.

    h(z) = f_S + w.c_S  (+ al/2 |c_S - c_S(z0)|^2),      z -> grad h linearised at z0,      v -> grad^2 h(z0) v

S is a block of n thetas, or all rows of finite populations. Rows are drawn and the functions evaluated once; a product is
what is left that depends on v. With w = lam + al c, and al J'J where the Jacobian is not known elsewhere, h has the Hessian
of the augmented Lagrangian (on a block, al J_S'J_S, which is biased; so this is for models of L, not for estimates).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient

from .access import all_rows
from .draw import draw_rows
from .lagrangian import Lagrangian
from .work import Work


def linearised_block(
    oracle: Lagrangian, z: jax.Array, weight: jax.Array, gram: bool, key: jax.Array, start: Any, count: int
) -> Callable[[jax.Array], jax.Array]:
    """Products with the Hessian of samples start .. start + count of the batch that `key` names; a pytree."""
    drawn = draw_rows(oracle.form.program, oracle.data, key, start, count)

    def means(y):
        objective, constraint = oracle.form.evaluate(y, drawn, count)
        return jnp.mean(objective), jnp.mean(constraint, axis=0)

    return _linearised(oracle, means, z, weight, gram)


def linearised_whole(
    oracle: Lagrangian, z: jax.Array, weight: jax.Array, gram: bool
) -> Callable[[jax.Array], jax.Array]:
    """Products with the Hessian of all rows: finite populations only, and those of which all rows fit into memory."""
    form = oracle.form
    rows = [all_rows(data, family.sizes) for data, family in zip(oracle.data, form.program.families, strict=True)]  # pyright: ignore[reportArgumentType]

    def means(y):
        x, slack = form.split(y)
        objective, constraint = form.program.deterministic(x)
        for k, (taken, members, shares) in enumerate(rows):
            weights = jnp.asarray(shares, y.dtype)
            f, c = form.program.contribution(k, x, taken, members)
            objective = objective + weights @ f
            constraint = constraint + form.program.means(k, weights[:, None] * c, members)
        return form.scale(objective, constraint + form.shift(slack), y.dtype)

    return _linearised(oracle, means, z, weight, gram)


def linearised_work(oracle: Lagrangian, n: Any) -> tuple[Work, Work]:
    """What linearising on n thetas costs (None: on all rows), a gradient; and what each product costs."""
    thetas, exact = (oracle.population, True) if n is None else (n, False)
    once = oracle._work(thetas, "gradient", values=1, gradients=1, exact=exact)
    return once, oracle._work(thetas, "hvp", hvps=1, exact=exact)


def _linearised(
    oracle: Lagrangian, means: Callable, z: jax.Array, weight: jax.Array, gram: bool
) -> Callable[[jax.Array], jax.Array]:
    def value(y: jax.Array) -> jax.Array:
        objective, constraint = means(y)
        total = objective + weight @ constraint
        if gram:
            moved = constraint - stop_gradient(constraint)
            total = total + oracle.penalty / 2 * moved @ moved
        return total

    return jax.linearize(jax.grad(value), z)[1]

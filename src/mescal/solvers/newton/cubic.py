"""The cubic model, solved exactly in a Krylov space.

    min g.d + d'Hd/2 + (rho/6) |d|^3     over d in span{g, Hg, H^2 g, ...}

Lanczos from g with full reorthogonalisation makes H tridiagonal there: T = V diag(t) V', and the minimiser solves

    y = -(T + (rho/2)|y|)^-1 |g| e_1,    (rho/2)|y| >= -t_min        (Nesterov and Polyak 2006)

one equation in |y|. Steps end when the residual of the pair, beta_k |y_k|, is small, and always after a few of them. In the
hard case, where g has no part along the lowest eigenvector, that vector fills up the length.
"""

from typing import Any

import jax
import jax.numpy as jnp

from ...curvature.contract import unit
from ...curvature.lanczos import Krylov, empty, lanczos_step
from ...oracle import Work
from .growing_subsample import Step
from .quadratic_model import Model

ROUND = 4  # Lanczos steps between two looks at the residual
HALVINGS = 60  # of the interval that holds |y|: below the rounding of either precision


def cubic_step(
    model: Model, of: Any, size: jax.Array, rho: jax.Array, enough: jax.Array, cap: int
) -> tuple[Step, Work]:
    """A step on the first `size` blocks; ends where the residual is at most `enough`."""
    g = model.gradient
    length = jnp.linalg.norm(g)

    def going(state):
        _, _, done, _ = state
        return ~done

    def advance(state):
        krylov, y, _, work = state
        product, spent = model.product(of, jnp.int32(0), size, krylov.basis[krylov.taken])
        krylov, beta = lanczos_step(krylov, product, jnp.zeros_like(rho))
        over = (krylov.taken == cap) | (beta == 0)
        looking = over | (krylov.taken % ROUND == 0)
        y = jax.lax.cond(looking, lambda: in_krylov_space(krylov, length, rho), lambda: y)
        small = looking & (beta * jnp.abs(y[krylov.taken - 1]) <= enough)
        return krylov, y, over | small, work + spent

    start = (empty(unit(g), cap), jnp.zeros(cap, g.dtype), length <= enough, Work.zero())
    krylov, y, _, work = jax.lax.while_loop(going, advance, start)
    d = y @ krylov.basis[:-1]
    links = jnp.where(jnp.arange(cap) < krylov.taken, krylov.offdiagonal, 0)
    tridiagonal = _matrix(krylov)
    along = tridiagonal @ y
    product = along @ krylov.basis[:-1] + links[krylov.taken - 1] * y[krylov.taken - 1] * krylov.basis[krylov.taken]
    no = jnp.asarray(False)
    return Step(d, product, no, y @ along < 0, krylov.scale, krylov.taken), work


def in_krylov_space(krylov: Krylov, length: jax.Array, rho: jax.Array) -> jax.Array:
    """y, zero in the dimensions that were not reached."""
    taken = jnp.arange(krylov.diagonal.size) < krylov.taken
    top = 2 * jnp.max(jnp.where(taken, jnp.abs(krylov.diagonal), 0)) + 4 * krylov.scale + 1
    padded = _matrix(krylov) + jnp.diag(jnp.where(taken, 0, top))  # apart, and above all others
    values, vectors = jnp.linalg.eigh(padded)
    return jnp.where(taken, vectors @ cubic_minimiser(values, length * vectors[0], rho), 0)


def cubic_minimiser(values: jax.Array, b: jax.Array, rho: jax.Array) -> jax.Array:
    """argmin b.y + sum values y^2/2 + (rho/6)|y|^3, values rising: by halving the interval that holds |y|."""
    lowest, tiny = values[0], jnp.finfo(b.dtype).tiny
    low = jnp.maximum(0, -2 * lowest / rho)
    high = (-lowest + jnp.sqrt(lowest**2 + 2 * rho * jnp.linalg.norm(b))) / rho

    def at(r):
        shifted = values + rho / 2 * r
        return -b / jnp.where(jnp.abs(shifted) > tiny, shifted, tiny)

    def halve(_, interval):
        low, high = interval
        middle = (low + high) / 2
        longer = jnp.linalg.norm(at(middle)) > middle
        return jnp.where(longer, middle, low), jnp.where(longer, high, middle)

    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (low, jnp.maximum(high, low)))
    y = at(high)
    missing = jnp.sqrt(jnp.maximum(high**2 - y @ y, 0))
    hard = (lowest < 0) & (jnp.linalg.norm(y) < (1 - 1e-3) * high)
    sign = jnp.where(b[0] > 0, -1, 1)
    return jnp.where(hard, y.at[0].add(sign * missing), y)


def _matrix(krylov: Krylov) -> jax.Array:
    """T, zero outside of the steps taken."""
    taken = jnp.arange(krylov.diagonal.size) < krylov.taken
    links = jnp.where(taken[1:], krylov.offdiagonal[:-1], 0)
    return jnp.diag(jnp.where(taken, krylov.diagonal, 0)) + jnp.diag(links, 1) + jnp.diag(links, -1)

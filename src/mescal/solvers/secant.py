"""Secants: the smoothness that a solver sees along its own steps, for free."""

import jax
import jax.numpy as jnp

from ..oracle import Lagrangian

DECAY = 0.97  # per step: how fast a smoothness that was seen once is forgotten


def secant(oracle: Lagrangian, change: jax.Array, step: jax.Array) -> jax.Array:
    """|dg_x| / |dx| along a step in the parameters; 0 for a step of no length."""
    (gx, _), (dx, _) = oracle.form.split(change), oracle.form.split(step)
    length = jnp.linalg.norm(dx)
    return jnp.where(length > 0, jnp.linalg.norm(gx) / jnp.maximum(length, jnp.finfo(dx.dtype).tiny), 0)

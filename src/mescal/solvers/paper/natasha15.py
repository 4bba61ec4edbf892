"""Natasha1.5 (Allen-Zhu 2018; the paper's Algorithm 5): one epoch of a first-order method for V = L + a hinge.

    mu = mean of B gradients of V at the start y~;   for s = 1..q:  y_0 = yh_s;  for b = 0..B'-1:
        y_{b+1} = y_b - eta (grad V(y_b; theta) - grad V(y~; theta) + mu + 2 iota (y_b - yh_s)),  one theta
    yh_{s+1} uniform over y_0..y_{B'-1};   returns x^ uniform over yh_1..yh_q, and x+ = yh_{q+1}

The hinge L_g max(0, |z - centre| - r)^2 keeps iterates where the certificate of the last search reaches. Deviations from
the paper (erratum 13): samples 1..B, weight 2 iota instead of 2 L_g, candidates y_0..y_{B'-1}, x+ the last yh. The number
of epochs T' is 1, as Natasha2 calls it.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from ...oracle import Lagrangian, Work
from .theory_mode import replaces, reset_gradient


class Natasha15Plan(eqx.Module):
    """The parameters of Algorithm 5 as arrays, and the hinge."""

    epoch_batch: jax.Array  # B
    exact_resets: jax.Array
    inner_steps: jax.Array  # B'
    total_steps: jax.Array  # q B'
    step_size: jax.Array  # eta
    strong_nonconvexity: jax.Array  # iota
    hinge_weight: jax.Array  # L_g
    hinge_radius: jax.Array  # r


class Epoch(NamedTuple):
    """x^, x+, the estimate mu at the start, and the work."""

    chosen: jax.Array
    end: jax.Array
    gradient: jax.Array
    work: Work


def hinge_gradient(z: jax.Array, centre: jax.Array, weight: jax.Array, radius: jax.Array) -> jax.Array:
    """The gradient of weight max(0, |z - centre| - radius)^2; zero inside the ball."""
    offset = z - centre
    distance = jnp.linalg.norm(offset)
    outside = jnp.maximum(0, distance - radius)
    return 2 * weight * outside * offset / jnp.maximum(distance, jnp.finfo(z.dtype).tiny)


def natasha15(oracle: Lagrangian, start: jax.Array, plan: Natasha15Plan, key: jax.Array) -> Epoch:
    """One epoch from `start`, which is the centre of the hinge and the snapshot y~ too: its hinge gradient is zero."""
    key_snapshot, key_inner = jax.random.split(key)
    mu, work = reset_gradient(oracle, start, key_snapshot, plan.epoch_batch, plan.exact_resets)

    def inner(t, carry):
        y, begun, picked, chosen, work = carry
        key_sample, key_pick, key_choose = jax.random.split(jax.random.fold_in(key_inner, t), 3)
        sub_epoch, b = t // plan.inner_steps, t % plan.inner_steps
        y, begun = jnp.where(b == 0, picked, y), jnp.where(b == 0, picked, begun)
        chosen = jnp.where((b == 0) & replaces(key_choose, sub_epoch + 1), begun, chosen)
        picked = jnp.where(replaces(key_pick, b + 1), y, picked)
        change, spent = oracle.difference(y, start, key_sample, 1)
        gradient = change + hinge_gradient(y, start, plan.hinge_weight, plan.hinge_radius) + mu
        gradient = gradient + 2 * plan.strong_nonconvexity * (y - begun)
        return oracle.project(y - plan.step_size * gradient), begun, picked, chosen, work + spent

    carry = (start, start, start, start, work)
    _, _, picked, chosen, work = jax.lax.fori_loop(0, plan.total_steps, inner, carry)
    return Epoch(chosen, picked, mu, work)

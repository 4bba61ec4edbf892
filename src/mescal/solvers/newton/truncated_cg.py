"""Conjugate gradients in a ball, until enough, negative curvature, or the boundary.

    min g.d + d'Hd/2  in  |d| <= R                       (Steihaug 1983)

A direction p with p'Hp <= 0 is followed to the boundary, and so is one that would leave the ball.
"""

from typing import Any

import jax
import jax.numpy as jnp

from ...oracle import Work
from .growing_subsample import Step
from .quadratic_model import Model

NEGATIVE = 1e-6  # of the largest curvature seen: below it a curvature counts as none, which float32 cannot tell apart


def truncated_cg(
    model: Model, blocks: Any, size: jax.Array, start: Step, radius: jax.Array, enough: jax.Array, cap: int
) -> tuple[Step, Work]:
    """CG on the first `size` blocks from the step `start`, with its product."""
    g, tiny = model.gradient, jnp.finfo(model.gradient.dtype).tiny

    def going(state):
        step, r, _, _ = state
        return ~step.boundary & (step.steps < cap) & (jnp.linalg.norm(r) > enough)

    def advance(state):
        step, r, p, work = state
        product, spent = model.product(blocks, jnp.int32(0), size, p)
        curvature, length, rr = p @ product, p @ p, r @ r
        top = jnp.maximum(step.top, jnp.abs(curvature) / jnp.maximum(length, tiny))
        negative = curvature <= NEGATIVE * top * length
        share = rr / jnp.where(negative, 1, curvature)
        boundary = negative | (jnp.linalg.norm(step.d + share * p) >= radius)
        share = jnp.where(boundary, to_boundary(step.d, p, radius), share)
        r = r + share * product
        p_next = -r + (r @ r) / jnp.maximum(rr, tiny) * p
        found = Step(step.d + share * p, step.product + share * product, boundary, negative, top, step.steps + 1)
        return found, r, p_next, work + spent

    r = g + start.product
    begun = Step(start.d, start.product, jnp.asarray(False), jnp.asarray(False), start.top, jnp.int32(0))
    step, _, _, work = jax.lax.while_loop(going, advance, (begun, r, -r, Work.zero()))
    return step, work


def to_boundary(d: jax.Array, p: jax.Array, radius: jax.Array) -> jax.Array:
    """The positive root of |d + t p| = radius."""
    pp, dp = jnp.maximum(p @ p, jnp.finfo(p.dtype).tiny), d @ p
    gap = jnp.maximum(radius**2 - d @ d, 0)
    root = jnp.sqrt(dp**2 + pp * gap)
    return jnp.where(dp > 0, gap / jnp.maximum(dp + root, jnp.finfo(p.dtype).tiny), (root - dp) / pp)

"""Conjugate gradients on a sub-sampled Hessian in a ball, until enough, negative curvature, or the boundary.

    min g.d + d'Hd/2  in  |d| <= R                       (Steihaug 1983)

A direction p with p'Hp <= 0 is followed to the boundary, and so is one that would leave the ball. Then the error of H along
d is looked at on as many fresh samples: if |(H_fresh - H) d| > |g|/2, the step has solved the noise of the sub-sample
(the norm test of spec 9.5, for the Hessian along the step), and CG goes on from d with both sub-samples together.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..oracle import Work
from .model import Model

TEST = 0.5  # of |g|: error of H along the step
NEGATIVE = 1e-6  # of the largest curvature seen: below it a curvature counts as none, which float32 cannot tell apart


class Step(eqx.Module):
    """A step d with H d, and how CG got there."""

    d: jax.Array
    product: jax.Array
    boundary: jax.Array  # whether it ends on the boundary
    negative: jax.Array  # whether negative curvature led there
    top: jax.Array  # the largest curvature seen
    steps: jax.Array  # of CG

    @classmethod
    def none(cls, g: jax.Array) -> "Step":
        """Before CG."""
        zero, no = jnp.zeros_like(g), jnp.asarray(False)
        return cls(zero, zero, no, no, jnp.zeros((), g.dtype), jnp.int32(0))


def newton_step(model: Model, radius: jax.Array, enough: jax.Array, cap: int) -> tuple[Step, jax.Array, Work]:
    """A step with |g + Hd| <= enough, of at most `cap` products per sub-sample; and the blocks behind it, and the work."""
    g = model.gradient
    if model.batch is None:
        whole, spent = model.whole()
        step, work = truncated_cg(model, whole, jnp.int32(1), Step.none(g), radius, enough, cap)
        return step, jnp.int32(1), spent + work

    def going(state):
        _, size, _, done, _ = state
        return ~done & (size < model.capacity)

    def grow(state):
        blocks, size, step, _, work = state
        more = jnp.minimum(jnp.maximum(2 * size, 1), model.capacity)
        blocks, drawn = model.fill(blocks, size, more)
        fresh, checked = model.product(blocks, size, more, step.d)
        good = (size > 0) & (jnp.linalg.norm(fresh - step.product) <= TEST * jnp.linalg.norm(g))
        share = size.astype(g.dtype) / more
        pooled = eqx.tree_at(lambda s: s.product, step, share * step.product + (1 - share) * fresh)
        step, spent = jax.lax.cond(
            good,
            lambda: (step, Work.zero()),
            lambda: truncated_cg(model, blocks, more, pooled, radius, enough, cap),
        )
        return blocks, jnp.where(good, size, more), step, good, work + drawn + checked + spent

    start = (model.empty(), jnp.int32(0), Step.none(g), jnp.asarray(False), Work.zero())
    _, size, step, _, work = jax.lax.while_loop(going, grow, start)
    return step, size, work


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

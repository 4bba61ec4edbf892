"""A step from a sub-sample of the Hessian that is as large as the step needs.

A method solves its model on a first block of samples. Then the error of H along the step d is looked at on as many fresh
samples: if |(H_fresh - H) d| > |g|/2, the step has solved the noise of the sub-sample (the norm test, for the
Hessian along the step), and the model is solved again, from d, with both sub-samples together.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ...oracle import Work
from .quadratic_model import Model

TEST = 0.5  # of |g|: error of H along the step


class Step(eqx.Module):
    """A step d with H d, and how it was found."""

    d: jax.Array
    product: jax.Array
    boundary: jax.Array  # whether it ends on the boundary of a ball
    negative: jax.Array  # whether negative curvature was met
    top: jax.Array  # the largest curvature seen
    steps: jax.Array  # products of the last solve

    @classmethod
    def none(cls, g: jax.Array) -> "Step":
        """Before the first solve."""
        zero, no = jnp.zeros_like(g), jnp.asarray(False)
        return cls(zero, zero, no, no, jnp.zeros((), g.dtype), jnp.int32(0))


Solve = Callable[[Any, jax.Array, Step], tuple[Step, Work]]  # of blocks, their number, and a step to start from


def sufficient_step(model: Model, solve: Solve) -> tuple[Step, jax.Array, Work]:
    """The step, the blocks behind it, and the work; on all rows where the model says so."""
    g = model.gradient
    if model.batch is None:
        whole, spent = model.whole()
        step, work = solve(whole, jnp.int32(1), Step.none(g))
        return step, jnp.int32(1), spent + work

    def going(state):
        _, size, _, done, _ = state
        return ~done & (size < model.capacity)

    def grow(state):
        blocks, size, step, _, work = state
        more = jnp.minimum(jnp.maximum(2 * size, 1), model.capacity)
        blocks, drawn = model.fill(blocks, size, more)
        fresh, checked = jax.lax.cond(
            size > 0,
            lambda: model.product(blocks, size, more, step.d),
            lambda: (jnp.zeros_like(g), Work.zero()),
        )
        good = (size > 0) & (jnp.linalg.norm(fresh - step.product) <= TEST * jnp.linalg.norm(g))
        share = size.astype(g.dtype) / more.astype(g.dtype)
        pooled = eqx.tree_at(lambda s: s.product, step, share * step.product + (1 - share) * fresh)
        step, spent = jax.lax.cond(good, lambda: (step, Work.zero()), lambda: solve(blocks, more, pooled))
        return blocks, jnp.where(good, size, more), step, good, work + drawn + checked + spent

    start = (model.empty(), jnp.int32(0), Step.none(g), jnp.asarray(False), Work.zero())
    _, size, step, _, work = jax.lax.while_loop(going, grow, start)
    return step, size, work

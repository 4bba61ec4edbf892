"""The gradient recursion of Natasha2 (Allen-Zhu 2018; the paper's Algorithms 4 and 5) inside of epochs.

This is not Natasha2: it is the recursion of Natasha1.5 in mini-batches, and everything around it, resets, steps, stop and
search, is that of `epoch`, which `spider` and `sg-hv-nc` share. Natasha2 itself, with a search before every epoch, the hinge,
the random pair and SGD3SC, is `natasha2-theory` (constants from its theorem) and `natasha2-paper` (set by hand).

Inside epochs: Natasha1.5 from the reset point zr with its gradient mu. Sub-epochs of `inner` steps start at yh:

    g = grad_S(y) - grad_S(zr) + mu + 2 iota (y - yh),    y <- step(y, g)

Deviations from the paper's printed form:

1. the regulariser weight is 2 iota, not 2 L (erratum 13), with iota = max(eH/3, 0.1 L);
2. a sub-epoch hands over its last iterate (its average if `average` is set) instead of a random one;
3. mini-batches instead of single samples; no hinge term and no final SGD3: the stop test of `epoch` does their job;
4. the negative-curvature search comes at the stop, not before every epoch;
5. the regulariser holds parameters alone: slacks have exact steps, which a weight above their curvature would make diverge.
"""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..curvature import Lanczos, Search
from ..oracle import Work
from ..oracle.draw import of_step
from .epoch import TRIGGER, EpochSolver, Inner, as_data, suited
from .move import DECAY, secant, step_with_slacks, too_far

BATCH = 64  # thetas of a step
SHARE = 0.1  # of the smoothness: the least weight of the regulariser


class Natasha2(EpochSolver):
    """Settings of the practical mode: Natasha1.5's recursion in safeguarded epochs, not Natasha2, which is `natasha2-theory` and
    `natasha2-paper`.

    **Arguments:**

    - `batch`: thetas of a step.
    - `inner`: steps in a sub-epoch.
    - `period`: steps in an epoch, between resets.
    - `average`: hand the average of a sub-epoch to the next one instead of its last iterate.
    - `search`: the negative-curvature search.
    """

    name: ClassVar[str] = "natasha2"

    batch: int = BATCH
    inner: int = 16
    period: int = 128
    average: bool = eqx.field(static=True, default=False)
    search: Search = Lanczos()

    def sized(self, population):
        """Options that a sweep may vary, as data."""
        inner, period = np.int32(self.inner), np.int32(self.period)
        return replace(self, batch=as_data(self.batch, BATCH), inner=inner, period=period)

    def recurse(self, oracle, reset, memory, target, key, budget):
        """Natasha1.5: one epoch of sub-epochs."""
        oracle = suited(oracle, self.batch)

        def going(state):
            t, _, _, _, _, done, _ = state
            return (t < jnp.minimum(target.period, budget)) & ~done

        def advance(state):
            t, y, start, total, smoothness, _, work = state
            fresh = t % self.inner == 0
            handed = total / self.inner if self.average else y
            y = jnp.where(fresh & (t > 0), handed, y)
            start = jnp.where(fresh, y, start)
            total = jnp.where(fresh, jnp.zeros_like(y), total)
            change, spent = oracle.difference(y, reset.z, of_step(key, t), self.batch)
            gradient = reset.gradient + change
            iota = jnp.maximum(target.curvature / 3, SHARE * smoothness)
            drift, slack = oracle.form.split(y - start)
            held = oracle.form.join(2 * iota * drift, jnp.zeros_like(slack))
            apart, weight = of_step(key, -1 - t), smoothness + 2 * iota
            moved, last = step_with_slacks(
                oracle, y, gradient + held, weight, memory.trust, reset.jacobian, apart, self.batch
            )
            seen = secant(oracle, change, y - reset.z)
            smoothness = jnp.maximum(DECAY * smoothness, jnp.maximum(seen, memory.floor))
            small = jnp.linalg.norm(oracle.project_tangent(y, -gradient)) <= TRIGGER * target.gradient
            small = small & (t > 0)
            y = jnp.where(small, y, moved)
            done = small | too_far(oracle, y, reset.z, memory.trust)
            return t + 1, y, start, total + y, smoothness, done, work + spent + last

        z = reset.z
        state = (jnp.int32(0), z, z, jnp.zeros_like(z), memory.smoothness, jnp.asarray(False), Work.zero())
        t, y, _, _, smoothness, _, work = jax.lax.while_loop(going, advance, state)
        return Inner(y, smoothness, t, work)

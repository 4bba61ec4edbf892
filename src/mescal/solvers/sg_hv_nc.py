"""The gradient recursion of SG-HV-NC (Arjevani, Carmon, Duchi, Foster, Sekhari, Sridharan 2020; Algorithm 3) inside of epochs.

This is not SG-HV-NC: it is HVP-RVR, and everything around it, resets, steps, stop and search, is that of `epoch`, which
`spider` and `natasha2` share. SG-HV-NC itself, whose coin chooses between a gradient step and a search with a +- step
(Algorithm 2), is `sg-hv-nc-theory` (constants from its theorem) and `sg-hv-nc-paper` (set by hand).

Inside epochs: the gradient is carried along a step by Hessian-vector products at points between its ends,

    g <- g + (1/J) sum_j H(z + (j - 1/2)/J dz; S_j) dz          (HVP-RVR)

which needs no common randomness at two points. Deviations from the paper's printed form:

1. midpoints of the J segments instead of their left ends: the same cost, and exact to third order along the step;
2. the length of an epoch is geometric with mean `period`: the paper's Bernoulli reset, drawn once per epoch;
3. step and stop rules are those of `epoch`: estimated smoothness, descent test, search at the stop.
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

BATCH = 2  # thetas at each point of a path


class SgHvNc(EpochSolver):
    """Settings of the practical mode: HVP-RVR in safeguarded epochs, not SG-HV-NC, which is `sg-hv-nc-theory` and `sg-hv-nc-paper`.

    **Arguments:**

    - `points`: J, points on the path of a step.
    - `batch`: thetas at each point.
    - `period`: mean number of steps between resets.
    - `search`: the negative-curvature search.
    """

    name: ClassVar[str] = "sg-hv-nc"

    points: int = eqx.field(static=True, default=16)
    batch: int = BATCH
    period: int = 64
    search: Search = Lanczos()

    def sized(self, population):
        """Options that a sweep may vary, as data."""
        return replace(self, batch=as_data(self.batch, BATCH), period=np.int32(self.period))

    def recurse(self, oracle, reset, memory, target, key, budget):
        """The HVP-RVR recursion."""
        oracle = suited(oracle, self.batch)
        key_length, key = jax.random.split(key)
        length = 1 + jnp.floor(jnp.log(jax.random.uniform(key_length, minval=1e-7)) / jnp.log1p(-1 / target.period))
        length = jnp.minimum(length.astype(jnp.int32), budget)
        fractions = (jnp.arange(self.points, dtype=reset.z.dtype) + 0.5) / self.points

        def going(state):
            t, _, _, _, done, _ = state
            return (t < length) & ~done

        def advance(state):
            t, z, gradient, smoothness, _, work = state
            apart, thetas = of_step(key, -1 - t), self.points * self.batch
            moved, first = step_with_slacks(
                oracle, z, gradient, smoothness, memory.trust, reset.jacobian, apart, thetas
            )
            keys = jax.random.split(of_step(key, t), self.points)
            step = moved - z
            products, spent = jax.vmap(lambda a, k: oracle.hvp(z + a * step, step, k, self.batch))(fractions, keys)
            change = jnp.mean(products, axis=0)
            gradient = gradient + change
            smoothness = jnp.maximum(DECAY * smoothness, jnp.maximum(secant(oracle, change, step), memory.floor))
            small = jnp.linalg.norm(oracle.project_tangent(moved, -gradient)) <= TRIGGER * target.gradient
            done = small | too_far(oracle, moved, reset.z, memory.trust)
            spent = jax.tree.map(lambda leaf: leaf[0], spent).times(self.points)
            return t + 1, moved, gradient, smoothness, done, work + first + spent

        start = (jnp.int32(0), reset.z, reset.gradient, memory.smoothness, jnp.asarray(False), Work.zero())
        t, z, _, smoothness, _, work = jax.lax.while_loop(going, advance, start)
        return Inner(z, smoothness, t, work)

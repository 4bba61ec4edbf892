"""The gradient recursion of SPIDER (Fang, Li, Lin, Zhang 2018; the paper's Algorithm 6) inside of epochs.

This is not SPIDER-SFO+: it is its recursion, and everything around it, resets, steps, stop and search, is that of `epoch`, which
`sg-hv-nc` and `natasha2` share. Algorithm 6 itself, with normalised steps, a search at every block and mini-steps along what it
finds, is `spider-theory` (constants from its theorem) and `spider-paper` (set by hand).

Inside epochs: g <- g + grad_S(z+) - grad_S(z) on one small batch S, steps 1/L in a diagonal
metric with a trust radius, L tracked by the secants of these differences.
"""

import math
from dataclasses import replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from ..curvature import Lanczos, Search
from ..oracle import Work
from ..oracle.draw import of_step
from .epoch import TRIGGER, EpochSolver, Inner, as_data, suited
from .move import DECAY, secant, step_with_slacks, too_far

SMALLEST_BATCH = 64
PERIODS = (32, 128)


class Spider(EpochSolver):
    """Settings of the practical mode: SPIDER's recursion in safeguarded epochs, not Algorithm 6, which is `spider-theory` and
    `spider-paper`.

    **Arguments:**

    - `batch`: thetas of a recursive step; default: the square root of a finite population (the theory's choice), at least 64.
    - `period`: steps between resets; default: as many as cost a full pass, from 32 to 128.
    - `search`: the negative-curvature search.
    """

    name: ClassVar[str] = "spider"

    batch: int = 0  # 0: to be sized
    period: int = 0
    search: Search = Lanczos()

    def sized(self, population):
        """Batch and period for a population; powers of two, so that similar populations share compiled programs."""
        whole = population or 0
        usual = max(SMALLEST_BATCH, 2 ** round(math.log2(max(1.0, math.sqrt(whole)))))
        batch = self.batch or usual
        longest = 2 ** round(math.log2(max(1.0, whole / (2 * batch))))
        period = self.period or min(max(longest, PERIODS[0]), PERIODS[1])
        return replace(self, batch=as_data(batch, usual), period=np.int32(period))

    def recurse(self, oracle, reset, memory, target, key, budget):
        """The SARAH recursion."""
        oracle = suited(oracle, self.batch)

        def going(state):
            t, _, _, _, done, _ = state
            return (t < jnp.minimum(target.period, budget)) & ~done

        def advance(state):
            t, z, gradient, smoothness, _, work = state
            moved, first = step_with_slacks(
                oracle, z, gradient, smoothness, memory.trust, reset.jacobian, of_step(key, -1 - t), self.batch
            )
            change, spent = oracle.difference(moved, z, of_step(key, t), self.batch)
            gradient = gradient + change
            smoothness = jnp.maximum(DECAY * smoothness, jnp.maximum(secant(oracle, change, moved - z), memory.floor))
            small = jnp.linalg.norm(oracle.project_tangent(moved, -gradient)) <= TRIGGER * target.gradient
            done = small | too_far(oracle, moved, reset.z, memory.trust)
            return t + 1, moved, gradient, smoothness, done, work + first + spent

        start = (jnp.int32(0), reset.z, reset.gradient, memory.smoothness, jnp.asarray(False), Work.zero())
        t, z, _, smoothness, _, work = jax.lax.while_loop(going, advance, start)
        return Inner(z, smoothness, t, work)

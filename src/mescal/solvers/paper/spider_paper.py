"""SPIDER-SFO+ (the paper's Algorithm 6) as section 5 ran it: its own steps, with every parameter set by hand.

Its steps are those of `spider_steps`: steps of one length, searches where blocks begin, mini-steps along what they find. See
`paper_mode` for what ends an inner solve, and for the outer loop. No probability is promised.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp

from ...curvature import Neon2, Search
from ..base import Goal
from .paper_mode import STEPS, PaperSolver, Whole
from .spider_steps import SpiderPlan, SpiderSteps


class SpiderPaper(PaperSolver):
    """Settings of SPIDER in paper mode, for finite populations.

    **Arguments:**

    - `step_length`: of every mini-step, at al = 1; eta in the paper.
    - `batch`: thetas of an update; B^(p).
    - `reset`: thetas of a reset, 0: all rows; B^reset.
    - `period`: steps between resets; q.
    - `block`: steps between searches; T_k.
    - `stop`: the algorithm ends by itself where |g_t| is at most so many eps_g; 0: by the paper's test alone.
    - `search`: Neon2, as in the paper, or another one.
    - `inner_steps`, `every`, `search_share`, `search_batch`, `multipliers`, `gamma`, `dual_batch`, `surrogate`, `watch`: as for all
      paper modes: t*, steps between two looks at the paper's test, the tolerance of a search in eps_H and its thetas (0: all
      rows), lambda_0, gamma_k and |S^d_k| (the last holds on; 0: all rows), the estimator, who is told of every look.
    """

    name: ClassVar[str] = "spider-paper"
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "step_length": (0.01, 0.1, 0.3, 1.0, 3.0, 10.0),
        "batch": (4, 16, 64),
    }

    step_length: float = 1.0
    batch: int = 16
    reset: int = 0
    period: int = 64
    block: int = 256
    stop: float = 0.0
    search: Search = Neon2(steps=STEPS)
    inner_steps: int = 4096
    every: int = 0
    search_share: float = 2 / 3

    @property
    def steps(self) -> SpiderSteps:
        """Algorithm 6."""
        return SpiderSteps(Whole(self.search))

    def plan(self, goal: Goal, dtype: Any) -> SpiderPlan:
        """The parameters as arrays."""
        return SpiderPlan(
            large_batch=self.rows(self.reset, goal),
            exact_resets=jnp.asarray(not self.reset),
            small_batch=jnp.int32(self.batch),
            period=jnp.int32(self.period),
            block_steps=jnp.int32(self.block),
            steps=jnp.int32(self.inner_steps),
            step_length=jnp.asarray(self.step_length / goal.penalty, dtype),
            stop_threshold=jnp.asarray(self.stop * goal.gradient, dtype),
            search=self.searched(goal, dtype),
        )

    def sizes(self, plan):
        """See `PaperSolver`."""
        return plan.step_length, plan.small_batch, plan.large_batch

"""SPIDER-SFO+ (Fang, Li, Lin, Zhang 2018; the paper's Algorithm 6) with every parameter from `theory.spider`.

Its steps are those of `spider_steps`. Guarantee, for X = R^d: |grad L| <= eps_g and lambda_min >= -eps_H with probability at
least 1/2. Deviations from the paper are those of `theory.spider`; the loop has J blocks where it prints J + 1.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from ...curvature import Search
from ...theory import spider
from ..base import Goal
from .spider_steps import SpiderPlan, SpiderSteps
from .theory_mode import SEARCH, TheorySolver, counts, known_constants, search_plan


class SpiderTheory(TheorySolver):
    """Settings of SPIDER in theory mode; it needs the constants of the subproblem, and its guarantee is for X = R^d.

    **Arguments:**

    - `sharp`: a reduced tolerance from the concentration of the estimator instead of the printed logarithm, and sharper
      constants of the subproblem: the same guarantee for far less work (`theory.spider`, `theory.constants`).
    - `ratio`: n0, which trades small batches for long periods at equal work.
    - `search`: the negative-curvature search.
    - `surrogate`: the estimator that the theorems are about.
    """

    name: ClassVar[str] = "spider-theory"
    guarantee: ClassVar[float | None] = spider.SUCCESS_PROBABILITY

    sharp: bool = eqx.field(static=True, default=False)
    ratio: float = eqx.field(static=True, default=1.0)
    search: Search = SEARCH
    surrogate: str = eqx.field(static=True, default="pair")

    def plan(self, goal: Goal, dtype: Any) -> SpiderPlan:
        """Algorithm 6's parameters for the goal."""
        constants = known_constants(goal, self.name)
        p = spider.parameters(
            constants, goal.gradient, goal.curvature, ratio=self.ratio, population=goal.population, sharp=self.sharp
        )
        large, small, period, block, steps = counts(
            self.name,
            gradients_of_a_reset=p.large_batch,
            samples_of_an_update=p.small_batch,
            steps_between_resets=p.period,
            steps_of_a_block=p.block_steps,
            steps=p.blocks * p.block_steps,
        )
        return SpiderPlan(
            large_batch=large,
            exact_resets=jnp.asarray(p.exact_resets),
            small_batch=small,
            period=period,
            block_steps=block,
            steps=steps,
            step_length=jnp.asarray(p.step_length, dtype),
            stop_threshold=jnp.asarray(p.stop_threshold, dtype),
            search=search_plan(
                self.name, constants, p.search_tolerance, p.search_failure, dtype, self.search, goal.dimension
            ),
        )

    def sizes(self, plan):
        """See `TheorySolver`."""
        return plan.step_length, plan.small_batch, plan.large_batch

    def init(self, oracle, z, plan, memory, key):
        """See `SpiderSteps`."""
        return SpiderSteps(self.search).init(oracle, z, plan, memory, key)

    def step(self, oracle, state, plan):
        """See `SpiderSteps`."""
        return SpiderSteps(self.search).step(oracle, state, plan)

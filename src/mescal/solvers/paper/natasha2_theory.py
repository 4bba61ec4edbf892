"""Natasha2 (Allen-Zhu 2018; the paper's Algorithms 4 and 5) with every parameter from `theory.natasha2`.

Its steps are those of `natasha2_steps`. Guarantee, for X = R^d: |grad L| <= eps_g and lambda_min >= -eps_H with probability at
least 2/3, for suitable free constants; for those of `theory.natasha2.FreeConstants`, which predictions use, too, it is argued there
and not proved, and a run whose promise rests on it says so. Deviations from the paper are those of `theory.natasha2`, `natasha15`
and `sgd3sc`.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from ...curvature import Search
from ...theory import natasha2, sgd3sc
from ..base import Goal
from .natasha2_steps import Natasha2Plan, Natasha2Steps
from .natasha15 import Natasha15Plan
from .sgd3sc import pad_schedule
from .theory_mode import SEARCH, TheorySolver, counts, known_constants, search_plan


class Natasha2Theory(TheorySolver):
    """Settings of Natasha2 in theory mode; it needs the constants of the subproblem, and its guarantee is for X = R^d.

    **Arguments:**

    - `free`: the constants c_L, c_iota, c_B, c_q, c_eta, c_N, c_Lt, c_T that the paper leaves open.
    - `sharp`: sharper constants of the subproblem (`theory.constants`): the same guarantee for less work.
    - `search`: the negative-curvature search.
    - `surrogate`: the estimator that the theorems are about.
    """

    name: ClassVar[str] = "natasha2-theory"
    guarantee: ClassVar[float | None] = natasha2.SUCCESS_PROBABILITY
    chunk: ClassVar[int] = 8  # a step is a whole epoch

    free: natasha2.FreeConstants = eqx.field(static=True, default=natasha2.FreeConstants())
    sharp: bool = eqx.field(static=True, default=False)
    search: Search = SEARCH
    surrogate: str = eqx.field(static=True, default="pair")

    def plan(self, goal: Goal, dtype: Any) -> Natasha2Plan:
        """The parameters of Algorithms 4 and 5 and the schedule of SGD3SC for the goal."""
        constants = known_constants(goal, self.name)
        p = natasha2.parameters(constants, goal.gradient, goal.curvature, population=goal.population, free=self.free)
        pairs, batch, inner, total = counts(
            self.name,
            first_order_steps=p.first_order_steps,
            gradients_of_a_snapshot=p.epoch_batch,
            steps_of_a_sub_epoch=p.inner_steps,
            steps_of_an_epoch=p.sub_epochs * p.inner_steps,
        )
        counts(self.name, steps_of_the_last_phase=p.final_steps)
        return Natasha2Plan(
            pairs=pairs,
            curvature_step=jnp.asarray(p.curvature_step, dtype),
            epoch=Natasha15Plan(
                epoch_batch=batch,
                exact_resets=jnp.asarray(p.exact_resets),
                inner_steps=inner,
                total_steps=total,
                step_size=jnp.asarray(p.step_size, dtype),
                strong_nonconvexity=jnp.asarray(p.strong_nonconvexity, dtype),
                hinge_weight=jnp.asarray(p.hinge_weight, dtype),
                hinge_radius=jnp.asarray(p.curvature_step, dtype),
            ),
            final=pad_schedule(
                self.name, sgd3sc.schedule(p.strong_nonconvexity, p.final_smoothness, p.final_steps), dtype
            ),
            search=search_plan(
                self.name, constants, p.search_tolerance, p.search_failure, dtype, self.search, goal.dimension
            ),
        )

    def sizes(self, plan):
        """See `TheorySolver`."""
        return plan.epoch.step_size, jnp.int32(1), plan.epoch.epoch_batch

    def init(self, oracle, z, plan, memory, key):
        """See `Natasha2Steps`."""
        return Natasha2Steps(self.search).init(oracle, z, plan, memory, key)

    def step(self, oracle, state, plan):
        """See `Natasha2Steps`."""
        return Natasha2Steps(self.search).step(oracle, state, plan)

"""SG-HV-NC (Arjevani et al. 2020; the paper's Algorithms 2 and 3) with every parameter from `theory.sg_hv_nc`.

Its steps are those of `sg_hv_nc_steps`. Guarantee, for X = R^d: |grad L| <= eps_g and lambda_min >= -eps_H with probability at
least 5/8. Deviations from the paper are those of `theory.sg_hv_nc`.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from ...curvature import Search
from ...theory import sg_hv_nc
from ..base import Goal
from .sg_hv_nc_steps import SgHvNcPlan, SgHvNcSteps
from .theory_mode import SEARCH, TheorySolver, counts, known_constants, search_plan


class SgHvNcTheory(TheorySolver):
    """Settings of SG-HV-NC in theory mode; it needs the constants of the subproblem, and its guarantee is for X = R^d.

    **Arguments:**

    - `sharp`: sharper constants of the subproblem (`theory.constants`): the same guarantee for less work.
    - `search`: the negative-curvature search.
    - `surrogate`: the estimator that the theorems are about.
    """

    name: ClassVar[str] = "sg-hv-nc-theory"
    guarantee: ClassVar[float | None] = sg_hv_nc.SUCCESS_PROBABILITY

    sharp: bool = eqx.field(static=True, default=False)
    search: Search = SEARCH
    surrogate: str = eqx.field(static=True, default="pair")

    def plan(self, goal: Goal, dtype: Any) -> SgHvNcPlan:
        """The parameters of Algorithms 2 and 3 for the goal."""
        constants = known_constants(goal, self.name)
        p = sg_hv_nc.parameters(constants, goal.gradient, goal.curvature, population=goal.population)
        steps, batch = counts(self.name, steps=p.steps, gradients_of_a_reset=p.reset_batch)
        return SgHvNcPlan(
            steps=steps,
            step_size=jnp.asarray(p.step_size, dtype),
            first_order_probability=jnp.asarray(p.first_order_probability, dtype),
            curvature_step=jnp.asarray(p.curvature_step, dtype),
            reset_batch=batch,
            exact_resets=jnp.asarray(p.exact_resets),
            first_order_reset_probability=jnp.asarray(p.first_order_reset_probability, dtype),
            second_order_reset_probability=jnp.asarray(p.second_order_reset_probability, dtype),
            path_density=jnp.asarray(p.path_density, dtype),
            search=search_plan(
                self.name, constants, p.search_tolerance, p.search_failure, dtype, self.search, goal.dimension
            ),
        )

    def sizes(self, plan):
        """See `TheorySolver`."""
        return plan.step_size, jnp.int32(1), plan.reset_batch

    def init(self, oracle, z, plan, memory, key):
        """See `SgHvNcSteps`."""
        return SgHvNcSteps(self.search).init(oracle, z, plan, memory, key)

    def step(self, oracle, state, plan):
        """See `SgHvNcSteps`."""
        return SgHvNcSteps(self.search).step(oracle, state, plan)

"""SG-HV-NC (the paper's Algorithms 2 and 3) as section 5 ran it: its own steps, with every parameter set by hand.

Its steps are those of `sg_hv_nc_steps`: a coin before every step, a step along the estimate or a search with a step of fixed length
along what it finds, and the estimate HVP-RVR along the path. An inner solve yields the point where the paper's test holds, or its
last one, and not a random one. See `paper_mode` for what ends it, and for the outer loop. No probability is promised.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp

from ...curvature import Oja, Search
from ..base import Goal
from .paper_mode import STEPS, PaperSolver, Whole, share
from .sg_hv_nc_steps import SgHvNcPlan, SgHvNcSteps
from .theory_mode import LARGEST


class SgHvNcPaper(PaperSolver):
    """Settings of SG-HV-NC in paper mode, for finite populations.

    **Arguments:**

    - `step_size`: of a step along the estimate, at al = 1; eta in the paper.
    - `coin`: the probability of such a step, q; otherwise the step searches.
    - `curvature_step`: the length of a step along negative curvature, at al = 1.
    - `reset`: thetas of a reset, 0: all rows; B.
    - `reset_share`: the probability of a reset after a step along the estimate; b_g.
    - `curvature_reset_share`: after a step along negative curvature; b_H.
    - `path_density`: products of a path between resets for every b |dz|^-2, at al = 1; they grow as al^2.
    - `search`: Oja's method, as in the paper, or another one.
    - `inner_steps`, `every`, `search_share`, `search_batch`, `multipliers`, `gamma`, `dual_batch`, `surrogate`, `watch`: as for all
      paper modes: t*, steps between two looks at the paper's test, the tolerance of a search in eps_H and its thetas (0: all
      rows), lambda_0, gamma_k and |S^d_k| (the last holds on; 0: all rows), the estimator, who is told of every look.
    """

    name: ClassVar[str] = "sg-hv-nc-paper"
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {
        "step_size": (0.25, 1.0, 4.0, 16.0, 64.0, 256.0),
        "path_density": (1.0, 10.0),
    }

    step_size: float = 16.0
    coin: float = eqx.field(default=0.9, converter=share("coin"))
    curvature_step: float = 0.1
    reset: int = 0
    reset_share: float = eqx.field(default=1 / 64, converter=share("reset_share"))
    curvature_reset_share: float = eqx.field(default=1.0, converter=share("curvature_reset_share"))
    path_density: float = 10.0
    search: Search = Oja(steps=STEPS)
    inner_steps: int = 4096
    every: int = 0
    search_share: float = 1.0

    @property
    def steps(self) -> SgHvNcSteps:
        """Algorithms 2 and 3."""
        return SgHvNcSteps(Whole(self.search))

    def plan(self, goal: Goal, dtype: Any) -> SgHvNcPlan:
        """The parameters as arrays; the algorithm has no end of its own, so that no random point takes the place of the last."""
        return SgHvNcPlan(
            steps=jnp.int32(LARGEST),
            step_size=jnp.asarray(self.step_size / goal.penalty, dtype),
            first_order_probability=jnp.asarray(self.coin, dtype),
            curvature_step=jnp.asarray(self.curvature_step / goal.penalty, dtype),
            reset_batch=self.rows(self.reset, goal),
            exact_resets=jnp.asarray(not self.reset),
            first_order_reset_probability=jnp.asarray(self.reset_share, dtype),
            second_order_reset_probability=jnp.asarray(self.curvature_reset_share, dtype),
            path_density=jnp.asarray(self.path_density * goal.penalty**2, dtype),
            search=self.searched(goal, dtype),
        )

    def sizes(self, plan):
        """See `PaperSolver`."""
        return plan.step_size, 1, plan.reset_batch

"""Natasha2 (the paper's Algorithms 4 and 5) as section 5 ran it: its own steps, with every parameter set by hand.

Its steps are those of `natasha2_steps`: a search before every epoch, a step of fixed length along what it finds or an epoch of
Natasha1.5 under a hinge; after so many epochs the last phase, SGD3SC, from a random pair. A step here is a search with what follows
from it, or a run of averaged SGD. See `paper_mode` for what ends an inner solve, and for the outer loop. Nothing is promised.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp

from ...curvature import Oja, Search
from ...theory import sgd3sc
from ..base import Goal
from .natasha2_steps import Natasha2Plan, Natasha2Steps
from .natasha15 import Natasha15Plan
from .paper_mode import STEPS, PaperSolver, Whole
from .sgd3sc import pad_schedule


class Natasha2Paper(PaperSolver):
    """Settings of Natasha2 in paper mode, for finite populations.

    **Arguments:**

    - `step_size`: of a step within an epoch, at al = 1; eta in the paper.
    - `epoch`: thetas of the gradient with which an epoch begins, 0: all rows; B.
    - `sub_epochs`: of an epoch; q.
    - `sub_epoch_steps`: of one theta each; B'.
    - `nonconvexity`: iota, the weight of what pulls to the start of a sub-epoch, at al = 1; it grows as al.
    - `hinge`: the weight of the hinge, at al = 1; it grows as al.
    - `curvature_step`: the length of a step along negative curvature, and the radius of the hinge, at al = 1.
    - `pairs`: epochs before the last phase; N_1.
    - `final_steps`: of the last phase, about; N_2 in its schedule, with iota and the smoothness 1/(2 eta).
    - `search`: Oja's method, as in the paper, or another one.
    - `inner_steps`, `every`, `search_share`, `search_batch`, `multipliers`, `gamma`, `dual_batch`, `surrogate`, `watch`: as for all
      paper modes: t*, steps between two looks at the paper's test, the tolerance of a search in eps_H and its thetas (0: all
      rows), lambda_0, gamma_k and |S^d_k| (the last holds on; 0: all rows), the estimator, who is told of every look.
    """

    name: ClassVar[str] = "natasha2-paper"
    grid: ClassVar[Mapping[str, tuple[float, ...]]] = {"step_size": (0.1, 0.5, 2.0, 8.0), "curvature_step": (1.0, 10.0)}

    step_size: float = 0.5
    epoch: int = 0
    sub_epochs: int = 8
    sub_epoch_steps: int = 64
    nonconvexity: float = 0.05
    hinge: float = 1.0
    curvature_step: float = 10.0
    pairs: int = 64
    final_steps: int = 1024
    search: Search = Oja(steps=STEPS)
    inner_steps: int = 256
    every: int = 1
    search_share: float = 1 / 3

    @property
    def steps(self) -> Natasha2Steps:
        """Algorithms 4 and 5."""
        return Natasha2Steps(Whole(self.search))

    def plan(self, goal: Goal, dtype: Any) -> Natasha2Plan:
        """The parameters as arrays."""
        radius = jnp.asarray(self.curvature_step / goal.penalty, dtype)
        convexity = self.nonconvexity * goal.penalty
        smoothness = max(convexity, goal.penalty / (2 * self.step_size))
        return Natasha2Plan(
            pairs=jnp.int32(self.pairs),
            curvature_step=radius,
            epoch=Natasha15Plan(
                epoch_batch=self.rows(self.epoch, goal),
                exact_resets=jnp.asarray(not self.epoch),
                inner_steps=jnp.int32(self.sub_epoch_steps),
                total_steps=jnp.int32(self.sub_epochs * self.sub_epoch_steps),
                step_size=jnp.asarray(self.step_size / goal.penalty, dtype),
                strong_nonconvexity=jnp.asarray(convexity, dtype),
                hinge_weight=jnp.asarray(self.hinge * goal.penalty, dtype),
                hinge_radius=radius,
            ),
            final=pad_schedule(self.name, sgd3sc.schedule(convexity, smoothness, self.final_steps), dtype),
            search=self.searched(goal, dtype),
        )

    def sizes(self, plan):
        """See `PaperSolver`."""
        return plan.epoch.step_size, 1, plan.epoch.epoch_batch

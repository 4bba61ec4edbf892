"""Kinks near a point: gradients that jump over ever shorter steps, as at |u| = 0, where no certificate can pass.

    jump(r) = |grad L(x + r u) - grad L(x - r u)|,    u random

falls with r where L is twice differentiable, and stays where a kink lies within r of x. Solvers end beside kinks, not on them:
radii go down from `WIDEST` by 4, and the smallest over which the jump of the last two was kept is reported.
"""

from typing import Any, NamedTuple

import numpy as np

from ..oracle.evaluator import evaluator_of
from ..problem import Problem
from .budget import Budget
from .request import check_request

WIDEST, SHRINKS, FACTOR = 1e-4, 9, 4.0  # radii, in units of the size of x
KEPT = 0.7  # of a jump, when the radius shrinks 16-fold: kinks keep all of it, smooth functions a sixteenth
DIRECTIONS = 2


class Kink(NamedTuple):
    """Gradients jump by so much within a radius of x."""

    jump: float
    radius: float

    def __str__(self) -> str:
        return (
            f"The gradient of the Lagrangian jumps by {self.jump:.3g} within {self.radius:.3g} of x: there is a kink."
        )


def kink_near(
    problem: Problem, x: Any, multipliers: Any, unit: np.ndarray, limit: float, seed: int, budget: Budget
) -> Kink | None:
    """The nearest kink along a few random directions over which gradients jump by more than `limit`; None without one.

    `unit` is the size of x and of its changes, one number for each parameter.
    """
    request = check_request(
        problem, x, multipliers, None, None, "critical", 1.1, 0.95, seed, None, None, max_seconds=budget
    )
    judge, weights = evaluator_of(problem, request.program), request.multipliers
    assert weights is not None
    found = None
    for u in np.random.default_rng([request.seed, 6]).standard_normal((DIRECTIONS, request.x.size)):
        along = request.project_tangent(u)
        if request.budget.over or not np.linalg.norm(along) > 0:
            continue
        jumps: list[float] = []
        widths: list[float] = []
        for k in range(SHRINKS):
            step = WIDEST * unit / FACTOR**k * along / np.linalg.norm(along)
            ends = [request.project(request.x + sign * step) for sign in (1.0, -1.0)]
            ahead, behind = (judge.slope(end, 1.0, weights) for end in ends)
            jumps.append(float(np.linalg.norm(ahead - behind)))
            widths.append(float(np.linalg.norm((ends[0] - ends[1]) / unit)))
            # where X cuts steps off, they are no shorter
            kept = k >= 2 and jumps[k] >= KEPT * jumps[k - 2] and widths[k] <= widths[k - 2] / FACTOR
            radius = float(np.linalg.norm(step[: request.x.size - request.scalars]))
            if kept and jumps[k] > limit and (found is None or radius < found.radius):
                if not all(np.isfinite(np.append(*judge.values(end))).all() for end in ends):
                    return None  # there is no function there to have a kink
                found = Kink(jumps[k], radius)
    return found

"""Active bounds: min E[-x1^2 - x2^2 + (x3^2 + x4^2)/2 + xi'x]  s.t.  E[sum(x) - 2.4 + zeta] = 0,  |x_i| <= 1.

The global minimiser is x = (1, 1, 0.2, 0.2) with objective -1.96 and multiplier -0.2. Both bounds push: the gradient of
the Lagrangian is -2.2 in x1 and x2, so the critical cone leaves only (0, 0, 1, -1), with curvature +1. The paper's cone
also holds directions back into the box, such as (-2, 0, 1, 1) with curvature -1, and refuses this strict local
minimiser.
"""

import jax.numpy as jnp
import numpy as np

from ..problem import E, Problem
from ..sets import Box
from .named import Entry, Instance
from .noise import SIGMA, gaussian

TOTAL = 2.4


def objective(x):
    """-x1^2 - x2^2 + (x3^2 + x4^2)/2."""
    return -(x[0] ** 2) - x[1] ** 2 + (x[2] ** 2 + x[3] ** 2) / 2


def noisy_objective(x, xi):
    """The objective, with noise."""
    return objective(x) + xi @ x


def noisy_sum(x, zeta):
    """The sum, with noise."""
    return jnp.sum(x) + zeta


def build(*, sigma: float) -> Instance:
    """Started in the middle of the feasible set."""
    if sigma:
        f, total = E(noisy_objective, over=gaussian(sigma, (4,))), E(noisy_sum, over=gaussian(sigma, ()))
    else:
        f, total = E(objective), E(jnp.sum)
    problem = Problem(f, {"sum": total == TOTAL}, Box(-1.0, 1.0))
    return Instance(problem, np.full(4, TOTAL / 4, np.float32), -1.96, np.array([1, 1, 0.2, 0.2]))


PROBLEMS = (
    Entry(
        "saddles/active-bounds",
        build,
        "A strict minimiser on two active bounds, which only the critical cone accepts",
        {"sigma": SIGMA},
    ),
)

"""Strict saddles: min E[x1^2/2 - x2^2/2 + x2^4/4 + xi x1]; min E[x2^4 - x2^2 + xi x1] s.t. E[|x|^2 - 1 + zeta] = 0.

The first starts at 0, a saddle between its minimisers (0, +-1). The second starts at (1, 0), where the gradient of the
objective is zero and the curvature along the circle is -2; its minimisers have x1^2 = x2^2 = 1/2. In both the noise
moves x1 alone: at the start no sample has a gradient along the way out, and a first-order method stays.
"""

import numpy as np

from ..problem import E, Problem
from .named import Entry, Instance
from .noise import SIGMA, gaussian


def free_objective(x):
    """x1^2/2 - x2^2/2 + x2^4/4."""
    return x[0] ** 2 / 2 - x[1] ** 2 / 2 + x[1] ** 4 / 4


def circle_objective(x):
    """x2^4 - x2^2."""
    return x[1] ** 4 - x[1] ** 2


def circle(x):
    """x1^2 + x2^2 - 1."""
    return x[0] ** 2 + x[1] ** 2 - 1


def noisy_free_objective(x, xi):
    """The first objective, with noise."""
    return free_objective(x) + xi * x[0]


def noisy_circle_objective(x, xi):
    """The second objective, with noise."""
    return circle_objective(x) + xi * x[0]


def noisy_circle(x, zeta):
    """The constraint, with noise."""
    return circle(x) + zeta


def build_free(*, sigma: float) -> Instance:
    """Without constraints."""
    objective = E(noisy_free_objective, over=gaussian(sigma, ())) if sigma else E(free_objective)
    return Instance(Problem(objective), np.zeros(2, np.float32), -0.25, np.array([0.0, 1.0]))


def build_circle(*, sigma: float) -> Instance:
    """On the unit circle."""
    if sigma:
        objective = E(noisy_circle_objective, over=gaussian(sigma, (), role="objective"))
        constraint = E(noisy_circle, over=gaussian(sigma, (), role="constraint")) == 0
    else:
        objective, constraint = E(circle_objective), E(circle) == 0
    solution = np.full(2, 0.5**0.5)
    return Instance(Problem(objective, {"circle": constraint}), np.array([1, 0], np.float32), -0.25, solution)


PROBLEMS = (
    Entry("saddles/strict", build_free, "A strict saddle in the plane, started on it", {"sigma": SIGMA}),
    Entry("saddles/circle", build_circle, "A strict saddle on the unit circle, started on it", {"sigma": SIGMA}),
)

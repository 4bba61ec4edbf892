"""Hock-Schittkowski with noise: min E[f(x) + sigma xi'x]  s.t.  E[c(x) + sigma (zeta + Z x)] = 0.

xi, zeta and Z are standard Gaussian: the noise has mean zero, so minimisers are those of the classics, and it moves
gradients as well as values. With sigma = 0 all terms are deterministic. Problems 6, 7, 26, 39 and 40 of W. Hock and
K. Schittkowski, Test Examples for Nonlinear Programming Codes, Springer 1981, with their start points and optima.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ..problem import E, Problem
from .named import Entry, Instance
from .noise import SIGMA, gaussian


@dataclass(frozen=True)
class Classic:
    """A problem of the collection: objective, equations c(x) = 0, start, optimum and a minimiser."""

    objective: Callable
    equations: Callable
    x0: tuple[float, ...]
    optimum: float
    solution: tuple[float, ...]

    @functools.cached_property
    def noisy_objective(self) -> Callable:
        """F(x, xi), xi already scaled by sigma."""
        return lambda x, xi: self.objective(x) + xi @ x

    @functools.cached_property
    def noisy_equations(self) -> Callable:
        """C(x, (zeta, Z)), both already scaled by sigma."""
        return lambda x, noise: self.equations(x) + noise[0] + noise[1] @ x


CLASSICS = {
    6: Classic(
        lambda x: (1 - x[0]) ** 2,
        lambda x: jnp.stack([10 * (x[1] - x[0] ** 2)]),
        x0=(-1.2, 1),
        optimum=0.0,
        solution=(1, 1),
    ),
    7: Classic(
        lambda x: jnp.log1p(x[0] ** 2) - x[1],
        lambda x: jnp.stack([(1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4]),
        x0=(2, 2),
        optimum=-(3**0.5),
        solution=(0, 3**0.5),
    ),
    26: Classic(
        lambda x: (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4,
        lambda x: jnp.stack([(1 + x[1] ** 2) * x[0] + x[2] ** 4 - 3]),
        x0=(-2.6, 2, 2),
        optimum=0.0,
        solution=(1, 1, 1),
    ),
    39: Classic(
        lambda x: -x[0],
        lambda x: jnp.stack([x[1] - x[0] ** 3 - x[2] ** 2, x[0] ** 2 - x[1] - x[3] ** 2]),
        x0=(2, 2, 2, 2),
        optimum=-1.0,
        solution=(1, 1, 0, 0),
    ),
    40: Classic(
        lambda x: -x[0] * x[1] * x[2] * x[3],
        lambda x: jnp.stack([x[0] ** 3 + x[1] ** 2 - 1, x[0] ** 2 * x[3] - x[2], x[3] ** 2 - x[1]]),
        x0=(0.8, 0.8, 0.8, 0.8),
        optimum=-0.25,
        solution=(2 ** (-1 / 3), 2 ** (-1 / 2), 2 ** (-11 / 12), 2 ** (-1 / 4)),
    ),
}


def build(number: int, *, sigma: float) -> Instance:
    """A classic with noise of the given size."""
    classic = CLASSICS[number]
    n, m = len(classic.x0), jax.eval_shape(classic.equations, np.asarray(classic.x0)).size
    if sigma == 0:
        problem = Problem(E(classic.objective), {"equations": E(classic.equations) == 0})
    else:
        problem = Problem(
            E(classic.noisy_objective, over=gaussian(sigma, (n,))),
            {"equations": E(classic.noisy_equations, over=gaussian(sigma, (m,), (m, n))) == 0},
        )
    return Instance(problem, np.array(classic.x0, np.float32), classic.optimum, np.array(classic.solution, float))


PROBLEMS = tuple(
    Entry(
        f"hock-schittkowski/{number}",
        functools.partial(build, number),
        f"Problem {number} of Hock and Schittkowski, with noise on values and gradients",
        {"sigma": SIGMA},
    )
    for number in CLASSICS
)

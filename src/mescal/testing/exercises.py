"""Small problems with known minimisers, on which methods are tried.

    centre       min E|x - a|^2 / 2                                 x* = abar
    nearest      min E|x - a|^2 / 2   s.t.  E[b'x] <= r              x* = abar - lam bbar
    ellipsoid    min E|x - a|^2 / 2   s.t.  E[(b'x)^2] = 1           (I + 2 lam S) x* = abar,  x*'S x* = 1,  S = E[bb']
    cliff        min E[-x a],  not a number beyond x = 1             none
    ridge        min E[x'(D + s) x] / 2   s.t.  |x|^2 = 1            +- the axis of the smallest entry of D

Constraints are active, with multipliers of order 1, far from zero. The ridge starts on the axis of the largest entry of D, where
all is stationary and feasible, and curvature is negative.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from ..problem import E, Problem, stream

ROWS, D = 256, 3
RNG = np.random.default_rng(5)
A = (np.array([1.5, 1.0, -0.5]) + RNG.normal(size=(ROWS, D))).astype(np.float32)
B = (np.array([1.0, 0.5, 0.5]) + 0.5 * RNG.normal(size=(ROWS, D))).astype(np.float32)
HALF = 0.3 * RNG.normal(size=(ROWS // 2, D))
NOISE = np.concatenate([HALF, -HALF]).astype(np.float32)  # its mean is 0
AXES = np.array([3.0, 1.0, 2.0], np.float32)
BOUND = 0.5


@dataclass(frozen=True)
class Exercise:
    """A problem, a start, the objective and the multiplier of its minimiser, and that up to its signs where only these are open."""

    problem: Problem
    x0: np.ndarray
    solution: np.ndarray
    objective: float
    multiplier: float = 0.0
    constraint: str = ""
    samples: tuple = ()  # the rows of the objective and of the constraint

    def distance(self, x: Any) -> float:
        """Of x from the minimiser."""
        return float(np.linalg.norm(np.asarray(x, np.float64) - self.solution))


def distance(x, a):
    """|x - a|^2 / 2."""
    return (x - a) @ (x - a) / 2


def along(x, b):
    """b'x."""
    return b @ x


def squared(x, b):
    """(b'x)^2."""
    return (b @ x) ** 2


def nearest(bound: float = BOUND, streamed: bool = False, functions: tuple = (distance, along)) -> Exercise:
    """The nearest point of a half-space."""
    objective, constraint = functions
    a, b = A.astype(np.float64).mean(axis=0), B.astype(np.float64).mean(axis=0)
    multiplier = float((b @ a - bound) / (b @ b))
    assert multiplier > 0
    over = [stream(rows) if streamed else rows for rows in (A, B)]
    problem = Problem(E(objective, over=over[0]), {"along": E(constraint, over=over[1]) <= bound})
    x = a - multiplier * b
    return Exercise(problem, np.zeros(D, np.float32), x, _value(x), multiplier, "along", (A, B))


def centre() -> Exercise:
    """A mean: no constraint, no bound."""
    x = A.astype(np.float64).mean(axis=0)
    return Exercise(Problem(E(distance, over=A)), np.zeros(D, np.float32), x, _value(x), samples=(A, B))


def ellipsoid() -> Exercise:
    """The nearest point of an ellipsoid: an equality that is not convex."""
    a, s = A.astype(np.float64).mean(axis=0), (B.T.astype(np.float64) @ B) / ROWS

    def at(multiplier: float) -> np.ndarray:
        return np.linalg.solve(np.eye(D) + 2 * multiplier * s, a)

    multiplier = float(brentq(lambda lam: at(lam) @ s @ at(lam) - 1, 0, 100))  # pyright: ignore[reportArgumentType]
    assert multiplier > 0
    problem = Problem(E(distance, over=A), {"squared": E(squared, over=B) == 1})
    x = at(multiplier)
    return Exercise(problem, np.ones(D, np.float32), x, _value(x), multiplier, "squared", (A, B))


def cliff() -> Problem:
    """Downhill towards x = 1, beyond which nothing is a number."""
    return Problem(E(_cliff, over=np.ones((40, 1), np.float32)))


def ridge() -> Exercise:
    """A quadratic form on the sphere, from the axis on which it is largest."""
    axis = int(np.argmin(AXES))
    problem = Problem(E(_form, over=NOISE), {"sphere": E(_norm) == 1})
    start = np.eye(D, dtype=np.float32)[int(np.argmax(AXES))]
    return Exercise(problem, start, np.eye(D)[axis], float(AXES[axis]) / 2, -float(AXES[axis]) / 2, "sphere")


def _value(x: np.ndarray) -> float:
    return float(np.mean(np.sum((x - A.astype(np.float64)) ** 2, axis=1)) / 2)


def _cliff(x, a):
    return jnp.where(x[0] > 1, jnp.nan, -x[0] * a[0])


def _form(x, s):
    return (x * x) @ (jnp.asarray(AXES, x.dtype) + s) / 2


def _norm(x):
    return x @ x

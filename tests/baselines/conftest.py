"""Small problems with known minimisers, one in the class of every baseline.

    free         min E|x - a|^2 / 2                                            x* = abar
    convex       min E|x - a|^2 / 2   s.t.  E[b'x] <= r                        x* = abar - lam bbar
    nonconvex    min E|x - a|^2 / 2   s.t.  E[(b'x)^2] = 1, an ellipsoid       (I + 2 lam S) x* = abar,  x*'Sx* = 1

Constraints are active with multipliers of order 1, far from zero.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import mescal
from mescal import E, baselines

ROWS, D = 256, 3
RNG = np.random.default_rng(5)
A = (np.array([1.5, 1.0, -0.5]) + RNG.normal(size=(ROWS, D))).astype(np.float32)
B = (np.array([1.0, 0.5, 0.5]) + 0.5 * RNG.normal(size=(ROWS, D))).astype(np.float32)
BOUND = 0.5
TOLERANCE = {"penalty-storm": 0.05}  # its work is of order eps^-5, with O(1) thetas a step: 6e5 here, and 7e6 at 0.02


def distance(x, a):
    return (x - a) @ (x - a) / 2


def along(x, b):
    return b @ x


def squared(x, b):
    return (b @ x) ** 2


@dataclass(frozen=True)
class Known:
    """A problem, a start, its minimiser and multiplier."""

    problem: Any
    x0: np.ndarray
    solution: np.ndarray
    multiplier: float
    objective: float
    constraint: str | None
    slope: float  # |J| at the minimiser
    mean: "Known | None" = None  # the same on populations of one row, their means: no noise

    def solve(self, baseline: Any, **changes: Any) -> mescal.Result:
        """With the tolerance of the method and a budget that is never needed."""
        chosen = baselines.get(baseline) if isinstance(baseline, str) else baseline
        asked: dict[str, Any] = {"tol": TOLERANCE.get(chosen.name, 0.01), "max_work": 2e7} | changes
        return chosen.minimize(self.problem, self.x0, **asked)


def value(x):
    return float(np.mean(np.sum((x - A.astype(np.float64)) ** 2, axis=1)) / 2)


@pytest.fixture(scope="session")
def convex() -> Known:
    a, b = A.astype(np.float64).mean(axis=0), B.astype(np.float64).mean(axis=0)
    lam = (b @ a - BOUND) / (b @ b)
    assert lam > 0.5
    x0, x = np.zeros(D, np.float32), a - lam * b
    rest = (x0, x, lam, value(x), "along", float(np.linalg.norm(b)))
    exact, sampled = (
        mescal.Problem(E(distance, over=rows), {"along": E(along, over=other) <= BOUND})
        for rows, other in ((A.mean(axis=0, keepdims=True), B.mean(axis=0, keepdims=True)), (A, B))
    )
    return Known(sampled, *rest, mean=Known(exact, *rest))


@pytest.fixture(scope="session")
def nonconvex() -> Known:
    a, s = A.astype(np.float64).mean(axis=0), (B.T.astype(np.float64) @ B) / ROWS

    def at(lam: float) -> np.ndarray:
        return np.linalg.solve(np.eye(D) + 2 * lam * s, a)

    lam = float(brentq(lambda lam: at(lam) @ s @ at(lam) - 1, 0, 100))  # pyright: ignore[reportArgumentType]
    assert lam > 0.25
    x = at(lam)
    problem = mescal.Problem(E(distance, over=A), {"squared": E(squared, over=B) == 1})
    slope = float(np.linalg.norm(2 * s @ x))
    return Known(problem, np.ones(D, np.float32), x, lam, value(x), "squared", slope)


@pytest.fixture(scope="session")
def free() -> Known:
    x = A.astype(np.float64).mean(axis=0)
    return Known(mescal.Problem(E(distance, over=A)), np.zeros(D, np.float32), x, 0.0, value(x), None, 0.0)


@pytest.fixture(scope="session")
def known(convex, nonconvex, free):
    """The problem of a baseline's class, by the baseline's name."""
    return {
        name: next(at for at in (nonconvex, convex, free) if baselines.get(name).declines(at.problem) is None)
        for name in baselines.names()
    }


@pytest.fixture(scope="session")
def solved(known):
    """By name; solved when first asked for."""

    class Solved(dict):
        def __missing__(self, name):
            self[name] = known[name].solve(name)
            return self[name]

    return Solved()

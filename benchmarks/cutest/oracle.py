"""What a method of somebody else sees of a noisy problem: NumPy arrays, batches of fresh draws, and a budget that is kept for it.

The mean over N draws of the noise model is f(x) + s xi'x and c(x) + s (zeta + Z x) with Gaussian entries of deviation
s = sigma/sqrt(N), so that a batch of any size costs one evaluation of f and c; its price is N all the same.
"""

import time
import zlib
from typing import NamedTuple

import numpy as np

from ..harness.functions import Functions
from ..harness.task import Budget
from .noisy import Instance


class Exhausted(Exception):
    """The budget is spent: the run ends at the last point that was asked for, with no claim."""


class Look(NamedTuple):
    """Means over a batch: f, its gradient, c and its Jacobian (m, n)."""

    objective: float
    gradient: np.ndarray
    constraint: np.ndarray
    jacobian: np.ndarray


class Oracle:
    """A problem min E[F] s.t. E[C] = 0, low <= x <= high, by its samples.

    `name`, `n`, `m`, `x0`, `low`, `high` and `tol` say what is to be solved; `draw` is the only way to learn of it. `work` is
    what was spent of `budget`: per sample, 1 for a look and 2 for a Hessian product.
    """

    def __init__(self, instance: Instance, noise: float, seed: int, tol: float, budget: Budget):
        self.name, self.n, self.m = instance.name, instance.n, instance.m
        self.x0, self.low, self.high = (np.array(a, np.float64) for a in (instance.x0, instance.low, instance.high))
        self.noise, self.tol, self.budget = noise, tol, budget.work
        self.work, self.last = 0.0, self.x0.copy()
        self._functions = Functions(instance.exact, self.x0)
        self._functions.first(self.x0)  # compiled before the clock starts
        self._rng = np.random.default_rng([seed, zlib.crc32(instance.name.encode())])
        self._end = time.monotonic() + budget.seconds

    def draw(self, count: int) -> "Batch":
        """That many fresh draws of the noise, to be looked at from any number of points."""
        if int(count) != count or count < 1:
            raise ValueError(
                f"a batch of {count} draws.\n  Expected: a whole number of at least 1.\n"
                "  What to do: round the size of the batch."
            )
        scale = self.noise / np.sqrt(count)
        normal = self._rng.standard_normal
        return Batch(self, int(count), scale * normal(self.n), scale * normal(self.m), scale * normal((self.m, self.n)))

    def pay(self, x: np.ndarray, price: float) -> np.ndarray:
        """Charge for something at x; beyond the budget nothing is told."""
        if self.work + price > self.budget or time.monotonic() > self._end:
            raise Exhausted
        self.work += price
        self.last = np.array(x, np.float64).reshape(self.n)
        return self.last


class Batch:
    """Draws that stay the same while x moves."""

    def __init__(self, oracle: Oracle, count: int, xi: np.ndarray, zeta: np.ndarray, z: np.ndarray):
        self.count = count
        self._oracle, self._xi, self._zeta, self._z = oracle, xi, zeta, z

    def look(self, x: np.ndarray) -> Look:
        """Everything of first order at x; its price is the size of the batch."""
        x = self._oracle.pay(x, self.count)
        f, c, gradient, jacobian = self._oracle._functions.first(x)
        return Look(f + float(self._xi @ x), gradient + self._xi, c + self._zeta + self._z @ x, jacobian + self._z)

    def hessian(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """F'' + sum_j weights_j C_j'' at x, dense: n products."""
        x = self._oracle.pay(x, 2 * self._oracle.n * self.count)
        return self._oracle._functions.hessian(x, 1.0, np.asarray(weights, np.float64).reshape(self._oracle.m))

    def hessian_product(self, x: np.ndarray, weights: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The same, times v."""
        x = self._oracle.pay(x, 2 * self.count)
        weights = np.asarray(weights, np.float64).reshape(self._oracle.m)
        return self._oracle._functions.hessian_operator(x, 1.0, weights).matvec(np.asarray(v, np.float64))

"""The functions of a problem as peers see them: exact in float64 for deterministic ones, means over batches for training.

Rows of c keep the problem's order; inequalities are c <= 0. Every call is compiled once, before a clock starts.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse.linalg import LinearOperator

import mescal
from mescal.oracle import look
from mescal.oracle.draw import draw_rows
from mescal.problem import Program


class First(NamedTuple):
    """f, c and their first derivatives."""

    objective: float
    constraint: np.ndarray
    gradient: np.ndarray
    jacobian: np.ndarray


class Functions:
    """Exact functions of a problem on finite data, with Hessians; counts what is asked of it."""

    def __init__(self, problem: mescal.Problem, x0: np.ndarray, per_pass: int = 1):
        self.problem, self.per_pass = problem, per_pass
        with jax.enable_x64(True):
            self.x0 = np.asarray(x0, np.float64)
            self.program, _ = problem.bind(self.x0)
            self.data = problem.device_data(self.program, np.float64)
        self.inequality = np.asarray(self.program.layout.inequality, bool)
        self.m = self.program.layout.size
        self.passes, self.products = 0, 0
        self._first, self._hessian, self._product = _compiled(self.program)
        self._last: tuple[np.ndarray, First] | None = None

    @property
    def work(self) -> float:
        """Gradients + 2 Hessian products, per sample."""
        return float((self.passes + 2 * self.products) * self.per_pass)

    def reset(self):
        """Count from zero."""
        self.passes, self.products, self._last = 0, 0, None

    def first(self, x: np.ndarray) -> First:
        """Everything of first order at x; asked twice in a row for one point, it is computed once."""
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1]
        self.passes += 1
        with jax.enable_x64(True):
            objective, *rest = self._first(self.data, np.asarray(x, np.float64))
            found = First(float(objective), *(np.asarray(part) for part in rest))
        self._last = (np.array(x, np.float64), found)
        return found

    def hessian(self, x: np.ndarray, factor: float, weights: np.ndarray) -> np.ndarray:
        """factor f'' + sum_j weights_j c_j'', dense: one Hessian product per variable."""
        self.products += self.x0.size
        with jax.enable_x64(True):
            arguments = (np.asarray(a, np.float64) for a in (x, factor, weights))
            return np.asarray(self._hessian(self.data, *arguments))

    def hessian_operator(self, x: np.ndarray, factor: float, weights: np.ndarray) -> LinearOperator:
        """The same as an operator: a Hessian product each time it is applied."""
        with jax.enable_x64(True):
            point, factors = np.asarray(x, np.float64), (np.float64(factor), np.asarray(weights, np.float64))

        def product(v):
            self.products += 1
            with jax.enable_x64(True):
                return np.asarray(self._product(self.data, point, *factors, np.asarray(v, np.float64).ravel()))

        return LinearOperator((x.size, x.size), matvec=product, dtype=np.float64)  # pyright: ignore[reportCallIssue]

    def bounds(self) -> tuple[Any, Any]:
        """Lower and upper bounds of the variables."""
        domain = self.problem.domain
        shape = self.x0.shape
        if isinstance(domain, mescal.sets.Box):
            low, high = (np.asarray(jax.tree.leaves(side)[0], np.float64) for side in (domain.low, domain.high))
            return np.broadcast_to(low, shape), np.broadcast_to(high, shape)
        if isinstance(domain, mescal.sets.NonNegative):
            return np.zeros(shape), np.full(shape, np.inf)
        if isinstance(domain, mescal.sets.Reals):
            return np.full(shape, -np.inf), np.full(shape, np.inf)
        raise ValueError(f"a domain of type {type(domain).__name__}, where peers know bounds alone")


def _compiled(program: Program):
    """First order and Hessian as compiled functions of data and point; data are arguments, never constants."""

    def first(data, x):
        at = look.linearise(program, data, x)
        return at.objective, at.constraint, at.gradient, at.jacobian

    def hessian(data, x, factor, weights):
        return look.hessian(program, data, x, factor, weights)

    def product(data, x, factor, weights, v):
        return look.products(program, data, x, factor, weights, v[:, None])[:, 0]

    return jax.jit(first), jax.jit(hessian), jax.jit(product)


class Batches:
    """Means over n fresh samples in float32, as training loops see a problem: (f, c) and its derivative, one row each."""

    def __init__(self, problem: mescal.Problem, x0: np.ndarray, n: int):
        self.n = n
        program, _ = problem.bind(np.asarray(x0, np.float32), dtype=np.float32)
        self._data = problem.device_data(program, np.float32)
        self._key = jax.random.key(0, impl="threefry2x32")

        def means(data, key, seed, step, x):
            rows = draw_rows(program, data, jax.random.fold_in(jax.random.fold_in(key, seed), step), 0, n)

            def outputs(y):
                f, c = program.evaluate(y, rows, n)
                return jnp.concatenate([jnp.mean(f)[None], jnp.mean(c, axis=0)])

            values, pull = jax.vjp(outputs, x)
            return values, jax.vmap(lambda e: pull(e)[0])(jnp.eye(values.size, dtype=x.dtype))

        self._means = jax.jit(means)

    def __call__(self, seed: int, step: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The batch that seed and step name, at x."""
        values, rows = self._means(self._data, self._key, np.uint32(seed), np.uint32(step), x)
        return np.array(values), np.array(rows)


def domain_is_bounds(problem: mescal.Problem) -> str | None:
    """Why a peer that knows only bounds cannot take the problem; None where it can."""
    known: tuple[Any, ...] = (mescal.sets.Box, mescal.sets.NonNegative, mescal.sets.Reals)
    return None if isinstance(problem.domain, known) else f"its domain is {type(problem.domain).__name__}"

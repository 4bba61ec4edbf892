"""POUNCE: Ipopt's interior-point method ported to Rust, with exact gradients and Jacobians.

Exact Hessians where the problem is small, its limited-memory model otherwise. Its stopping test, `tol`, bounds the largest
entry of the scaled optimality error, as Ipopt's does: it is set to tol / sqrt(n), all else as documented.
"""

# It comes with the extra `peers`, which not every environment has.
# pyright: reportMissingImports=false

import numpy as np
import pounce

from ..harness.functions import Functions
from ..harness.task import Answer, Task
from ._deterministic import Deterministic, Exhausted, small

FREE = 2e19  # beyond 1e19 a bound is none


class _Functions:
    """The problem in the interface of cyipopt; once the budget is spent it shows what was seen last, and asks for the end."""

    def __init__(self, functions: Functions, charged):
        self._functions, self._charged = functions, charged
        self._known = charged(functions.x0)
        self.broke: list[Exhausted] = []
        if small(functions):  # found by its name, so that it is there only where it may be asked for
            self.hessian = self._hessian

    def _at(self, x: np.ndarray):
        if not self.broke:
            try:
                self._known = self._charged(np.array(x))
            except Exhausted as end:
                self.broke.append(end)
        return self._known

    def objective(self, x) -> float:
        return self._at(x).objective

    def gradient(self, x) -> np.ndarray:
        return self._at(x).gradient

    def constraints(self, x) -> np.ndarray:
        return self._at(x).constraint

    def jacobian(self, x) -> np.ndarray:
        return self._at(x).jacobian.ravel()

    def hessianstructure(self):
        return np.tril_indices(self._functions.x0.size)

    def _hessian(self, x, weights, factor) -> np.ndarray:
        self._at(x)
        n = self._functions.x0.size
        dense = np.eye(n) if self.broke else self._functions.hessian(np.array(x), float(factor), np.asarray(weights))
        return dense[np.tril_indices(n)]

    def intermediate(self, *progress) -> bool:
        return not self.broke


def _solve(functions: Functions, task: Task, charged) -> Answer:
    n, m = functions.x0.size, functions.m
    shown = _Functions(functions, charged)
    low, high = (np.clip(side, -FREE, FREE) for side in functions.bounds())
    below = np.where(functions.inequality, -FREE, 0.0)
    problem = pounce.Problem(n=n, m=m, problem_obj=shown, lb=low, ub=high, cl=below, cu=np.zeros(m))
    problem.add_option("tol", task.tol / np.sqrt(n))
    problem.add_option("max_iter", 10_000)
    problem.add_option("print_level", 0)
    problem.add_option("sb", "yes")
    if not small(functions):
        problem.add_option("hessian_approximation", "limited-memory")
    x, about = problem.solve(x0=functions.x0)
    if shown.broke:
        raise shown.broke[0]
    return Answer(np.asarray(x), int(about["status"]) == 0, str(about["status_msg"]), 0.0, 0.0)


METHODS = (Deterministic("POUNCE", _solve),)

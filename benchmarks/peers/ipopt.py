"""Ipopt through casadi: an interior-point method with a filter line search, exact gradients and Jacobians.

Exact Hessians where the problem is small, its limited-memory model otherwise. Its own stopping test, `tol`, bounds the
largest entry of the scaled optimality error: it is set to tol / sqrt(n), all else as documented.
"""

from typing import Any

import casadi
import numpy as np

from ..harness.functions import Functions
from ..harness.task import Answer, Task
from ._deterministic import Deterministic, Exhausted, small


class _Part(casadi.Callback):
    """A function of x, or of (x, factor, weights), given by Python."""

    def __init__(self, name: str, inputs: list[tuple[int, int]], output: tuple[int, int], evaluate, jacobian=None):
        casadi.Callback.__init__(self)
        self._inputs, self._output, self._evaluate, self._jacobian = inputs, output, evaluate, jacobian
        self.construct(name, {})

    def get_n_in(self):
        return len(self._inputs)

    def get_n_out(self):
        return 1

    def get_sparsity_in(self, i):
        return casadi.Sparsity.dense(*self._inputs[i])

    def get_sparsity_out(self, i):
        return casadi.Sparsity.dense(*self._output)

    def eval(self, arg):
        return [
            casadi.DM(np.asarray(self._evaluate(*(np.asarray(a, float).ravel() for a in arg))).reshape(self._output))
        ]

    def has_jacobian(self):
        return self._jacobian is not None

    def get_jacobian(self, name, inames, onames, opts):
        n, rows, jacobian = self._inputs[0][0], self._output[0], self._jacobian
        assert jacobian is not None
        self._derivative = _Part(name, [(n, 1), self._output], (rows, n), lambda x, out: jacobian(x))
        return self._derivative


def _solve(functions: Functions, task: Task, charged) -> Answer:
    n, m = functions.x0.size, functions.m
    broke: list[Exhausted] = []
    known = charged(functions.x0)

    def looked(x):
        """Ipopt cannot be left by an exception: once the budget is spent, it is shown what it saw last and then stopped."""
        nonlocal known
        if not broke:
            try:
                known = charged(x)
            except Exhausted as end:
                broke.append(end)
        return known

    x = casadi.MX.sym("x", n)
    f = _Part("f", [(n, 1)], (1, 1), lambda x: looked(x).objective, lambda x: looked(x).gradient[None])
    parts: list[Any] = [f]  # kept alive: casadi holds no reference to a Python function
    problem = {"x": x, "f": f(x)}
    if m:
        g = _Part("g", [(n, 1)], (m, 1), lambda x: looked(x).constraint, lambda x: looked(x).jacobian)
        parts.append(g)
        problem["g"] = g(x)
    accuracy = task.tol / np.sqrt(n)
    options: dict[str, Any] = {
        "ipopt": {"tol": accuracy, "print_level": 0, "sb": "yes", "max_iter": 10_000},
        "print_time": False,
        "show_eval_warnings": False,
        "error_on_fail": False,
    }
    if small(functions):
        shapes = [(n, 1), (0, 0), (1, 1), (m, 1)]

        def lagrangian(x, _, factor, weights):
            looked(x)
            return np.eye(n) if broke else np.triu(functions.hessian(x, float(factor[0]), weights))

        hessian = _Hessian("curvature", shapes, n, lagrangian)
        parts.append(hessian)
        options["hess_lag"] = hessian
    else:
        options["ipopt"]["hessian_approximation"] = "limited-memory"
    stop = _Stop(n, m, broke)
    options["iteration_callback"] = stop
    low, high = functions.bounds()
    solver = casadi.nlpsol("solver", "ipopt", problem, options)
    arguments = {"x0": functions.x0, "lbx": low, "ubx": high}
    if m:
        arguments |= {"lbg": np.where(functions.inequality, -np.inf, 0.0), "ubg": np.zeros(m)}
    found = solver(**arguments)
    stats = solver.stats()
    if broke:
        raise broke[0]
    return Answer(
        np.asarray(found["x"]).ravel(),
        bool(stats["success"]),
        str(stats["return_status"]),
        0.0,
        0.0,
        details={"iterations": int(stats["iter_count"])},
    )


class _Stop(casadi.Callback):
    """Called after every iteration with all that Ipopt knows; 1 ends the run."""

    def __init__(self, n: int, m: int, broke: list[Exhausted]):
        casadi.Callback.__init__(self)
        self._sizes = {"x": n, "f": 1, "g": m, "lam_x": n, "lam_g": m, "lam_p": 0}
        self._broke = broke
        self.construct("stop", {})

    def get_n_in(self):
        return casadi.nlpsol_n_out()

    def get_n_out(self):
        return 1

    def get_name_in(self, i):
        return casadi.nlpsol_out(i)

    def get_name_out(self, i):
        return "ret"

    def get_sparsity_in(self, i):
        size = self._sizes[casadi.nlpsol_out(i)]
        return casadi.Sparsity.dense(size, 1) if size else casadi.Sparsity(0, 0)

    def eval(self, arg):
        return [1 if self._broke else 0]


class _Hessian(_Part):
    """The upper triangle of the Lagrangian's Hessian, as Ipopt's interface wants it: (x, p, factor, weights)."""

    def __init__(self, name: str, inputs: list[tuple[int, int]], n: int, evaluate):
        self._n = n
        super().__init__(name, inputs, (n, n), evaluate)

    def get_sparsity_out(self, i):
        return casadi.Sparsity.upper(self._n)

    def eval(self, arg):
        dense = self._evaluate(*(np.asarray(a, float).ravel() for a in arg))
        return [casadi.project(casadi.DM(dense), casadi.Sparsity.upper(self._n))]


METHODS = (Deterministic("Ipopt", _solve),)

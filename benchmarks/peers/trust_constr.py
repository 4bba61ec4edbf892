"""scipy's trust-constr: a trust-region interior-point SQP, exact gradients and Jacobians.

Exact Hessians, dense where the problem is small and by products otherwise. Its own stopping test, `gtol`, bounds the largest
entry of the Lagrangian's gradient and does not look at complementarity: with it at the tolerance the method declares victory
away from active bounds, so `gtol` and `barrier_tol` are a hundredth of tol / sqrt(n). All else as documented.
"""

import warnings

import numpy as np
import scipy.optimize

from ..harness.functions import Functions
from ..harness.task import Answer, Task
from ._deterministic import Deterministic, small


def _solve(functions: Functions, task: Task, charged) -> Answer:
    hessian = functions.hessian if small(functions) else functions.hessian_operator
    zero = np.zeros(functions.m)
    constraints = []
    if functions.m:
        constraints.append(
            scipy.optimize.NonlinearConstraint(
                lambda x: charged(x).constraint,
                np.where(functions.inequality, -np.inf, 0.0),
                0.0,
                jac=lambda x: charged(x).jacobian,  # pyright: ignore[reportArgumentType]
                hess=lambda x, v: hessian(x, 0.0, v),
            )
        )
    low, high = functions.bounds()
    accuracy = task.tol / np.sqrt(functions.x0.size) / 100
    bounded = np.isfinite(low).any() or np.isfinite(high).any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of quasi-Newton updates that are skipped
        found = scipy.optimize.minimize(
            lambda x: (charged(x).objective, charged(x).gradient),
            functions.x0,
            jac=True,
            hess=lambda x: hessian(x, 1.0, zero),
            method="trust-constr",
            bounds=scipy.optimize.Bounds(low, high) if bounded else None,
            constraints=constraints,
            options={"gtol": accuracy, "barrier_tol": accuracy, "maxiter": 10_000},
        )
    status = {0: "evaluation limit", 1: "gtol met", 2: "xtol met", 3: "stopped"}[int(found.status)]
    return Answer(found.x, int(found.status) in (1, 2), status, 0.0, 0.0, details={"iterations": int(found.nit)})


METHODS = (Deterministic("trust-constr", _solve, products=True),)

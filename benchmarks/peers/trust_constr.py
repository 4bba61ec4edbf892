"""scipy's trust-constr: a trust-region interior-point SQP, exact gradients and Jacobians.

Exact Hessians where the problem is small, scipy's default BFGS models otherwise. Its own stopping test, `gtol`, is set to
the tolerance: it bounds the largest entry of the Lagrangian's gradient, so it is divided by sqrt(n); `barrier_tol` likewise.
The test does not look at complementarity, so the barrier parameter starts at a tenth of that: from its default of 0.1 the
method declares victory away from active bounds.
"""

import warnings

import numpy as np
import scipy.optimize

from ..harness.task import Answer, Task
from ._deterministic import Deterministic, small
from .functions import Functions


def _solve(functions: Functions, task: Task, charged) -> Answer:
    exact = small(functions)
    zero = np.zeros(functions.m)
    constraints = []
    if functions.m:
        constraints.append(
            scipy.optimize.NonlinearConstraint(
                lambda x: charged(x).constraint,
                np.where(functions.inequality, -np.inf, 0.0),
                0.0,
                jac=lambda x: charged(x).jacobian,  # pyright: ignore[reportArgumentType]
                hess=(lambda x, v: functions.hessian(x, 0.0, v)) if exact else scipy.optimize.BFGS(),
            )
        )
    low, high = functions.bounds()
    accuracy = task.tol / np.sqrt(functions.x0.size)
    bounded = np.isfinite(low).any() or np.isfinite(high).any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of quasi-Newton updates that are skipped
        found = scipy.optimize.minimize(
            lambda x: (charged(x).objective, charged(x).gradient),
            functions.x0,
            jac=True,
            hess=(lambda x: functions.hessian(x, 1.0, zero)) if exact else scipy.optimize.BFGS(),
            method="trust-constr",
            bounds=scipy.optimize.Bounds(low, high) if bounded else None,
            constraints=constraints,
            options={
                "gtol": accuracy,
                "barrier_tol": accuracy,
                "initial_barrier_parameter": accuracy / 10,
                "initial_barrier_tolerance": accuracy / 10,
                "maxiter": 10_000,
            },
        )
    status = {0: "evaluation limit", 1: "gtol met", 2: "xtol met", 3: "stopped"}[int(found.status)]
    return Answer(found.x, int(found.status) in (1, 2), status, 0.0, 0.0, details={"iterations": int(found.nit)})


METHODS = (Deterministic("trust-constr", _solve),)

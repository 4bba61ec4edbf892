"""scipy's SLSQP: sequential quadratic programming with a dense BFGS model, exact gradients and Jacobians.

Its stopping test is its own, on changes of the value and of the step, and `ftol` is its only knob: it is set to tol^2, since
the value near a minimiser changes by the square of what the gradient does, and to its default of 1e-6 where that is less.
"""

import numpy as np
import scipy.optimize

from ..harness.functions import Functions
from ..harness.task import Answer, Task
from ._deterministic import Deterministic


def _solve(functions: Functions, task: Task, charged) -> Answer:
    sign = np.where(functions.inequality, -1.0, 1.0)  # scipy's inequalities are >= 0
    groups = []
    for kind, rows in (("eq", ~functions.inequality), ("ineq", functions.inequality)):
        if rows.any():
            groups.append(
                {
                    "type": kind,
                    "fun": lambda x, rows=rows: (sign * charged(x).constraint)[rows],
                    "jac": lambda x, rows=rows: (sign[:, None] * charged(x).jacobian)[rows],
                }
            )
    low, high = functions.bounds()
    found = scipy.optimize.minimize(
        lambda x: (charged(x).objective, charged(x).gradient),
        functions.x0,
        jac=True,
        method="SLSQP",
        bounds=scipy.optimize.Bounds(low, high),
        constraints=groups,
        options={"ftol": min(1e-6, task.tol**2), "maxiter": 10_000},
    )
    return Answer(found.x, bool(found.success), str(found.message), 0.0, 0.0, details={"iterations": int(found.nit)})


METHODS = (Deterministic("SLSQP", _solve),)

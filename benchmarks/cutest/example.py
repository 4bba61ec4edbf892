"""A method of somebody else, as `python -m benchmarks.cutest benchmarks/cutest/example.py:solve` runs it.

An augmented Lagrangian on the average of a fixed number of draws, with SciPy's L-BFGS-B inside.
"""

import numpy as np
from scipy.optimize import minimize


def solve(oracle):
    """An answer is a point, or a dict of a point and of what else the format has."""
    batch, bounds = oracle.draw(3000), list(zip(oracle.low, oracle.high, strict=True))
    x, multipliers, penalty, before = oracle.x0, np.zeros(oracle.m), 10.0, np.inf

    def augmented(y):
        f, gradient, c, jacobian = batch.look(y)
        value = f + (multipliers + penalty / 2 * c) @ c
        return value, gradient + jacobian.T @ (multipliers + penalty * c)

    for _ in range(30):
        inner = minimize(augmented, x, jac=True, method="L-BFGS-B", bounds=bounds)
        x, c = inner.x, batch.look(inner.x).constraint
        multipliers = multipliers + penalty * c
        violation = np.linalg.norm(c)
        if violation <= oracle.tol / 10:
            return {"x": x, "claims": bool(inner.success), "multipliers": multipliers}
        penalty *= 5 if violation > before / 4 else 1
        before = violation
    return {"x": x, "claims": False, "status": "thirty rounds"}

"""The dual update of Algorithm 1:  lam+ = lam + min(al, gamma_k / |cbar|) cbar,  which stays at lam where cbar = 0.

gamma_k summable keeps |lam_k| <= |lam_0| + sum gamma for any noise; gamma = inf is the plain update, the default.
"""

import numpy as np


def complementary(multipliers: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """Multipliers that are zero where the slack is positive (NaN: an equality): the best choice there, lam s = 0."""
    return np.where(slack > 0, 0.0, multipliers)


def dual_step(multipliers: np.ndarray, constraint: np.ndarray, penalty: float, bound: float) -> np.ndarray:
    """The next multipliers."""
    size = float(np.linalg.norm(constraint))
    if size == 0:
        return multipliers
    return multipliers + min(penalty, bound / size) * constraint


def summable_bound(k: int, first_size: float) -> float:
    """gamma_k = (log 2)^2 |cbar(x_0)| / ((k+1) log(k+2)^2): the sequence of the iALM literature."""
    return float(np.log(2) ** 2 * first_size / ((k + 1) * np.log(k + 2) ** 2))

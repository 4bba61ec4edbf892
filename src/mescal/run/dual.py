"""Between two outer iterations: the dual update of Algorithm 1, and the penalty.

    lam+ = lam + min(al, gamma_k / |cbar|) cbar,  which stays at lam where cbar = 0;     al+ = beta al, or more

gamma_k summable keeps |lam_k| <= |lam_0| + sum gamma for any noise; gamma = inf is the plain update, the default.
"""

import numpy as np

SLOW = 0.5  # of the violation before: falling less than this, it asks for a larger penalty ...
RISE = 4.0  # ... by this factor, instead of the schedule's ...
BOLD = 10.0  # ... or by this one, where the solver takes exact Newton steps, which ill-conditioning does not shorten
LARGEST = (
    1e10  # that it rises to, in the solver's units: beyond, L is known to fewer digits than the tolerance asks for
)
FAR = 2.0  # natural sizes of the constraint: an inner solve that ends further from feasible ran away ...
RECOVER = 10.0  # ... and is repeated with a penalty larger by this factor ...
RETRIES = 12  # ... at most so often


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


def next_penalty(penalty: float, growth: float, violation: float, before: float, rise: float) -> float:
    """al_{k+1}: beta al_k, or `rise` times that where the violation fell by less than half."""
    rises = violation > SLOW * before and penalty * rise <= LARGEST
    return penalty * (max(rise, growth) if rises else growth)


def runaway_size(constraint: np.ndarray, sizes: np.ndarray) -> float:
    """The violation from which on an inner solve has run away, from c at the start and its natural sizes."""
    return FAR * float(np.linalg.norm(constraint) + np.linalg.norm(sizes))

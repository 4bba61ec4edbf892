"""The penalty between outer iterations: the schedule's factor, and when to be bolder than it."""

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


def next_penalty(penalty: float, growth: float, violation: float, before: float, rise: float) -> float:
    """al_{k+1}: beta al_k, or `rise` times that where the violation fell by less than half."""
    rises = violation > SLOW * before and penalty * rise <= LARGEST
    return penalty * (max(rise, growth) if rises else growth)


def runaway_size(constraint: np.ndarray, sizes: np.ndarray) -> float:
    """The violation from which on an inner solve has run away, from c at the start and its natural sizes."""
    return FAR * float(np.linalg.norm(constraint) + np.linalg.norm(sizes))

"""Automatic scaling: where the natural size of f or of a row of c at the start is far from 1, all of them are brought there.

Tolerances are scaled along, and everything that is reported is unscaled, so scaling changes the path and nothing else.
"""

from dataclasses import dataclass

import numpy as np

PLAIN = (1e-2, 1e2)  # where all sizes lie between these, nothing is scaled


@dataclass(frozen=True)
class Scales:
    """Factors on f and on the rows of c in the solver's units."""

    objective: float
    constraints: np.ndarray

    def multipliers(self, scaled: np.ndarray) -> np.ndarray:
        """Multipliers of the problem as stated."""
        return scaled * self.constraints / self.objective

    def scaled_multipliers(self, plain: np.ndarray) -> np.ndarray:
        """Multipliers in the solver's units."""
        return plain * self.objective / self.constraints

    def penalty(self, scaled: float) -> float:
        """The penalty of the problem as stated; of the row with the largest, where rows have different factors."""
        return scaled * self._row**2 / self.objective

    def scaled_penalty(self, plain: float) -> float:
        """The penalty in the solver's units."""
        return plain * self.objective / self._row**2

    @property
    def _row(self) -> float:
        return float(np.max(self.constraints, initial=0.0)) or 1.0


def choose_scales(objective: float, constraints: np.ndarray) -> Scales:
    """From the natural sizes of f and of the rows of c: all are brought to 1, or none where all are near it.

    Not some of them: a penalty al between f and c of size 1 is one of al S_f / S_c^2 in the problem's units, and a row
    left as it is beside a large f brought to 1 would have one of al S_f, and make an ill-conditioned subproblem.
    """
    sizes = np.asarray([objective, *constraints], np.float64)
    known = np.isfinite(sizes) & (sizes > 0)
    if np.all((PLAIN[0] <= sizes[known]) & (sizes[known] <= PLAIN[1])):
        return Scales(1.0, np.ones(sizes.size - 1))
    factors = 1 / np.where(known, sizes, 1.0)
    return Scales(float(factors[0]), factors[1:])

"""Automatic scaling: an objective and constraint rows whose natural size at the start is far from 1 are brought there.

Tolerances are scaled along, and everything that is reported is unscaled, so scaling changes the path and nothing else.
"""

from dataclasses import dataclass

import numpy as np

PLAIN = (1e-2, 1e2)  # sizes between these are left alone


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
    """From the natural sizes of f and of the rows of c."""
    return Scales(_factor(objective), np.asarray([_factor(float(size)) for size in constraints]))


def _factor(size: float) -> float:
    plain = size == 0 or not np.isfinite(size) or PLAIN[0] <= size <= PLAIN[1]
    return 1.0 if plain else 1.0 / size

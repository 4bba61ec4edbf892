"""What rounding makes of a certificate: errors of its measures from the bounds that travel with a look.

With bounds off_c, off_g, off_J on the entries of c, grad f and J, M on those of the Hessian of the Lagrangian at |lam|, all from
magnitudes (`oracle.rounding`), and P_T, which expands nothing:

- stationarity is off by at most  | off_g + |lam|' off_J + M|x| |;      c by  off_c, entry by entry;
- d'Hd by  |M| <= max_i sum_j M_ij  (M is symmetric and nonnegative), and in the augmented Lagrangian by al e (2 |A| + e) more,
  e = |off_J|;
- the null space of J by an angle, which `cones` works out from the lengths of off_J's rows.

A huge multiplier that turns rounding in J into a gradient brings that gradient's error with it.

How far a point is from feasible is what a user means by it, what is left of complementarity, and the paper's measure of both. With
slacks s >= 0 of the inequalities and r = c + s:

    violation = |v|, v_j = max(c_j, 0) for inequalities, c_j for equalities;    complementarity = |r - v|;    feasibility = |r|

An inequality that is met, c_j < 0, with a positive multiplier and so s_j = 0 violates nothing: its r_j = c_j is complementarity's.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..oracle.evaluator import Evaluator
from ..oracle.look import At
from .certificate import Measured
from .request import DEFAULT_TOLERANCE, Request, Settled
from .situation import Situation

# Compiled programs take numbers below the smallest normal one, 2^-1022, for zero: as many of them as a sum may hold make so much.
FLUSHED = 2.0**-980
NOTHING = 1e-6  # of a tolerance: errors that decide as little as those that are smaller


@dataclass(frozen=True, eq=False)
class Rounded:
    """Bounds on the errors of the measures at a point, due to rounding alone."""

    objective: float
    stationarity: float
    hessian: float
    jacobian: float

    @classmethod
    def at(cls, judge: Evaluator, request: Request, point: At, settled: Settled) -> "Rounded":
        """Of a point in the coordinates that are settled: a rough bound on what the Hessian is off by where that is nothing beside
        the tolerance.
        """
        found = cls._at(judge, request, point, settled, rough=True)
        tolerance = request.tolerance or DEFAULT_TOLERANCE
        small = found.stationarity <= NOTHING * tolerance.gradient and found.hessian <= NOTHING * tolerance.curvature
        return found if small else cls._at(judge, request, point, settled, rough=False)

    @classmethod
    def _at(cls, judge: Evaluator, request: Request, point: At, settled: Settled, rough: bool) -> "Rounded":
        off, multipliers, frame = point.rounding, settled.multipliers, settled.frame.magnitude
        found = judge.hessian_rounding(request.x, multipliers, rough, frame.outward(np.ones(request.x.size)))
        # where a derivative is infinite, nothing is known of what it multiplies: infinity times zero among it
        entries, moved = (np.nan_to_num(frame.slope(part), nan=np.inf) for part in found)
        slope = off.gradient + np.abs(multipliers) @ off.jacobian + moved
        return cls(
            objective=off.objective,
            stationarity=float(np.linalg.norm(slope)) * frame.loosened**0.5 + FLUSHED,
            hessian=float(entries.max(initial=0.0)) + FLUSHED,
            jacobian=float(np.linalg.norm(off.jacobian)),
        )

    def slope(self, lag: np.ndarray, point: At) -> float:
        """What stationarity is off by, that of scalars that `lag` behind c among it."""
        behind = np.linalg.norm(lag @ point.constraint) + np.linalg.norm(np.abs(lag) @ point.rounding.constraint)
        return self.stationarity + float(behind)

    def curvature(self, name: str, situation: Situation) -> float:
        """What curvatures on a cone are off by, the cone taken as it is."""
        if name != "whole" or not situation.rows.size:
            return self.hessian
        return self.hessian + situation.penalty * self.jacobian * (2 * situation.length + self.jacobian)


def widened(value: float, error: float, how: str) -> Measured:
    """A measure that is nonnegative, up to an error."""
    return Measured(float(value), max(0.0, float(value) - error), float(value) + error, how)


class Feasible(NamedTuple):
    """The three measures; feasibility^2 is the sum of the squares of the others."""

    feasibility: Measured
    violation: Measured
    complementarity: Measured


def feasible(
    constraint: np.ndarray, slack: np.ndarray, inequality: np.ndarray, off: np.ndarray, radius: float, how: str
) -> Feasible:
    """The measures where entries of c are off by at most `off` (rounding), and c as a whole by `radius` more (sampling).

    A violation of zero is proven where every inequality is met by more than its entry may be off.
    """
    residual = constraint + slack
    violated = np.where(inequality, np.maximum(constraint, 0), constraint)
    off = off + FLUSHED
    error = float(np.linalg.norm(off)) + radius
    entry = off + radius
    most = np.where(inequality, np.maximum(constraint + entry, 0), np.abs(constraint) + entry)
    violation = widened(float(np.linalg.norm(violated)), error, how)
    upper = min(violation.upper, float(np.linalg.norm(most)))
    return Feasible(
        feasibility=widened(float(np.linalg.norm(residual)), error, how),
        violation=Measured(violation.value, violation.lower, upper, how),
        complementarity=widened(float(np.linalg.norm(residual - violated)), error, how),
    )

"""What the start of a run says of its sizes, and the scales that follow.

    sizes: what f and the rows of c change by over a distance max(1, |x|), or between samples, whichever is more

A gradient alone would not do: it vanishes where a function saturates. Where the size of f or of a row of c is far from 1, all of
them are brought there. Tolerances are scaled along, and everything that is reported is unscaled, so scaling changes the path and
nothing else.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..oracle import Tally
from ..oracle.draw import words
from ..oracle.subproblem import Array, Subproblem
from ..solvers.reset import SMALLEST_RESET, sampled_look

PLAIN = (1e-2, 1e2)  # where all sizes lie between these, nothing is scaled
PROBE = 1e-2  # of max(1, |x|): how far along the gradient its change is looked at
SMALLEST_SMOOTHNESS = 1e-8  # where the gradient or the curvature along it vanishes; trust radius and descent take over


@dataclass(frozen=True)
class Scales:
    """Factors on f and on the rows of c in the solver's units, and how far bounds are moved inwards (`inward`), unscaled."""

    objective: float
    constraints: np.ndarray
    inward: np.ndarray

    @classmethod
    def plain(cls, rows: int) -> "Scales":
        """Nothing is scaled or moved."""
        return cls(1.0, np.ones(rows), np.zeros(rows))

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
        return Scales.plain(sizes.size - 1)
    factors = 1 / np.where(known, sizes, 1.0)
    return replace(Scales.plain(sizes.size - 1), objective=float(factors[0]), constraints=factors[1:])


@dataclass(frozen=True)
class Survey:
    """What was seen, in the units of the subproblem, which has not been scaled yet."""

    constraint: Array
    objective_size: float
    constraint_sizes: Array
    smoothness: float
    work: Tally

    @property
    def probe(self) -> np.ndarray:
        """What tells this problem from another one, for checkpoints."""
        return np.concatenate([[self.objective_size], self.constraint, self.constraint_sizes])


def survey(sub: Subproblem, z: Array, key: tuple[int, ...], smooth: bool = True) -> Survey:
    """Look at the start, and, where the smoothness is wanted, at a point a little further down, slacks at their best at both."""
    size = sub.parameters
    reach = max(1.0, float(np.linalg.norm(z[:size].astype(np.float64))))
    at, work = _look(sub, z, key)
    slope = at["slope"][:size]
    length, smoothness = float(np.linalg.norm(slope)), SMALLEST_SMOOTHNESS
    if smooth and np.isfinite(length) and length > 0:
        moved = z.astype(np.float64)
        moved[:size] -= PROBE * reach / length * slope
        there, more = _look(sub, moved.astype(z.dtype), key)
        bent = float(np.linalg.norm(there["slope"][:size] - slope)) / (PROBE * reach)
        smoothness, work = max(bent, SMALLEST_SMOOTHNESS) if np.isfinite(bent) else SMALLEST_SMOOTHNESS, work + more
    rows = np.linalg.norm(at["jacobian"][:, :size], axis=1) * reach
    return Survey(
        constraint=at["constraint"],
        objective_size=float(np.fmax(np.linalg.norm(at["gradient"][:size]) * reach, at["deviation"])),
        constraint_sizes=np.fmax(rows, at["rms"]),
        smoothness=smoothness,
        work=work,
    )


def _look(sub: Subproblem, z: Array, key: tuple[int, ...]) -> tuple[dict[str, Any], Tally]:
    """Gradient of f, of L, Jacobian and constraint; the deviation of samples of f and the root mean square of those of c."""
    if sub.looks is None:
        n = SMALLEST_RESET
        seen, work = sampled_look(sub.lagrangian, z, z, words(*key), np.int32(n))
        at = seen.estimate
        constraint = np.asarray(at.constraint, np.float64)
        return {
            "constraint": constraint,
            "gradient": np.asarray(at.objective_gradient, np.float64),
            "slope": _settled(sub, z, constraint, at.gradient, np.asarray(at.jacobian, np.float64)),
            "jacobian": np.asarray(at.jacobian, np.float64),
            "deviation": float(np.sqrt(n * float(at.objective_variance))),
            "rms": np.sqrt(n * np.asarray(at.constraint_variance, np.float64) + constraint**2),
        }, work.tally()
    before, size = sub.looks.tally, sub.parameters
    plain = sub.looks.at(z[:size].astype(np.float64), rounded=False)
    at = sub.lift(plain, z[size:].astype(np.float64))
    weight = sub.multipliers + sub.penalty * at.constraint
    mean, square = plain.moments[:, 0], plain.moments[:, 1]
    return {
        "constraint": at.constraint,
        "gradient": at.gradient,
        "slope": _settled(sub, z, at.constraint, at.gradient + weight @ at.jacobian, at.jacobian),
        "jacobian": at.jacobian,
        "deviation": float(np.sqrt(np.sum(np.maximum(square - mean**2, 0)))) if np.isfinite(square).all() else np.nan,
        "rms": np.sqrt(np.maximum(plain.squares, plain.constraint**2)),
    }, sub.looks.tally - before


def _settled(sub: Subproblem, z: Array, constraint: Array, gradient: Array, jacobian: Array) -> Array:
    """The gradient of L at z with slacks moved to their best: rows that are inactive there are no part of it."""
    if not sub.inequality.any():
        return np.asarray(gradient, np.float64)
    moved = (sub.settle(z, constraint) - z).astype(np.float64)
    return np.asarray(gradient, np.float64) + sub.penalty * (jacobian @ moved) @ jacobian

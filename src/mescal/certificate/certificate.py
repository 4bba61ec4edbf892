"""The certificate: three measures with error bounds, what they were computed from, and what to make of them."""

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..oracle.work import Tally
from .tolerance import Tolerance, as_tolerance


@dataclass(frozen=True)
class Measured:
    """A number with its error: `lower <= truth <= upper`, and `how` that is known."""

    value: float
    lower: float
    upper: float
    how: str

    @classmethod
    def exact(cls, value: float, how: str) -> "Measured":
        """A number without sampling error."""
        return cls(float(value), float(value), float(value), how)

    def __float__(self) -> float:
        return self.value

    def scaled(self, factor: float, how: str) -> "Measured":
        """The same measure in another unit."""
        return Measured(self.value * factor, self.lower * factor, self.upper * factor, how)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: an infinite value (an empty cone) becomes null, the sentence says why."""
        numbers = {name: _finite(getattr(self, name)) for name in ("value", "lower", "upper")}
        return numbers | {"how": self.how}

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return f"none ({self.how})" if self.lower == self.value else f"none, at least {self.lower:.3g} ({self.how})"
        if self.upper - self.lower <= 1e-9 * max(1e-3, abs(self.value)):
            return f"{self.value:.3g} ({self.how})"
        return f"{self.value:.3g} in [{self.lower:.3g}, {self.upper:.3g}] ({self.how})"


class Check(NamedTuple):
    """A measure and what a tolerance asks of it: its bound, error added, must stay within the limit.

    `met` is the answer; `refuted` says that the measure misses the limit with its error taken off, too.
    """

    name: str
    measured: Measured
    bound: float
    limit: float
    met: bool
    refuted: bool
    sign: str

    @property
    def sentence(self) -> str:
        """For people to read."""
        bound = f"{self.bound:.3g}" if np.isfinite(self.bound) else "none"
        return f"{self.name} {bound} ({self.sign} {self.limit:g})"


@dataclass(frozen=True)
class Certificate:
    """What `certify` found at a point: evidence for, or against, a second-order stationary point.

    - `stationarity`: |P_T(-(grad f + J' lam))| over parameters and slacks;
    - `feasibility`: |c(x) + s|;
    - `curvature`: the smallest curvature of the Lagrangian on `cone`; all three cones are in `curvatures`;
    - `relative_stationarity`: stationarity * max(1, |x|), which a flat region cannot fool;
    - `warnings`: sentences that a reader must not miss.
    """

    stationarity: Measured
    feasibility: Measured
    curvature: Measured
    relative_stationarity: Measured
    objective: Measured
    cone: str
    curvatures: dict[str, Measured]
    multipliers: dict[str, np.ndarray]
    slack: dict[str, np.ndarray]
    constraints: dict[str, np.ndarray]
    complementarity: float
    dual_sign: float
    jacobian_singular: float
    multiplier_norm: float
    regularity: float
    active_bounds: int
    penalty: float
    confidence: float | None
    direction: np.ndarray | None = (
        None  # of the most negative curvature found on `cone`, in the flat parameters, where that is < 0
    )
    warnings: tuple[str, ...] = ()
    work: Tally = field(default_factory=Tally)
    seconds: float = 0.0

    def checks(self, tol: float | Tolerance) -> tuple[Check, ...]:
        """Every measure beside what the tolerance asks of it, with its error added: the one place where they are compared."""
        tolerance = as_tolerance(tol)
        upper = [
            ("stationarity", self.stationarity, tolerance.gradient),
            ("feasibility", self.feasibility, tolerance.gradient),
        ]
        if tolerance.relative is not None:
            upper.append(("relative stationarity", self.relative_stationarity, tolerance.relative))
        found = [Check(name, m, m.upper, limit, m.upper <= limit, m.lower > limit, "<=") for name, m, limit in upper]
        m, limit = self.curvature, -tolerance.curvature
        found.insert(2, Check("curvature", m, m.lower, limit, m.lower >= limit, m.upper < limit, ">="))
        return tuple(found)

    def passes(self, tol: float | Tolerance) -> bool:
        """Whether every measure meets the tolerance with its error added. NaN never passes."""
        return all(check.met for check in self.checks(tol))

    def refuses(self, tol: float | Tolerance) -> bool:
        """Whether some measure fails the tolerance even with its error taken off: more samples would not help."""
        return any(check.refuted for check in self.checks(tol))

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "stationarity": self.stationarity.to_dict(),
            "feasibility": self.feasibility.to_dict(),
            "curvature": self.curvature.to_dict(),
            "relative_stationarity": self.relative_stationarity.to_dict(),
            "objective": self.objective.to_dict(),
            "cone": self.cone,
            "curvatures": {name: measured.to_dict() for name, measured in self.curvatures.items()},
            "multipliers": {name: rows.tolist() for name, rows in self.multipliers.items()},
            "slack": {name: rows.tolist() for name, rows in self.slack.items()},
            "constraints": {name: rows.tolist() for name, rows in self.constraints.items()},
            "complementarity": self.complementarity,
            "dual_sign": _finite(self.dual_sign),
            "jacobian_singular": _finite(self.jacobian_singular),
            "multiplier_norm": self.multiplier_norm,
            "regularity": _finite(self.regularity),
            "active_bounds": self.active_bounds,
            "penalty": self.penalty,
            "confidence": self.confidence,
            "warnings": list(self.warnings),
            "work": dict(self.work.counts) | {"total": self.work.total},
            "seconds": self.seconds,
        }

    def to_json(self) -> str:
        """The certificate as JSON text."""
        return json.dumps(self.to_dict(), indent=1)

    def __str__(self) -> str:
        lines = [
            f"stationarity  {self.stationarity}",
            f"feasibility   {self.feasibility}",
            f"curvature     {self.curvature}, on the {_CONES[self.cone]}",
            f"objective     {self.objective.value:.6g}, relative stationarity {self.relative_stationarity.value:.3g}",
        ]
        return "\n".join([*lines, *(f"warning: {sentence}" for sentence in self.warnings)])


_CONES = {
    "whole": "whole space (augmented Lagrangian)",
    "paper": "paper's cone, tangent directions that keep c",
    "critical": "critical cone",
}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

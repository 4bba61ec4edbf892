"""The certificate: three measures with error bounds, what they were computed from, and what to make of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..forms import APART, Unfit, plain, typed
from ..importing import on_first_use
from ..oracle.work import Tally
from ..problem.constraint import Terms
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

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return f"none ({self.how})" if self.lower == self.value else f"none, at least {self.lower:.3g} ({self.how})"
        if self.upper - self.lower <= 1e-9 * max(1e-3, abs(self.value)):
            return f"{self.value:.3g} ({self.how})"
        return f"{self.value:.3g} in [{self.lower:.3g}, {self.upper:.3g}] ({self.how})"


# What a certificate says of a point, in the order of tables, each with its meaning for people who see the number.
MEASURES = {
    "stationarity": "norm of the Lagrangian's projected gradient",
    "feasibility": "|c + s|: the paper's measure, of violation and complementarity",
    "violation": "how far the constraints are exceeded",
    "complementarity": "how far constraints with a multiplier lie from their bounds",
    "curvature": "smallest on the cone that decides",
    "relative_stationarity": "stationarity × max(1, |x|)",
}


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

    @classmethod
    def at_most(cls, name: str, measured: Measured, limit: float) -> "Check":
        """A measure that must be small."""
        return cls(name, measured, measured.upper, limit, measured.upper <= limit, measured.lower > limit, "<=")

    @classmethod
    def at_least(cls, name: str, measured: Measured, limit: float) -> "Check":
        """A measure that must not be too negative."""
        return cls(name, measured, measured.lower, limit, measured.lower >= limit, measured.upper < limit, ">=")

    @property
    def field(self) -> str:
        """The certificate's name for the measure."""
        return self.name.replace(" ", "_")

    @property
    def share(self) -> float:
        """How much of the limit the bound uses up: at most 1 where it is met; infinite where nothing is allowed."""
        error = max(0.0, -self.bound) if self.sign == ">=" else self.bound
        return error / abs(self.limit) if self.limit else 0.0 if error <= 0 else np.inf

    @property
    def sentence(self) -> str:
        """For people to read."""
        bound = f"{self.bound:.3g}" if np.isfinite(self.bound) else "none"
        return f"{self.name} {bound} ({'' if self.met else 'not '}{self.sign} {self.limit:g})"


def compared(measures: Mapping[str, Measured], tol: float | Tolerance) -> tuple[Check, ...]:
    """Measures by name beside what the tolerance asks of them: the one place where a bound meets a tolerance."""
    tolerance = as_tolerance(tol)
    small = tolerance.gradient
    first = [Check.at_most("stationarity", measures["stationarity"], small)]
    if tolerance.feasibility is None:
        first.append(Check.at_most("feasibility", measures["feasibility"], small))
    else:
        first.append(Check.at_most("violation", measures["violation"], tolerance.feasibility))
        first.append(Check.at_most("complementarity", measures["complementarity"], small))
    last = []
    if tolerance.relative is not None:
        last.append(Check.at_most("relative stationarity", measures["relative_stationarity"], tolerance.relative))
    return (*first, Check.at_least("curvature", measures["curvature"], -tolerance.curvature), *last)


@dataclass(frozen=True)
class Certificate:
    """What `certify` found at a point: evidence for, or against, a second-order stationary point.

    - `stationarity`: |P_T(-(grad f + J' lam))| over parameters and slacks;
    - `feasibility`: |c(x) + s|, the paper's measure, which is made of two:
      `violation`, how far the constraints are exceeded, and `complementarity`, how far inequalities that are met lie from
      their bounds where multipliers say that they are active;
    - `curvature`: the smallest curvature of the Lagrangian on `cone`; all three cones are in `curvatures`;
    - `relative_stationarity`: stationarity * max(1, |x|), which a flat region cannot fool;
    - `warnings`: sentences that a reader must not miss.
    """

    stationarity: Measured
    feasibility: Measured
    violation: Measured
    complementarity: Measured
    curvature: Measured
    relative_stationarity: Measured
    objective: Measured
    cone: str
    curvatures: dict[str, Measured]
    multipliers: dict[str, np.ndarray]
    slack: dict[str, np.ndarray]
    constraints: dict[str, np.ndarray]
    dual_sign: float
    jacobian_singular: float
    multiplier_norm: float
    regularity: float
    active_bounds: int
    penalty: float
    confidence: float | None
    # of the most negative curvature found on `cone`, in the flat parameters, where that is < 0; of all of space over `Projected`
    direction: np.ndarray | None = field(default=None, metadata=APART)
    warnings: tuple[str, ...] = ()
    work: Tally = field(default_factory=Tally)
    seconds: float = 0.0
    terms: dict[str, Terms] = field(default_factory=dict)  # how the constraints were stated

    def __post_init__(self):
        if self.cone not in _CONES:
            raise InputError(f"a certificate on the cone {self.cone!r}", f"one of {list(_CONES)}", "leave out cone=")
        for name, terms in self.terms.items():
            held, bound = self.constraints.get(name), np.shape(terms.bound)
            if held is None or bound not in ((), np.shape(held)):
                raise InputError(
                    f"terms of {name!r}, with bounds of shape {bound}", "those of a constraint", "leave out terms="
                )

    def checks(self, tol: float | Tolerance) -> tuple[Check, ...]:
        """Every measure beside what the tolerance asks of it, with its error added."""
        return compared(vars(self), tol)

    def passes(self, tol: float | Tolerance) -> bool:
        """Whether every measure meets the tolerance with its error added. NaN never passes."""
        return all(check.met for check in self.checks(tol))

    def refuses(self, tol: float | Tolerance) -> bool:
        """Whether some measure fails the tolerance even with its error taken off: more samples would not help."""
        return any(check.refuted for check in self.checks(tol))

    @property
    def parts(self) -> str:
        """The two parts of the paper's measure of feasibility, in words."""
        return f"violation {self.violation.value:.3g}, complementarity {self.complementarity.value:.3g}"

    def missing(self, tol: float | Tolerance) -> tuple[str, ...]:
        """What does not meet the tolerance, or is not known to, in words."""
        open_ones = (check for check in self.checks(tol) if not check.met)
        return tuple(f"{c.sentence}{'' if c.refuted else ', not known well enough'}" for c in open_ones)

    def to_dict(self) -> dict[str, Any]:
        """Everything but `direction`, ready for JSON: an infinite value (an empty cone) is null, its sentence says why, and
        `not_finite` beside it holds the number in words.
        """
        return plain(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], direction: np.ndarray | None = None) -> "Certificate":
        """The certificate that `to_dict` wrote."""
        try:
            return typed(cls, content, direction=direction)
        except Unfit as error:
            raise InputError(
                f"this is no certificate: {error.found}", error.expected, "write it with Certificate.to_dict"
            ) from None

    def to_json(self) -> str:
        """The certificate as JSON text."""
        return json.dumps(self.to_dict(), indent=1)

    def plot(self, tol: float | Tolerance = 0.01) -> Any:
        """A picture of the measures against a tolerance, and of the constraints: a matplotlib figure."""
        return on_first_use("report.drawing").plot_certificate(self, tol)

    def explain(self, tol: float | Tolerance | None = None) -> str:
        """Paragraphs for a reviewer: what was measured and how, with which error, and what is not promised."""
        return on_first_use("report.words").explain_certificate(self, None if tol is None else as_tolerance(tol))

    def _repr_html_(self) -> str:
        return on_first_use("report.cards").certificate_card(self)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [
            f"stationarity  {self.stationarity}",
            f"feasibility   {self.feasibility}: {self.parts}",
            f"curvature     {self.curvature}, on the {_CONES[self.cone]}",
            f"objective     {self.objective.value:.6g}, relative stationarity {self.relative_stationarity.value:.3g}",
        ]
        return "\n".join([*lines, *(f"warning: {sentence}" for sentence in self.warnings)])


_CONES = {
    "whole": "whole space (augmented Lagrangian)",
    "paper": "paper's cone, tangent directions that keep c",
    "critical": "critical cone",
}

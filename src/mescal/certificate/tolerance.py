"""How small is small enough: tolerances for stationarity, feasibility and curvature, and against flatness."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..checks import real_number
from ..errors import InputError, InputTypeError
from ..forms import Unfit

OPTIONAL = ("feasibility", "relative")


@dataclass(frozen=True)
class Tolerance:
    """(i) stationarity and (ii) feasibility <= `gradient`, (iii) curvature >= -`curvature`.

    **Arguments:**

    - `gradient`: bound on stationarity and, unless `feasibility` is given, on the paper's measure of feasibility |c + s|.
    - `curvature`: bound on negative curvature.
    - `feasibility`: bound on the violation of the constraints alone, |max(c, 0)| for inequalities, in place of |c + s|;
      complementarity is held to `gradient` then. 0: inequalities are met exactly.
    - `relative`: bound on stationarity * max(1, |x|), or None. With saturating losses an absolute gradient tolerance is
      met anywhere far out; this one is not.
    """

    gradient: float
    curvature: float
    feasibility: float | None = field(default=None, kw_only=True)
    relative: float | None = field(default=None, kw_only=True)

    def __post_init__(self):
        for name in ("gradient", "curvature", *OPTIONAL):
            value = getattr(self, name)
            if value is None and name in OPTIONAL:
                continue
            number = real_number(value)
            expected = "a finite number of at least 0" if name == "feasibility" else "a positive finite number"
            if number is None:
                raise InputTypeError(
                    f"tolerance {name}={str(value)[:40]} of type {type(value).__name__}",
                    expected,
                    "write for example Tolerance(0.01, 0.01)",
                )
            if not 0 <= number < np.inf or (number == 0 and name != "feasibility"):
                raise InputError(f"tolerance {name}={value}", expected, "use for example tol=0.01")
            object.__setattr__(self, name, number)

    @property
    def violation(self) -> float:
        """What the violation of the constraints may be."""
        return self.gradient if self.feasibility is None else self.feasibility

    def to_plain(self) -> float | dict[str, float | None]:
        """For JSON: a number where one says everything, otherwise all of them by name."""
        return self.gradient if self == Tolerance(self.gradient, self.gradient) else dict(vars(self))

    @classmethod
    def from_plain(cls, content: Any, where: str = "tol") -> "Tolerance":
        """What `to_plain` wrote."""
        try:
            return cls(**content) if isinstance(content, dict) else cls(content, content)
        except (InputError, TypeError):
            raise Unfit(f"its {where} is {content!r:.60}", "a tolerance") from None

    def __str__(self) -> str:
        parts = {name: getattr(self, name) for name in ("curvature", *OPTIONAL)}
        told = (
            f"{name} {v:g}" for name, v in parts.items() if v is not None and (name, v) != ("curvature", self.gradient)
        )
        return ", ".join([f"{self.gradient:g}", *told])


def as_tolerance(tol: Any) -> Tolerance:
    """`tol=0.01` means all."""
    return tol if isinstance(tol, Tolerance) else Tolerance(gradient=tol, curvature=tol)

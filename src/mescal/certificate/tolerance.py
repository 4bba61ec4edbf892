"""How small is small enough: tolerances for stationarity and feasibility, for curvature, and against flatness."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError
from ..options import real_number


@dataclass(frozen=True)
class Tolerance:
    """(i) stationarity and (ii) feasibility <= `gradient`, (iii) curvature >= -`curvature`.

    **Arguments:**

    - `gradient`: bound on stationarity and on feasibility.
    - `curvature`: bound on negative curvature.
    - `relative`: bound on stationarity * max(1, |x|), or None. With saturating losses an absolute gradient tolerance is
      met anywhere far out; this one is not.
    """

    gradient: float
    curvature: float
    relative: float | None = None

    def __post_init__(self):
        for name in ("gradient", "curvature", "relative"):
            value = getattr(self, name)
            if value is None and name == "relative":
                continue
            number = real_number(value)
            if number is None:
                raise InputTypeError(
                    f"tolerance {name}={str(value)[:40]} of type {type(value).__name__}",
                    "a positive number",
                    "write for example Tolerance(0.01, 0.01)",
                )
            if not 0 < number < np.inf:
                raise InputError(f"tolerance {name}={value}", "a positive finite number", "use for example tol=0.01")
            object.__setattr__(self, name, number)


def as_tolerance(tol: Any) -> Tolerance:
    """`tol=0.01` means both."""
    return tol if isinstance(tol, Tolerance) else Tolerance(gradient=tol, curvature=tol)

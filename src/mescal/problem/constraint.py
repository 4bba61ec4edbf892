"""Constraints: an expectation that must be zero, or at most zero, and the terms of whoever stated it.

`a <= b` is stored as `a - b <= 0` and `a >= b` as `b - a <= 0`, so that multipliers of inequalities are >= 0 at a
minimiser. It was stated by a value, a sign and a bound:

    value = bound + c              of   e <= bound   and   e == bound
    value = bound - c              of   e >= bound
    value = bound + c / d          of a ratio bounded by a number, stored as numerator - bound d (and -c for >=)
    value = bound + T ln(1 + c/T)  of an entropic risk, stored as T E[exp((f - bound)/T)] - T

d is the ratio's denominator, whose own constraint is beside the ratio's.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..errors import InputError, InputTypeError

if TYPE_CHECKING:
    from .expectation import Expectation

SIGNS = ("<=", ">=", "==")
SAME = 1e-12  # relative: a value this close to its bound is on it, by the rounding of float64
DIGITS = 3, 6  # of a value: as many as show that it is not its bound, between these


@dataclass(frozen=True, eq=False)
class Terms:
    """How a constraint was stated.

    - `sign`: `<=`, `>=` or `==`;
    - `bound`: a number, or one for every row;
    - `over`: the name of the constraint on the denominator, where a ratio was stated;
    - `temperature`: of an entropic risk.
    """

    sign: str = "<="
    bound: np.ndarray = field(default_factory=lambda: np.zeros(()))
    over: str | None = None
    temperature: float | None = None

    def __post_init__(self):
        if self.sign not in SIGNS:
            raise InputError(f"the sign {self.sign!r} of a constraint", f"one of {list(SIGNS)}", "leave it out for <=")

    def value(self, c: np.ndarray, denominator: np.ndarray | float = 1.0) -> np.ndarray:
        """What is compared with the bound, from what is stored."""
        bound, c = np.asarray(self.bound, np.float64), np.asarray(c, np.float64)
        if self.temperature is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                return bound + self.temperature * np.log1p(c / self.temperature)
        with np.errstate(divide="ignore", invalid="ignore"):
            return bound + (-c if self.sign == ">=" else c) / denominator


@dataclass(frozen=True, eq=False)
class Constraint:
    """`body <= 0` or `body == 0`; made by comparing expectations. `terms` say how it was stated; `beside` is the name of a scalar
    of the problem's own that is subtracted in it, `unit` times, and is its bound, or part of it, to whoever reads it.
    """

    body: "Expectation"
    kind: Literal["<=", "=="]
    terms: Terms = field(default_factory=Terms)
    beside: str | None = None
    unit: float = 1.0

    def with_body(self, body: "Expectation") -> "Constraint":
        """The same statement about other parameters or other sources."""
        return replace(self, body=body)

    def terms_at(self, x: Any) -> Terms:
        """How it was stated, at parameters: with the value that the scalar has there as its bound."""
        if self.beside is None:
            return self.terms
        return replace(
            self.terms, bound=self.terms.bound + self.unit * np.asarray(x.auxiliary[self.beside], np.float64)
        )

    @property
    def inequality(self) -> bool:
        """Whether the constraint has a slack."""
        return self.kind == "<="

    def __bool__(self) -> bool:
        raise InputTypeError(
            "the truth value of a constraint was asked for, as in a chained comparison 0 <= e <= 1",
            "one comparison per constraint",
            'split it: {"lower": e >= 0, "upper": e <= 1}',
        )

    def __repr__(self) -> str:
        if self.terms.over is not None or self.terms.temperature is not None:
            return f"{self.body} {self.kind} 0"
        value = (-1.0 if self.terms.sign == ">=" else 1.0) * self.body + self.terms.bound
        return f"{value} {self.terms.sign} {figures(self.terms.bound)}"


class Held(NamedTuple):
    """One row of a constraint at a point. `stored` is c(x), in whose units the tolerance is."""

    name: str
    value: float
    sign: str
    bound: float
    stored: float

    @property
    def room(self) -> float:
        """How far the value is inside of its bound; negative where it is beyond, and never positive for an equality."""
        off = self.value - self.bound
        return {"<=": -off, ">=": off, "==": -abs(off)}[self.sign]

    @property
    def excess(self) -> float:
        """How far c(x) is beyond zero, in its own units."""
        return abs(self.stored) if self.sign == "==" else max(self.stored, 0.0)

    @property
    def comparison(self) -> str:
        """Value, sign and bound, with digits enough to tell the two numbers apart."""
        return f"{self.shown} {self.sign} {self.bound:.6g}"

    @property
    def shown(self) -> str:
        """The value."""
        if not (math.isfinite(self.value) and self.value and self.room):
            return f"{self.value:.{DIGITS[self.room == 0]}g}"  # on its bound it reads as the bound does
        needed = math.ceil(math.log10(abs(self.value) / abs(self.room))) + 1 if self.room else DIGITS[0]
        return f"{self.value:.{min(max(needed, DIGITS[0]), DIGITS[1])}g}"

    @property
    def gap(self) -> str:
        """How the value lies to its bound, in words."""
        if not math.isfinite(self.value):
            return "not a number" if math.isnan(self.value) else "out of all bounds"
        if abs(self.room) <= SAME * max(abs(self.value), abs(self.bound)):
            return "met" if self.sign == "==" else "at its bound"
        word = {"<=": "over by", ">=": "short by", "==": "off by"}[self.sign]
        return f"{self.room:.2g} to spare" if self.room > 0 else f"{word} {-self.room:.2g}"

    def violated(self, allowed: float) -> bool:
        """Whether it is beyond what a tolerance allows it, or not known to be within."""
        return not self.excess <= allowed

    def words(self, allowed: float) -> str:
        """All of it, and whether what it is beyond its bound is allowed: `0.154 <= 0.15, over by 0.004, VIOLATED`."""
        beyond = (
            ""
            if not (self.room < 0 or self.violated(allowed)) or self.gap in ("met", "at its bound")
            else (", VIOLATED" if self.violated(allowed) else ", within the tolerance")
        )
        return f"{self.comparison}, {self.gap}{beyond}"


def figures(value: np.ndarray) -> str:
    """One number or an array of them, to six digits."""
    return f"{float(value):.6g}" if np.ndim(value) == 0 else np.array2string(value, precision=6, separator=", ")


def rows_by_name(values: Mapping[str, Any]) -> list[str]:
    """A name for every row of constraints: NAME of a scalar one, NAME[i] of a vector."""
    return [
        name if np.shape(rows) == () else f"{name}[{i}]" for name, rows in values.items() for i in range(np.size(rows))
    ]


def held(constraints: Mapping[str, np.ndarray], terms: Mapping[str, Terms]) -> Iterator[Held]:
    """Every row of c(x), as it was stated; without terms, c(x) <= 0."""
    for name, stored in constraints.items():
        own = terms.get(name, Terms())
        denominator = 1.0
        if own.over is not None and own.over in constraints:
            denominator = terms[own.over].value(constraints[own.over])
        values = own.value(stored, denominator)
        bounds = np.broadcast_to(own.bound, np.shape(stored))
        labels = rows_by_name({name: stored})
        for label, value, bound, c in zip(labels, np.ravel(values), np.ravel(bounds), np.ravel(stored), strict=True):
            yield Held(label, float(value), own.sign, float(bound), float(c))

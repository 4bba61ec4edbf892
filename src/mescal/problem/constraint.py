"""Constraints: an expectation that must be zero, or at most zero.

`a <= b` is stored as `a - b <= 0` and `a >= b` as `b - a <= 0`, so that multipliers of inequalities are >= 0 at a
minimiser.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ..errors import InputTypeError
from .expectation import Expectation
from .terms import Terms, figures


@dataclass(frozen=True, eq=False)
class Constraint:
    """`body <= 0` or `body == 0`; made by comparing expectations. `terms` say how it was stated; `beside` is the name of a scalar
    of the problem's own that is subtracted in it, `unit` times, and is its bound, or part of it, to whoever reads it.
    """

    body: Expectation
    kind: Literal["<=", "=="]
    terms: Terms = field(default_factory=Terms)
    beside: str | None = None
    unit: float = 1.0

    def with_body(self, body: Expectation) -> "Constraint":
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

"""Constraints: an expectation that must be zero, or at most zero.

`a <= b` is stored as `a - b <= 0` and `a >= b` as `b - a <= 0`, so that multipliers of inequalities are >= 0 at a
minimiser.
"""

from dataclasses import dataclass
from typing import Literal

from ..errors import InputTypeError
from .expectation import Expectation


@dataclass(frozen=True, eq=False)
class Constraint:
    """`body <= 0` or `body == 0`; made by comparing expectations."""

    body: Expectation
    kind: Literal["<=", "=="]

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
        return f"{self.body} {self.kind} 0"

"""Statements: values that are no expectations, with the algebra of expectations, and how they become plain constraints.

A statement lowers to an expectation in (x, scalars) that is no less than it (`above`) and equal to it where the scalars are at
their best; so it may be minimised or bounded from above. Those that can be pinned down from both sides say so (`below`).
"""

import abc
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import InputError, InputTypeError
from ..constraint import Constraint
from ..expectation import Expectation, as_scalar
from ..row_checks import describe
from .lifting import Lift
from .values import At, mean_at

Kind = Literal["<=", ">=", "=="]


class Statement(abc.ABC):
    """A value that people state; combined by arithmetic and compared like an expectation."""

    __array_ufunc__ = None
    __hash__ = object.__hash__

    @abc.abstractmethod
    def above(self, lift: Lift, name: str) -> Expectation:
        """An expectation no less than the value, and equal to it at the best scalars; `name` is what it is stated for."""

    @abc.abstractmethod
    def value_at(self, at: At) -> float:
        """The value, over all rows or some thousand draws."""

    def value(self, x: Any) -> float:
        """The value at x, over all rows or some thousand draws."""
        return self.value_at(At(x))

    def below(self, lift: Lift, name: str) -> Expectation:
        """The same from below; most statements have none."""
        raise InputTypeError(
            f"{self} bounded from below, or with a negative factor where it is minimised",
            f"{self} minimised or bounded from above",
            self.only_above,
        )

    def exact(self, lift: Lift, name: str) -> Expectation:
        """The same pinned down from both sides; most statements have none."""
        raise InputTypeError(f"{self} held at a value", f"{self} bounded from above", "bound it from above, by <=")

    only_above = "state the opposite bound, or another measure: from below it would take a search inside of the problem"

    def at_most(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        """`self <= bound` as plain constraints."""
        return {name: self.above(lift, name) <= lift.plain(bound)}

    def at_least(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        """`self >= bound` as plain constraints."""
        return {name: self.below(lift, name) >= lift.plain(bound)}

    def equal(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        """`self == bound` as plain constraints."""
        return {name: self.exact(lift, name) == lift.plain(bound)}

    def scaled(self, factor: float) -> "Statement":
        """A multiple."""
        return Combined(Expectation(()), ((factor, self),))

    # ---- algebra

    def __add__(self, other: Any) -> "Statement":
        return Combined(Expectation(()), ((1.0, self),)) + other

    __radd__ = __add__

    def __neg__(self) -> "Statement":
        return self.scaled(-1.0)

    def __sub__(self, other: Any) -> "Statement":
        return self + (-1.0 * other if not isinstance(other, Statement) else -other)

    def __rsub__(self, other: Any) -> "Statement":
        return -self + other

    def __mul__(self, factor: Any) -> "Statement":
        scalar = None if isinstance(factor, (Expectation, Statement)) else as_scalar(factor)
        if scalar is None:
            raise InputTypeError(
                f"a product of {self} and {_said(factor)}",
                "multiples by numbers",
                "write the product as mescal.of(lambda a, b: a * b, first, second)",
            )
        return self.scaled(scalar)

    __rmul__ = __mul__

    def __pos__(self) -> "Statement":
        return self

    def _refuse(self, *_: Any):
        raise InputTypeError(
            f"{self} in a power, an absolute value, a matrix product or as a number",
            "sums, differences and multiples by numbers",
            "write mescal.of(function, expectation, ...), or read its value at a point by value(x)",
        )

    __pow__ = __rpow__ = __abs__ = __matmul__ = __rmatmul__ = __floordiv__ = __rfloordiv__ = _refuse
    __mod__ = __rmod__ = __float__ = __int__ = _refuse

    def __truediv__(self, divisor: Any) -> "Statement":
        scalar = None if isinstance(divisor, (Expectation, Statement)) else as_scalar(divisor)
        if scalar == 0:
            raise InputError(f"{self} divided by zero", "a divisor other than zero", "check the divisor")
        if scalar is None:
            raise InputTypeError(
                f"{self} over {_said(divisor)}",
                "an expectation over an expectation, once",
                "write what is divided twice as mescal.of(lambda a, b, c: a / b / c, first, second, third)",
            )
        return self.scaled(1.0 / scalar)

    def __rtruediv__(self, _: Any):
        raise InputTypeError(
            f"something over {self}",
            "an expectation over an expectation",
            "write it as mescal.of(lambda a, b: a / b, ...)",
        )

    # ---- comparisons

    def __le__(self, bound: Any) -> "Stated":
        return _stated(self, "<=", bound)

    def __ge__(self, bound: Any) -> "Stated":
        return _stated(self, ">=", bound)

    def __eq__(self, bound: Any) -> "Stated":  # pyright: ignore[reportIncompatibleMethodOverride]
        return _stated(self, "==", bound)

    def __ne__(self, _: Any):
        raise InputTypeError("a comparison with !=", "<=, >= or ==", "state the constraint with one of these")

    def __lt__(self, _: Any):
        raise InputTypeError(
            "a strict comparison",
            "<=, >= or ==",
            "write <= or >=: closed sets have minimisers; for max(a, b) write mescal.worst([a, b])",
        )

    __gt__ = __lt__


def _stated(statement: Statement, kind: Kind, bound: Any) -> "Stated":
    if isinstance(bound, Statement):
        return Stated(statement - bound, kind, Expectation(()))
    return Stated(statement, kind, bound if isinstance(bound, Expectation) else Expectation(()) + bound)


@dataclass(frozen=True, eq=False)
class Stated:
    """A statement beside its bound; lowers to plain constraints."""

    statement: Statement
    kind: Kind
    bound: Expectation

    def lower(self, lift: Lift, name: str) -> dict[str, Constraint]:
        """As plain constraints, the first under the name that the user gave."""
        lowered = {"<=": self.statement.at_most, ">=": self.statement.at_least, "==": self.statement.equal}
        return lowered[self.kind](self.bound, lift, name)

    def __bool__(self) -> bool:
        raise InputTypeError(
            "the truth value of a constraint was asked for, as in a chained comparison 0 <= e <= 1",
            "one comparison per constraint",
            'split it: {"lower": e >= 0, "upper": e <= 1}',
        )

    def __repr__(self) -> str:
        return f"{self.statement} {self.kind} {self.bound}"


def _said(thing: Any) -> str:
    return str(thing) if isinstance(thing, (Expectation, Statement)) else describe(thing)


def worth(part: Expectation | Statement, at: At) -> float:
    """The value of an expectation or of a statement."""
    return part.value_at(at) if isinstance(part, Statement) else mean_at(part, at)


class Combined(Statement):
    """An expectation and multiples of statements."""

    def __init__(self, plain: Expectation, parts: tuple[tuple[float, Statement], ...]):
        self.plain, self.parts = plain, parts

    def above(self, lift: Lift, name: str) -> Expectation:
        whole = lift.plain(self.plain)
        for factor, part in self.parts:
            with lift.times(factor):
                whole = whole + factor * (part.above(lift, name) if factor >= 0 else part.below(lift, name))
        return whole

    def below(self, lift: Lift, name: str) -> Expectation:
        whole = lift.plain(self.plain)
        for factor, part in self.parts:
            with lift.times(factor):
                whole = whole + factor * (part.below(lift, name) if factor >= 0 else part.above(lift, name))
        return whole

    def exact(self, lift: Lift, name: str) -> Expectation:
        whole = lift.plain(self.plain)
        for factor, part in self.parts:
            with lift.times(factor):
                whole = whole + factor * part.exact(lift, name)
        return whole

    def value_at(self, at: At) -> float:
        return mean_at(self.plain, at) + sum(factor * part.value_at(at) for factor, part in self.parts)

    def scaled(self, factor: float) -> "Combined":
        return Combined(factor * self.plain, tuple((factor * own, part) for own, part in self.parts))

    def __add__(self, other: Any) -> "Combined":
        if isinstance(other, Combined):
            return Combined(self.plain + other.plain, self.parts + other.parts)
        if isinstance(other, Statement):
            return Combined(self.plain, (*self.parts, (1.0, other)))
        return Combined(self.plain + other, self.parts)

    __radd__ = __add__

    def __repr__(self) -> str:
        shown = [str(self.plain)] if self.plain.terms or self.plain.constant.any() else []
        shown += [{1.0: "", -1.0: "-"}.get(factor, f"{factor:g} * ") + str(part) for factor, part in self.parts]
        return " + ".join(shown).replace(" + -", " - ")

"""Rates of positive predictions and their algebra: what the constraints of a classifier are made of.

    rate(of="negatives") <= 0.05                         the false-positive rate
    rate(of="positives") >= 0.9                          the true-positive rate
    rate(group="f") >= 0.8 * rate()                      the rate of a group against that of everybody
    rate(of="positives", group="f") >= rate(of="positives") - 0.05

A `Rates` is  constant + sum_k a_k P(predicted positive | subset k),  closed under +, - and scalar *; `<=` and `>=` with a
number or another one make a `RateConstraint`. Both are values: they compare, print, copy and pickle, so that estimators
that hold them can be cloned and searched over.
"""

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..errors import InputError, InputTypeError

SUBSETS = ("all", "positives", "negatives")


@dataclass(frozen=True)
class Subset:
    """Rows that a mean is taken over, of which class and of which sensitive group (None: any), and what it is the mean of."""

    of: str = "all"
    group: Any = None
    what: str = "rate"
    true: Any = None
    predicted: Any = None  # of a rate: what is counted

    def __str__(self) -> str:
        given = [] if self.of == "all" else [f"of={self.of!r}"]
        named = {"group": self.group, "true": self.true, "predicted": self.predicted}
        given += [f"{name}={value!r}" for name, value in named.items() if value is not None]
        return f"{self.what}({', '.join(given)})"


@dataclass(frozen=True)
class Rates:
    """A linear combination of rates, or of errors and coverages; made by `rate`, `error` and `coverage`."""

    terms: tuple[tuple[float, Subset], ...]
    constant: float = 0.0

    __array_ufunc__ = None  # numpy scalars on the left defer to the methods below

    def value(self, of: Callable[[Subset], float]) -> float:
        """Its value where `of` gives the rate of every subset."""
        return self.constant + sum(factor * of(subset) for factor, subset in self.terms)

    def __add__(self, other: Any) -> "Rates":
        if isinstance(other, Rates):
            return Rates(self.terms + other.terms, self.constant + other.constant)
        return Rates(self.terms, self.constant + _number(other)) if _is_number(other) else NotImplemented

    __radd__ = __add__

    @property
    def is_share(self) -> bool:
        """Whether it is one rate or coverage, and nothing else."""
        return self.constant == 0 and [(a, subset.what != "error") for a, subset in self.terms] == [(1.0, True)]

    def __neg__(self) -> "Rates":
        return self * -1.0

    def __sub__(self, other: Any) -> "Rates":
        return self + -other if isinstance(other, Rates) or _is_number(other) else NotImplemented

    def __rsub__(self, other: Any) -> "Rates":
        return -self + other

    def __mul__(self, factor: Any) -> "Rates":
        if isinstance(factor, Rates):
            raise InputTypeError(
                f"{self} times {factor}", "sums, differences and multiples by numbers", "bound each by itself"
            )
        if not _is_number(factor):
            return NotImplemented
        number = _number(factor)
        return Rates(tuple((number * a, subset) for a, subset in self.terms), number * self.constant)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> "Rates":
        if isinstance(divisor, Rates):
            raise InputTypeError(
                f"{self} over {divisor}",
                "sums, differences and multiples by numbers",
                f"multiply the comparison out: {self} >= 0.8 * {divisor}",
            )
        if not _is_number(divisor):
            return NotImplemented
        return self * (1 / _number(divisor)) if divisor else self * np.inf  # refused: not finite

    def __abs__(self):
        raise InputTypeError(
            f"the absolute value of {self}",
            "sums, differences and multiples by numbers",
            'bound it from both sides: {"more": a - b <= 0.05, "fewer": b - a <= 0.05}',
        )

    def __le__(self, other: Any) -> "RateConstraint":
        return _compare(self, other, "<=")

    def __ge__(self, other: Any) -> "RateConstraint":
        return _compare(self, other, ">=")

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        parts = [str(subset) if factor == 1 else f"{factor:g} * {subset}" for factor, subset in self.terms]
        if self.constant or not parts:
            parts.append(f"{self.constant:g}")
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True)
class RateConstraint:
    """`left <= right` or `left >= right`; made by comparing rates. `stated` is how it reads, where it has been rewritten."""

    left: Rates
    sign: Literal["<=", ">="]
    right: Rates
    stated: str = ""

    def with_terms(self, told: Callable[[Rates], Rates]) -> "RateConstraint":
        """The same comparison of other sides."""
        return RateConstraint(told(self.left), self.sign, told(self.right), str(self))

    @property
    def body(self) -> Rates:
        """What must be at most zero."""
        return self.left - self.right if self.sign == "<=" else self.right - self.left

    def __bool__(self) -> bool:
        raise InputTypeError(
            "the truth value of a constraint was asked for, as in a chained comparison 0.1 <= rate() <= 0.2",
            "one comparison per constraint",
            'split it: {"lower": rate() >= 0.1, "upper": rate() <= 0.2}',
        )

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.stated or f"{self.left} {self.sign} {self.right}"


def rate(of: str = "all", group: Any = None, *, true: Any = None, predicted: Any = None) -> Rates:
    """The rate of positive predictions, or of those of another class.

    **Arguments:**

    - `of`: `"all"`, or the true class: `"positives"` (then it is the true-positive rate) or `"negatives"` (the
      false-positive rate). Positive is the classifier's `pos_label`, by default the class that sorts last.
    - `group`: a sensitive group, one of the values passed to `fit` as `sensitive_features`; default: everybody. Where those
      have several columns, a tuple of one value per column, in which None is any: `("woman", None)`.
    - `true`: a class of y: over its rows, `rate(true="cat", predicted="dog")` is how often cats are taken for dogs.
    - `predicted`: the class whose predictions are counted; default: the positive one, which of more than two classes
      there is only with `pos_label`.
    """
    if of not in SUBSETS:
        raise InputError(f"rate(of={of!r})", f"one of {list(SUBSETS)}", "positives gives the true-positive rate")
    return Rates(((1.0, Subset(of, group, true=true, predicted=predicted)),))


def error(group: Any = None) -> Rates:
    """The mean squared error of a regressor, in units of the variance of its target: 1 - R^2; `group` as for `rate`."""
    return Rates(((1.0, Subset(group=group, what="error")),))


def coverage(group: Any = None) -> Rates:
    """The share of rows whose target is at most a regressor's prediction; `group` as for `rate`."""
    return Rates(((1.0, Subset(group=group, what="coverage")),))


def check_constraints(constraints: Any, known: tuple[str, ...] = ("rate",)) -> dict[str, RateConstraint]:
    """Constraints by name, on what is known to the estimator, or an error."""
    if constraints is None:
        return {}
    expected = f"by name, comparisons of {' and '.join(known)} by <= or >="
    advice = f'write constraints={{"first": {known[0]}(group="a") <= 0.05}}'
    if not isinstance(constraints, dict):
        raise InputTypeError(
            f"constraints is {type(constraints).__name__}", f"a dict with, {expected}, or None", advice
        )
    for name, constraint in constraints.items():
        if isinstance(constraint, bool):
            advice = 'bound what should be equal from both sides: {"more": a - b <= 0.01, "fewer": b - a <= 0.01}'
        if not isinstance(name, str) or not isinstance(constraint, RateConstraint):
            raise InputTypeError(f"constraint {name!r} is {type(constraint).__name__}", expected, advice)
        strange = [str(subset) for _, subset in constraint.body.terms if subset.what not in known]
        if strange:
            raise InputError(
                f"constraint {name!r} is about {strange[0]}",
                expected,
                "classifiers have rates, ConstrainedRegressor has errors and coverages",
            )
    return constraints


def _compare(left: Rates, right: Any, sign: Literal["<=", ">="]) -> RateConstraint:
    if _is_number(right):
        right = Rates((), _number(right))
        if left.is_share and right.constant > 1:
            raise InputError(
                f"{left} {sign} {right.constant:g}",
                "a number between 0 and 1",
                f"rates are fractions, not percentages: {right.constant:g} % is {right.constant / 100:g}",
            )
    return RateConstraint(left, sign, right) if isinstance(right, Rates) else NotImplemented


def _is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Real, np.number)) and not isinstance(value, bool)


def _number(value: Any) -> float:
    if not np.isfinite(value):
        raise InputError(f"{value} in a combination of rates", "finite numbers", "leave out a bound that does not bind")
    return float(value)

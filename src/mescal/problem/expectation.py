"""Expectations and their algebra: E(fn, over=data), sums, scalar multiples, comparisons.

An `Expectation` is  constant + sum_k a_k E[fn_k(x, sample of source_k)],  closed under +, - and scalar *;
a comparison with a number, an array or another expectation makes a `Constraint`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jax.core import Tracer

from ..errors import InputError, InputTypeError
from .constraint import Constraint, Terms, figures
from .over import Source, as_source
from .row_checks import real_array


@dataclass(frozen=True, eq=False)
class Term:
    """One summand: `coefficient * E[fn(x, sample)]`, or `coefficient * fn(x)` where `source` is None."""

    coefficient: float
    fn: Callable
    source: Source | None


class Expectation:
    """A linear combination of expectations; made by `E`, combined by arithmetic, compared into constraints.

    `==` makes a constraint, so expressions hash by identity.
    """

    __array_ufunc__ = None  # numpy scalars and arrays on the left defer to the methods below
    __slots__ = ("constant", "terms")

    def __init__(self, terms: tuple[Term, ...], constant: Any = 0.0):
        self.terms = terms
        self.constant = np.asarray(constant, dtype=np.float64)

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> "Expectation":
        if isinstance(other, Expectation):
            return Expectation(self.terms + other.terms, _sum_constants(self.constant, other.constant))
        constant = _constant(other)
        return NotImplemented if constant is None else Expectation(self.terms, _sum_constants(self.constant, constant))

    __radd__ = __add__

    def __neg__(self) -> "Expectation":
        return self * -1.0

    def __pos__(self) -> "Expectation":
        return self

    def __sub__(self, other: Any) -> "Expectation":
        if isinstance(other, Expectation):
            return self + -other
        constant = _constant(other)
        return NotImplemented if constant is None else self + -constant

    def __rsub__(self, other: Any) -> "Expectation":
        return -self + other

    def __mul__(self, factor: Any) -> "Expectation":
        if isinstance(factor, Expectation):
            raise InputTypeError(
                "a product of two expectations",
                "sums, differences and scalar multiples: E[a] * E[b] is not an expectation of one sample",
                "write mescal.of(lambda a, b: a * b, first, second), or make each a constraint of its own",
            )
        scalar = as_scalar(factor)
        if scalar is None:
            return NotImplemented
        terms = tuple(Term(scalar * t.coefficient, t.fn, t.source) for t in self.terms)
        return Expectation(terms, scalar * self.constant)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Any:
        if isinstance(divisor, Expectation):
            from .statements.ratio import Ratio

            return Ratio(self, divisor)
        scalar = as_scalar(divisor)
        if scalar is None:
            return NotImplemented
        if scalar == 0:
            raise InputError("an expectation divided by zero", "a divisor other than zero", "check the divisor")
        return self * (1.0 / scalar)

    def __abs__(self):
        raise InputTypeError(
            f"the absolute value of {self}",
            "sums, differences, scalar multiples and ratios of expectations",
            'bound it from both sides, {"above": e <= 0.1, "below": e >= -0.1}, or write mescal.worst([e, -e])',
        )

    def __rtruediv__(self, above: Any):
        raise InputTypeError(
            f"{above} over {self}",
            "an expectation over an expectation, or over a number",
            "turn the comparison around, or write mescal.of(lambda a: 1 / a, expectation)",
        )

    def _refuse(self, *_: Any):
        raise InputTypeError(
            "an expectation in a power or a matrix product, or as a number",
            "sums, differences, scalar multiples and ratios of expectations",
            "compute it inside the function, per sample, or write mescal.of(function, expectation, ...)",
        )

    __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __floordiv__ = __rfloordiv__ = _refuse
    __mod__ = __rmod__ = __float__ = __int__ = _refuse

    def __le__(self, other: Any):
        return _compare(self, other, "<=")

    def __ge__(self, other: Any):
        return _compare(self, other, ">=")

    def __eq__(self, other: Any):
        return _compare(self, other, "==")

    def __ne__(self, other: Any):
        raise InputTypeError("a comparison with !=", "<=, >= or ==", "state the constraint with one of these")

    def __lt__(self, other: Any):
        raise InputTypeError(
            "a strict comparison",
            "<=, >= or ==",
            "write <= or >=: closed sets have minimisers; for max(a, b) write mescal.worst([a, b])",
        )

    __gt__ = __lt__

    def __repr__(self) -> str:
        parts = [
            f"{_factor(t.coefficient)}E({_name(t.fn)}{'' if t.source is None else f', {t.source}'})" for t in self.terms
        ]
        if self.constant.any() or not parts:
            parts.append(figures(self.constant))
        return " + ".join(parts).replace(" + -", " - ")


def E(fn: Callable, over: Any = None, weights: Any = None) -> Expectation:
    """The expectation of `fn(x, sample)` over a population or a stream.

    **Arguments:**

    - `fn`: a function of the parameters and ONE sample; a scalar for objectives, scalar or array for constraints. It is
      read when a problem first meets parameters: numbers and arrays that it takes from elsewhere are those of that moment.
    - `over`: a pytree of arrays with one leading axis (a finite population), `shard(arrays, mesh)` for one over many
      devices, `on_disk(paths)` for one larger than memory, `stream(rows)` for draws of rows, or a `Sampler`.
      Without it the term is deterministic, `fn(x)`: no samples, no noise. Arrays are copied here: what is written into
      them later is not seen. Files are not.
    - `weights`: one weight per row of a population; default: all rows count alike.

    **Returns:** an `Expectation`: supports `+`, `-`, scalar `*` and `/`, and `<=`, `>=`, `==`.
    """
    if not callable(fn):
        raise InputTypeError(
            f"E got {type(fn).__name__} {str(fn)[:40]!r} as its function",
            "a function of (parameters, one sample)",
            "write E(lambda x, row: ..., over=data); plain numbers can be added without E",
        )
    if over is None:
        if weights is not None:
            raise InputError("weights without data", "weights only together with over=", "pass over=data as well")
        return Expectation((Term(1.0, fn, None),))
    return Expectation((Term(1.0, fn, as_source(over, weights)),))


def _compare(left: Expectation, right: Any, sign: Literal["<=", ">=", "=="]):
    difference = left - right
    if not isinstance(difference, Expectation):
        return NotImplemented  # the other side knows how to be compared
    bound = right.constant if isinstance(right, Expectation) else np.asarray(right, np.float64)
    # what is compared with zero is bounded by its constant: E(a) - 0.1 <= 0 is E(a) <= 0.1
    terms = Terms(sign, bound if bound.any() else 0.0 - difference.constant)  # 0 and not -0, which people would read
    return Constraint(-difference, "<=", terms) if sign == ">=" else Constraint(difference, sign, terms)


def _constant(value: Any) -> np.ndarray | None:
    if isinstance(value, Tracer):
        raise InputTypeError(
            "a traced JAX value in an expectation",
            "concrete numbers",
            "build the problem outside of jit and grad",
        )
    if type(value).__module__.partition(".")[0] == __name__.partition(".")[0]:
        return None  # it may know what to do with an expectation
    array = real_array(value, "an expectation is combined with something else")
    if not np.isfinite(array).all():
        raise InputError(
            "a constant of an expectation is NaN or infinite",
            "finite numbers",
            "leave out a bound that does not bind",
        )
    return array


def as_scalar(value: Any) -> float | None:
    """A factor as a number; None for what knows by itself what to do with an expectation."""
    constant = _constant(value)
    if constant is None:
        return None
    if constant.ndim:
        raise InputTypeError(
            f"an expectation multiplied by an array of shape {constant.shape}",
            "a scalar factor",
            "multiply inside the function: E(lambda x, row: matrix @ fn(x, row), over=...)",
        )
    return float(constant)


def _sum_constants(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    try:
        return left + right
    except ValueError as error:
        raise InputError(
            f"constants of shapes {left.shape} and {right.shape} in one expectation",
            "shapes that agree",
            "check the lengths of the bounds",
        ) from error


def _factor(coefficient: float) -> str:
    return {1.0: "", -1.0: "-"}.get(coefficient, f"{coefficient:g} * ")


def _name(fn: Callable) -> str:
    return getattr(fn, "__name__", type(fn).__name__)

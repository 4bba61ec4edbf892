"""Risk of a random value f(x, sample): its tail, its spread, its entropic mean, and how often it is positive.

    CVaR_p(f)     = min_t  t + E[(f - t)^+] / (1 - p)     with softplus of width w for ( )^+: too large by at most w ln 2/(1 - p)
    variance(f)   = min_m  E[(f - m)^2]
    entropic(f)   = T ln E[exp(f/T)]:   <= b  is  E[exp((f - b)/T)] <= 1
    P(f > 0) <= q   follows from  CVaR_(1-q)(f) <= 0;     P(f >= 0) >= p   from  CVaR_p(-f) <= 0

All may be minimised or bounded from above. The last are conservative: they hold, and by more than was asked for.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...checks import number
from ...errors import InputTypeError
from ..constraint import Constraint, Terms
from ..expectation import E, Expectation, Term
from .algebra import Statement
from .lifting import Lift
from .values import At, term_at

WIDTH = 0.01  # in units of f, where none is given


class _OfSamples(Statement):
    """A statement about the values of one function over one source."""

    def __init__(self, fn: Callable, over: Any, weights: Any = None):
        (self.term,) = E(fn, over=over, weights=weights).terms

    def _mean(self, fn: Callable) -> Expectation:
        return Expectation((Term(1.0, fn, self.term.source),))

    @property
    def _name(self) -> str:
        return getattr(self.term.fn, "__name__", "a function")


class CVaR(_OfSamples):
    """The mean of the worst share 1 - level of the values."""

    only_above = (
        "the mean of a tail can be kept small, not large: bound the mean from below, or the other tail, cvar of -f"
    )

    def __init__(self, fn: Callable, level: float, over: Any, weights: Any, width: float):
        super().__init__(fn, over, weights)
        share = number(0, 1, advice="write level=0.9 for the mean of the largest tenth")
        self.level, self.width = share("level", level), number(0)("width", width)

    @property
    def error(self) -> float:
        """By how much smoothing may make it too large."""
        return self.width * math.log(2) / (1 - self.level)

    def above(self, lift: Lift, name: str) -> Expectation:
        t = lift.scalar(f"{name}: quantile", lambda at: term_at(self.term, at).quantile(self.level, self.width))
        fn, width = self.term.fn, self.width
        tail = self._mean(lambda z, *s: width * jax.nn.softplus((fn(z.x, *s) - t(z)) / width))
        return E(t) + (1 / (1 - self.level)) * tail

    def value_at(self, at: At) -> float:
        seen = term_at(self.term, at)
        order = np.argsort(seen.values)
        place = int(np.searchsorted(np.cumsum(seen.weights[order]), self.level))
        t = float(seen.values[order][min(place, len(order) - 1)])
        return t + float(seen.weights @ np.maximum(seen.values - t, 0)) / (1 - self.level)

    def __repr__(self) -> str:
        return f"cvar({self._name}, {self.level:g}; at most {self.error:.2g} too large)"


class Variance(_OfSamples):
    """The mean square of what is left after the mean is taken off."""

    only_above = (
        "a spread can be kept small, not large: turn the sign or the comparison, or bound a mean from below instead"
    )

    def above(self, lift: Lift, name: str) -> Expectation:
        m, fn = lift.scalar(f"{name}: mean", lambda at: term_at(self.term, at).mean), self.term.fn
        return self._mean(lambda z, *s: (fn(z.x, *s) - m(z)) ** 2)

    def value_at(self, at: At) -> float:
        seen = term_at(self.term, at)
        return float(seen.weights @ (seen.values - seen.mean) ** 2)

    def __repr__(self) -> str:
        return f"variance({self._name})"


class Entropic(_OfSamples):
    """T ln E[exp(f/T)]: the mean for large T, the worst value for small."""

    only_above = "this risk can be kept small, not large: bound the mean from below instead"

    def __init__(self, fn: Callable, temperature: float, over: Any, weights: Any):
        super().__init__(fn, over, weights)
        scale = number(0, advice="write one in units of the function: the smaller, the closer to the worst value")
        self.temperature = scale("temperature", temperature)

    def at_most(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        if bound.terms or bound.constant.ndim:
            return super().at_most(bound, lift, name)
        fn, T, b = self.term.fn, self.temperature, float(bound.constant)
        # in units of f: T (E[exp((f - b)/T)] - 1) is E[f] - b for large T
        tail = lift.plain(self._mean(lambda x, *s: T * jnp.exp((fn(x, *s) - b) / T))) <= T
        return {name: replace(tail, terms=Terms("<=", np.asarray(b), temperature=T))}

    def above(self, lift: Lift, name: str) -> Expectation:
        r, fn, T = lift.scalar(f"{name}: risk", self.value_at), self.term.fn, self.temperature
        tail = self._mean(lambda z, *s: T * jnp.exp((fn(z.x, *s) - r(z)) / T)) <= T
        lift.side(f"{name}: risk", replace(tail, terms=Terms("<=", temperature=T)), r)
        return E(r)

    def value_at(self, at: At) -> float:
        seen = term_at(self.term, at)
        top = float(seen.values.max())
        return top + self.temperature * math.log(float(seen.weights @ np.exp((seen.values - top) / self.temperature)))

    def __repr__(self) -> str:
        return f"entropic({self._name}, {self.temperature:g})"


class Chance(_OfSamples):
    """The probability that f is positive; to be bounded."""

    def __init__(self, fn: Callable, over: Any, weights: Any, width: float):
        super().__init__(fn, over, weights)
        self.width = number(0)("width", width)

    def above(self, lift: Lift, name: str) -> Expectation:
        raise InputTypeError(
            f"{self} in an objective or a sum",
            "a bound on it: chance(fn, over=d) >= 0.9, or <= 0.1",
            "minimise E of a smooth indicator, jax.nn.sigmoid(fn / width), instead",
        )

    below = above

    def exact(self, lift: Lift, name: str) -> Expectation:
        raise InputTypeError(
            f"{self} held at a value", f"{self} bounded from above or from below", "bound it by <= or by >="
        )

    def at_most(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        return self._tail(1.0, 1 - self._share(bound)).at_most(Expectation(()), lift, name)

    def at_least(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        return self._tail(-1.0, self._share(bound)).at_most(Expectation(()), lift, name)

    def _tail(self, sign: float, level: float) -> CVaR:
        fn = self.term.fn
        tail = CVaR(fn, level, None, None, self.width)
        tail.term = Term(1.0, lambda x, *s: sign * fn(x, *s), self.term.source)
        return tail

    def _share(self, bound: Expectation) -> float:
        if bound.terms or bound.constant.ndim:
            raise InputTypeError(
                "a chance compared with an expectation", "a number between 0 and 1", "bound it by a number"
            )
        share = number(0, 1, advice="write 0.9 for nine tenths, 0.999 for nearly always")
        return share("the bound of a chance", float(bound.constant))

    def value_at(self, at: At) -> float:
        seen = term_at(self.term, at)
        return float(seen.weights @ (seen.values > 0))

    def __repr__(self) -> str:
        return f"chance({self._name} > 0)"


def cvar(fn: Callable, level: float, over: Any, weights: Any = None, width: float = WIDTH) -> Statement:
    """The mean of the worst share `1 - level` of `fn(x, sample)`: for level 0.9, of its largest tenth.

    **Arguments:**

    - `fn`, `over`, `weights`: as in `E`.
    - `level`: between 0 and 1.
    - `width`: of the smoothed kink, in units of fn. The value is too large by at most `width ln 2 / (1 - level)`.
    """
    return CVaR(fn, level, over, weights, width)


def variance(fn: Callable, over: Any, weights: Any = None) -> Statement:
    """The variance of `fn(x, sample)`, to be minimised or bounded from above; arguments as in `E`."""
    return Variance(fn, over, weights)


def entropic(fn: Callable, temperature: float, over: Any, weights: Any = None) -> Statement:
    """The entropic risk `T ln E[exp(fn/T)]`, to be minimised or bounded from above; `temperature` T in units of fn."""
    return Entropic(fn, temperature, over, weights)


def chance(fn: Callable, over: Any, weights: Any = None, width: float = WIDTH) -> Statement:
    """The probability that `fn(x, sample)` is positive, to be bounded from either side; conservative, by CVaR.

    "90 % of the outputs must exceed 0.8" is `chance(lambda x, row: output(x, row) - 0.8, over=rows) >= 0.9`.

    **Arguments:**

    - `fn`, `over`, `weights`: as in `E`.
    - `width`: as in `cvar`.
    """
    return Chance(fn, over, weights, width)

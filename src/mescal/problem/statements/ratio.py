"""Ratios of expectations: precision, recall in a group, a rate among those for whom something holds.

    E[a]/E[b] <= r   is   E[a] - r E[b] <= 0   with   E[b] >= floor

Without the floor a model that makes E[b] vanish, one that predicts nothing, would meet every bound on its precision. Minimised or
in a sum, it is E[a/d] with E[b] = d, and the scalar d never below the floor: a scalar t with E[a] - t E[b] <= 0 would run away to
-inf where E[b] can change its sign, at a violation of the floor that stays bounded.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...checks import real_number
from ...errors import InputError, InputTypeError
from ..constraint import Constraint, Terms
from ..expectation import E, Expectation, Term
from ..over import RowStream
from ..row_checks import describe
from ..source import Sampler
from .algebra import Kind, Statement
from .lifting import Lift
from .values import At, mean_at

FLOOR = 0.01  # of the denominator, where none is given


class Ratio(Statement):
    """An expectation over another one, which is positive; made by `E(a) / E(b)`, `ratio` or `rate`."""

    def __init__(self, numerator: Expectation, denominator: Expectation, floor: float = FLOOR):
        if numerator.constant.ndim or denominator.constant.ndim:
            raise InputTypeError("a ratio of vectors", "a ratio of scalars", "state one ratio for every component")
        self.numerator, self.denominator, self.floor = numerator, denominator, floor

    def at_most(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        return self._compared("<=", bound, lift, name) if not bound.terms else super().at_most(bound, lift, name)

    def at_least(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        return self._compared(">=", bound, lift, name) if not bound.terms else super().at_least(bound, lift, name)

    def equal(self, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        return self._compared("==", bound, lift, name) if not bound.terms else super().equal(bound, lift, name)

    def above(self, lift: Lift, name: str) -> Expectation:
        own = f"{name}: denominator"
        value = lift.scalar(own, lambda at: mean_at(self.denominator, at), (self.floor, np.inf))
        lift.side(own, (lift.plain(self.denominator) - E(value)) == 0, value)
        return _over(self.numerator, value)

    below = exact = above

    def _compared(self, sign: Kind, bound: Expectation, lift: Lift, name: str) -> dict[str, Constraint]:
        """As numerator - bound denominator, beside the floor."""
        over = lift.side(f"{name} (denominator)", lift.plain(self.denominator) >= self.floor)
        number = float(bound.constant)
        body = lift.plain(self.numerator - number * self.denominator)
        compared = body <= 0 if sign == "<=" else body >= 0 if sign == ">=" else body == 0
        return {name: replace(compared, terms=Terms(sign, np.asarray(number), over=over))}

    def scaled(self, factor: float) -> "Ratio":
        return Ratio(factor * self.numerator, self.denominator, self.floor)

    def value_at(self, at: At) -> float:
        over = mean_at(self.denominator, at)
        if at.starting:
            over = max(over, self.floor)
        return mean_at(self.numerator, at) / (over if abs(over) > np.finfo(float).tiny else np.nan)

    def __repr__(self) -> str:
        return f"({self.numerator}) / ({self.denominator})"


def ratio(numerator: Expectation, denominator: Expectation, floor: float = FLOOR) -> Ratio:
    """`numerator / denominator`, with the least value that the denominator may have.

    **Arguments:**

    - `floor`: below which the denominator must not fall: its own constraint, which is reported beside the ratio's.
    """
    for part in (numerator, denominator):
        if not isinstance(part, Expectation):
            raise InputTypeError(
                f"a ratio of {type(part).__name__}", "two expectations", "write ratio(E(a, over=d), E(b, over=d))"
            )
    number = real_number(floor)
    if number is None or not 0 < number < np.inf:
        raise InputError(f"floor={floor!r}", "a positive number", f"leave it out for {FLOOR:g}")
    return Ratio(numerator, denominator, number)


def rate(event: Callable, given: Any = None, over: Any = None, weights: Any = None, floor: float = FLOOR) -> Any:
    """How often `event` holds, among the samples for which `given` does.

    **Arguments:**

    - `event`: a function of (parameters, one sample) between 0 and 1: a probability, or a smooth indicator.
    - `given`: nothing; one truth value per row, which says whom the rate is about; or a function like `event`, where that depends
      on the parameters: then the rate is a `Ratio` (precision: `rate(is_positive, given=is_predicted, over=people)`).
    - `over`, `weights`: as in `E`.
    - `floor`: of the share for which `given` holds, where it is a function.

    **Returns:** an expectation, or a ratio of two.
    """
    if not callable(event):
        raise InputTypeError(
            f"rate of {describe(event)}",
            "a function of (parameters, one sample) between 0 and 1",
            "write rate(lambda x, row: row[1], given=score, over=(features, labels)) for the precision of a score",
        )
    if given is None:
        return E(event, over=over, weights=weights)
    if callable(given):

        def each(x: Any, sample: Any) -> Any:
            return event(x, sample) * given(x, sample)

        each.__name__ = " * ".join(getattr(fn, "__name__", "a function") for fn in (event, given))
        both = E(each, over=over, weights=weights)
        whole = E(given, over=over, weights=weights)
        source = both.terms[0].source  # one source for both: they see the same draws
        return ratio(both, Expectation((Term(1.0, whole.terms[0].fn, source),)), floor)
    return E(
        event, over=_among(given, over), weights=None if weights is None else np.asarray(weights)[np.asarray(given)]
    )


def _among(given: Any, over: Any) -> Any:
    import jax

    if isinstance(over, (Sampler, RowStream)):
        raise InputTypeError(
            f"given={type(given).__name__}, one truth value per row, over {type(over).__name__}",
            "a function of (parameters, one sample), or arrays as over=",
            "draw from these rows alone, over=mescal.stream(the rows chosen), or write given=lambda x, row: row[0] > 60",
        )
    try:
        chosen = np.asarray(given)
    except ValueError:
        chosen = np.asarray(None)
    rows = {np.shape(leaf)[0] for leaf in jax.tree.leaves(over) if np.ndim(leaf)}
    if chosen.dtype != bool or chosen.ndim != 1 or rows != {len(chosen)}:
        raise InputTypeError(
            f"given={type(given).__name__} of type {chosen.dtype} and shape {chosen.shape}, over {sorted(rows)} rows",
            "one truth value per row of arrays, or a function of (parameters, one sample)",
            "write for example given=ages > 40, or given=lambda x, row: score(x, row)",
        )
    if not chosen.any():
        raise InputError("a rate among no rows at all", "rows for which `given` holds", "leave the group out")
    return jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], over)


def _over(expectation: Expectation, value: Callable) -> Expectation:
    """An expectation over x divided by a scalar: an expectation over both."""

    def quotient(fn: Callable) -> Callable:
        return lambda z, *sample: fn(z.x, *sample) / value(z)

    terms = tuple(Term(t.coefficient, quotient(t.fn), t.source) for t in expectation.terms)
    whole = Expectation(terms)
    constant = float(expectation.constant)
    return whole + constant * E(lambda z: 1 / value(z)) if constant else whole

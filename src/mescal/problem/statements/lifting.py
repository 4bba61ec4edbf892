"""Scalars that a statement adds to the parameters: names, where they start, and functions of the parameters with them.

A problem with statements is one in (x, auxiliary): the user's parameters, and a dict of scalars. Functions of x become functions
of both; where no statement needs a scalar, they stay as they are.
"""

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, NamedTuple

import jax
import numpy as np

from ...errors import InputError
from ...sets import Box, ConvexSet, Reals
from ..constraint import Constraint
from ..expectation import Expectation, Term
from ..layout import flatten_parameters
from .values import At


class Lifted(NamedTuple):
    """The user's parameters, and the scalars beside them."""

    x: Any
    auxiliary: dict[str, Any]


def joined(x: Any, auxiliary: Mapping[str, Any]) -> Any:
    """Parameters with scalars, where there are any."""
    return Lifted(x, dict(auxiliary)) if auxiliary else x


Start = Callable[[At], float]  # where a scalar starts, from the user's parameters and the samples


class Lift:
    """Collects what the statements of one problem add to it."""

    def __init__(self):
        self.starts: dict[str, Start] = {}
        self.ranges: dict[str, ConvexSet] = {}
        self.sides: dict[str, Constraint] = {}
        self.unit = 1.0  # what the statement that is being lowered is multiplied by
        self._lifted: dict[int, tuple[Callable, Callable]] = {}

    @contextmanager
    def times(self, factor: float):
        """What is lowered inside is multiplied by this."""
        before, self.unit = self.unit, self.unit * abs(factor)
        yield
        self.unit = before

    def scalar(
        self, name: str, start: Start, between: tuple[float, float] | None = None
    ) -> Callable[[Lifted], jax.Array]:
        """A new scalar, of all numbers or between two; how to read it from the parameters."""
        name = _free(name, self.starts)
        self.starts[name] = start if between is None else lambda at: float(np.clip(start(at), *between))
        self.ranges[name] = Reals() if between is None else Box(*between)

        def read(z: Lifted) -> jax.Array:
            return z.auxiliary[name]

        read.__name__ = name
        return read

    def side(self, name: str, constraint: Constraint, beside: Callable | None = None, unit: float = 1.0) -> str:
        """A constraint beside those that the user stated; its name. `beside` reads the scalar subtracted in it, `unit` times."""
        name = _free(name, self.sides)
        self.sides[name] = constraint if beside is None else replace(constraint, beside=beside.__name__, unit=unit)
        return name

    def of_x(self, fn: Callable) -> Callable:
        """A function of x as one of both; the same for the same function, so that it is traced once."""
        if id(fn) not in self._lifted:

            @wraps(fn, updated=())
            def lifted(z: Lifted, *sample: Any) -> Any:
                return fn(z.x, *sample)

            self._lifted[id(fn)] = fn, lifted
        return self._lifted[id(fn)][1]

    def plain(self, expectation: Expectation) -> Expectation:
        """An expectation over x as one over both."""
        terms = (Term(t.coefficient, self.of_x(t.fn), t.source) for t in expectation.terms)
        return Expectation(tuple(terms), expectation.constant)

    def dropped(self, expectation: Expectation) -> Expectation:
        """The same over x again, where there turned out to be no scalars."""
        own = {id(lifted): fn for fn, lifted in self._lifted.values()}
        terms = (Term(t.coefficient, own[id(t.fn)], t.source) for t in expectation.terms)
        return Expectation(tuple(terms), expectation.constant)


class Lifting:
    """The scalars of a problem, and the user's domain without them."""

    def __init__(self, starts: Mapping[str, Start], domain: ConvexSet, instead: Mapping[Any, Any] | None = None):
        self.starts, self.domain, self.instead = dict(starts), domain, {} if instead is None else instead

    def over(self, changed: Mapping[Any, Any]) -> "Lifting":
        """The same where other sources stand for those that it has now, by their keys."""
        instead = {stated: changed[now.key] for stated, now in self.instead.items() if now.key in changed}
        return Lifting(self.starts, self.domain, {**changed, **instead})

    def lift(self, x: Any, name: str = "x") -> Lifted:
        """Parameters with scalars at the values that samples have at x; what has them already stays."""
        own = x.x if isinstance(x, Lifted) else x
        _, vector = flatten_parameters(own, name)
        kind = vector.dtype  # scalars ask for no wider type than the parameters do
        if isinstance(x, Lifted):
            if set(x.auxiliary) != set(self.starts):
                raise InputError(
                    f"parameters with the auxiliary scalars {sorted(x.auxiliary)}",
                    f"those of this problem, {sorted(self.starts)}",
                    "pass x alone, or a start from a result of the same problem",
                )
            return Lifted(x.x, {scalar: np.asarray(value, kind) for scalar, value in x.auxiliary.items()})
        found = self._values(x, kind)
        for scalar, value in found.items():
            if not np.isfinite(value):
                raise InputError(
                    f"what is stated has the value {value} at {name} ({scalar})",
                    "a finite value",
                    "look for logarithms, roots and quotients outside of their domains, or start elsewhere",
                )
        return Lifted(x, found)

    def settled(self, x: Lifted) -> Lifted:
        """Parameters with scalars moved to the values that samples have at x, where these are finite."""
        kinds = {scalar: value.dtype for scalar, value in x.auxiliary.items()}
        found = self._values(x.x, np.dtype(np.float64))
        kept = {
            scalar: np.asarray(found[scalar] if np.isfinite(found[scalar]) else value, kinds[scalar])
            for scalar, value in x.auxiliary.items()
        }
        return Lifted(x.x, kept)

    def _values(self, x: Any, kind: np.dtype) -> dict[str, np.ndarray]:
        at = At(x, self.instead, starting=True)
        return {scalar: np.asarray(start(at), kind) for scalar, start in self.starts.items()}


def _free(name: str, taken: Mapping[str, Any]) -> str:
    number, found = 2, name
    while found in taken:
        number, found = number + 1, f"{name} {number}"
    return found

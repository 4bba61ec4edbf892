"""What a named problem is, what a file of this folder declares about one, and those that are declared, by name."""

import functools
import numbers
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..checks import real_number
from ..errors import InputError, InputTypeError
from ..problem import Problem
from ..registry import by_name, declared, unknown_name

Value = float | int | str
Cone = Literal["critical", "paper"]


@dataclass(frozen=True)
class Parameter:
    """A number or a word that a user may set.

    **Arguments:**

    - `default`: used unless another is given; its type is the parameter's type.
    - `help`: what it means, for people.
    - `low`, `high`: bounds of a number, themselves allowed.
    - `choices`: the words allowed; none: any.
    - `restates`: whether another value makes another problem; False for matters of representation.
    """

    default: Value
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    restates: bool = True

    @property
    def kind(self) -> type:
        """float, int or str."""
        return type(self.default)

    def parse(self, name: str, text: str) -> Value:
        """The value that a text stands for, as given on a command line; checked."""
        try:
            value = self.kind(text)
        except ValueError:
            raise self._ill_typed(name, text) from None
        return self.check(name, value)

    def check(self, name: str, value: Any) -> Value:
        """The value in the parameter's own type, or an error that says what is allowed."""
        accepted = {float: numbers.Real, int: numbers.Integral, str: str}[self.kind]
        beyond = (
            isinstance(value, numbers.Real) and real_number(value) is None
        )  # truth values, and what no float can be
        if not isinstance(value, accepted) or beyond:
            raise self._ill_typed(name, value)
        value = self.kind(value)
        if isinstance(value, str):
            if self.choices and value not in self.choices:
                raise unknown_name(name, value, self.choices)
        elif not (self.low is None or value >= self.low) or not (self.high is None or value <= self.high):
            raise InputError(f"{name}={value}", self.allowed, f"choose another {name}; the default is {self.default}")
        elif value != value or abs(value) == float("inf"):
            raise InputError(f"{name}={value}", "a finite number", f"the default is {self.default}")
        return value

    @property
    def allowed(self) -> str:
        """What may be given, in words."""
        if self.kind is str:
            return f"one of {', '.join(self.choices)}" if self.choices else "text"
        noun = "a whole number" if self.kind is int else "a number"
        bounds = [f"{sign} {bound:g}" for sign, bound in ((">=", self.low), ("<=", self.high)) if bound is not None]
        return " ".join([noun, " and ".join(bounds)]).strip()

    def _ill_typed(self, name: str, value: Any) -> InputTypeError:
        return InputTypeError(
            f"{name}={str(value)[:40]!r} ({type(value).__name__})",
            self.allowed,
            f"{name} is {self.help}; give it as such",
        )


@dataclass(frozen=True, eq=False)
class Instance:
    """What a builder returns: the problem, where to start, and what is known of its minimisers."""

    problem: Problem
    x0: np.ndarray
    optimum: float | None = None
    solution: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class NamedProblem:
    """A problem with its name, its parameters and a start.

    **Arguments:**

    - `name`, `parameters`: what `get` needs to make it again.
    - `problem`, `x0`: what is to be solved, and from where.
    - `description`: a sentence.
    - `optimum`: the best objective known, None where none is.
    - `solution`: a minimiser, in float64 and the shape of `x0`; None where it is not known.
    - `cone`: the cone on which a certificate can be expected to pass at the minimisers.
    """

    name: str
    problem: Problem
    x0: np.ndarray
    parameters: dict[str, Value]
    description: str
    optimum: float | None
    solution: np.ndarray | None
    cone: Cone

    @property
    def kind(self) -> str:
        """The first part of the name."""
        return self.name.partition("/")[0]

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.parameters.items())
        return f"NamedProblem({self.name!r}{given})"


@dataclass(frozen=True)
class Entry:
    """What a file of this folder says about one of its problems.

    **Arguments:**

    - `name`: `kind/problem`.
    - `build`: a function of the parameters, given by name, that returns a `Instance`.
    - `description`: a sentence; the formula is in the file's docstring.
    - `parameters`: what can be set, by name.
    - `optimum`: the best objective known with the default parameters, where the builder cannot tell.
    - `cone`: see `NamedProblem`.
    """

    name: str
    build: Callable[..., Instance]
    description: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    optimum: float | None = None
    cone: Cone = "critical"

    def make(self, parameters: Mapping[str, Any]) -> NamedProblem:
        """The problem with checked parameters."""
        statement = self.build(**parameters)
        usual = all(
            parameters[name] == parameter.default for name, parameter in self.parameters.items() if parameter.restates
        )
        optimum = self.optimum if statement.optimum is None and usual else statement.optimum
        return NamedProblem(
            name=self.name,
            problem=statement.problem,
            x0=statement.x0,
            parameters=dict(parameters),
            description=self.description,
            optimum=optimum,
            solution=statement.solution,
            cone=self.cone,
        )


def names() -> tuple[str, ...]:
    """The names of all problems; numbers in them sort as numbers."""
    return tuple(sorted(_entries(), key=lambda name: [part.zfill(4) for part in re.split(r"(\d+)", name)]))


def about(name: str) -> Entry:
    """What is declared about a problem: description, parameters with defaults and ranges. Reads no data."""
    if not isinstance(name, str) or name not in _entries():
        raise unknown_name("problem", name, names())
    return _entries()[name]


def get(name: str, **parameters: Any) -> NamedProblem:
    """A problem by name.

    **Arguments:**

    - `name`: one of `names()`.
    - `parameters`: any of `about(name).parameters`; the others take their defaults.
    """
    entry = about(name)
    _require_known(entry, parameters)
    return entry.make(
        {
            known: parameter.check(known, parameters.get(known, parameter.default))
            for known, parameter in entry.parameters.items()
        }
    )


def parse(name: str, texts: Mapping[str, str]) -> dict[str, Value]:
    """Parameters of a problem from text, as given on a command line: {"tau": "0.3"} -> {"tau": 0.3}, checked."""
    entry = about(name)
    _require_known(entry, texts)
    return {given: entry.parameters[given].parse(given, text) for given, text in texts.items()}


def _require_known(entry: Entry, given: Mapping[str, Any]):
    for name in given:
        if name not in entry.parameters:
            raise unknown_name(f"parameter of {entry.name}", name, entry.parameters)


@functools.cache
def _entries() -> dict[str, Entry]:
    return by_name(entry for group in declared(__package__ or "", "PROBLEMS") for entry in group)

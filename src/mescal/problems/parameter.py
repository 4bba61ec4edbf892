"""A parameter of a named problem: its default, what it means, which values it takes, and how text becomes one."""

import numbers
from dataclasses import dataclass
from typing import Any

from ..checks import real_number
from ..errors import InputError, InputTypeError
from ..registry import unknown_name

Value = float | int | str


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

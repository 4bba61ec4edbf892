"""Rounding of counts and checks of inputs, shared by the formulas."""

import math

from ..errors import InputError

# Relative; the formulas lose a few bits of 53, and a count that is whole on paper must not become the next one.
_SLACK = 1e-12


def count(value: float) -> int:
    """The smallest whole number >= max(1, value), up to the last bits of floating point."""
    if not math.isfinite(value):
        raise InputError(
            f"a formula asks for {value} samples or steps",
            "finite, positive constants and tolerances",
            "check that no tolerance is zero or so small that its powers underflow",
        )
    return max(1, math.ceil(value * (1 - _SLACK)))


def check_positive(**values: float) -> None:
    """Raise unless every value is a finite number above zero."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise InputError(
                f"{name.replace('_', ' ')} is {value}", "a finite number above zero", f"give a positive {name}"
            )


def check_probability(**values: float) -> None:
    """Raise unless every value lies strictly between 0 and 1."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise InputError(
                f"{name.replace('_', ' ')} is {value}",
                "a probability strictly between 0 and 1",
                "certainty cannot be had from samples; choose a number such as 0.95",
            )


def exceeded(name: str, value: float, limits: dict[str, float]) -> tuple[str, ...]:
    """One sentence for every limit that the value is above."""
    return tuple(
        f"The {name} {value:g} exceeds the {what} {limit:g}." for what, limit in limits.items() if value > limit
    )

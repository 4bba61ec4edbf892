"""Options of solvers, searches and baselines, checked when one is built: a count is a count, a factor is not negative."""

import dataclasses
import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from .errors import InputError, InputTypeError

Names = tuple[str, ...]


def real_number(value: Any) -> float | None:
    """A number as a float, finite or not; None for what is none: truth values, text, complex numbers, arrays, and whole numbers
    beyond all floats.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, np.integer, np.floating)):
        return None
    try:
        return float(value)  # pyright: ignore[reportArgumentType]
    except OverflowError:
        return None


def check_options(owner: Any, *, zero: Names = (), above_one: Names = (), below_one: Names = ()) -> None:
    """Raises `InputError` for an option that cannot be meant.

    **Arguments:**

    - `owner`: a dataclass whose defaults say what its options are: whole numbers, numbers, or something else.
    - `zero`: whole numbers that may be 0, as those may whose default is 0.
    - `above_one`, `below_one`: options that must exceed 1, and that must lie between 0 and 1.
    """
    for field in dataclasses.fields(owner):
        value, default = getattr(owner, field.name), field.default
        if isinstance(default, bool) or not isinstance(default, (int, float)):
            continue
        whole = isinstance(default, int)
        if isinstance(value, bool) or not isinstance(value, Integral if whole else Real):
            what = "a whole number" if whole else "a number"
            raise InputTypeError(f"{_name(owner)}({field.name}={value!r})", what, _advice(default))
        number = real_number(value)
        if number is None:
            raise InputError(f"{_name(owner)}({field.name}) is beyond all floats", "a number", _advice(default))
        least = 1 if whole and default != 0 and field.name not in zero else 0
        wrong, bounds = not (math.isfinite(number) and number >= least), f"at least {least}"
        if field.name in above_one:
            wrong, bounds = wrong or number <= 1, "above 1"
        elif field.name in below_one:
            wrong, bounds = not 0 < number < 1, "between 0 and 1"
        if wrong:
            raise InputError(f"{_name(owner)}({field.name}={value!r})", bounds, _advice(default))


def _name(owner: Any) -> str:
    return type(owner).__name__


def _advice(default: Any) -> str:
    return f"leave it out for the default, {default}"

"""What is asked, checked when it is asked: options of solvers, searches and baselines, and settings of runs.

A count is a count, a factor is not negative; errors have three parts.
"""

import dataclasses
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from .errors import InputError, InputTypeError

Names = tuple[str, ...]
DEFAULT = "leave it out for the default"


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


def refuse_mixed_keys(tree: Any, name: str) -> None:
    """Refuses a tree with a dict whose keys have no order, and so no place in a flat vector."""
    import jax  # here, and not above: checks of options need none of it

    try:
        jax.tree.structure(tree)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"{name} is a dict whose keys cannot be sorted", "keys of one kind", "name all of its arrays by text"
        ) from None


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


Check = Callable[[str, Any], Any]  # of a setting's name and value: the value as it is kept, or an error in three parts


def whole(least: int, most: int | None = None) -> Check:
    """An integer from `least` up to `most`."""
    expected = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"

    def check(name: str, value: Any) -> int:
        if not isinstance(value, (Integral, np.integer)) or isinstance(value, bool):
            raise InputTypeError(f"{name}={value!r}", expected, "leave it out for the default")
        if not least <= int(value) <= (float("inf") if most is None else most):
            raise InputError(f"{name}={value!r}", expected, "leave it out for the default")
        return int(value)

    return check


def number(above: float, below: float = float("inf"), at: bool = False, advice: str = DEFAULT) -> Check:
    """A number between two others; `at`: or equal to the first of them. `advice` is for what has no default."""
    words = {
        (0, np.inf): "a positive number",
        (0, 1): "a number between 0 and 1",
        (1, np.inf): "a number above 1",
        (-np.inf, np.inf): "a finite number",
    }
    expected = f"a number of at least {above:g}" if at else words[above, below]

    def check(name: str, value: Any) -> float:
        found = real_number(value)
        if found is None or not (above < found < below or (at and found == above)):
            raise InputError(f"{name}={value!r}", expected, advice)
        return found

    return check


def limit(name: str, value: Any) -> float:
    """A positive number, infinite for None."""
    found = np.inf if value is None else real_number(value)
    if found is None or not found > 0:
        raise InputError(f"{name}={value!r}", "a positive number, or None for no limit", "leave it out for no limit")
    return found


def one_of(*choices: Any, advice: str = "leave it out for the default") -> Check:
    """One of some texts, or None where that is among them."""

    def check(name: str, value: Any) -> Any:
        if not (value is None or isinstance(value, str)) or value not in choices:
            raise InputError(f"{name}={value!r}", f"one of {list(choices)}", advice)
        return value

    return check


WORDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}


def from_text(kind: type, text: str) -> Any:
    """A value of one of the kinds of `WORDS`, as a command line has it; `ValueError` for what is none."""
    if kind is not bool:
        return kind(text)
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def truth(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputTypeError(f"{name}={value!r}", "True or False", "leave it out for the default")
    return bool(value)


def function(name: str, value: Any) -> Any:
    """Something that can be called, or None."""
    if value is not None and not callable(value):
        raise InputTypeError(
            f"{name}={value!r}", "a function of one history row, or of a row and x", "leave it out if unsure"
        )
    return value

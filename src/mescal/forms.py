"""Records as JSON and back: one form for dataclasses of numbers, words, arrays and other records, read field by field.

What a field may hold is what its type says, so a reader needs no second description of a file: the first field that is missing or
of another kind is named. JSON has no infinity and no NaN. Such a number is null, and `not_finite` beside it has it in words:

    {"value": null, "lower": 0.5, "how": "...", "not_finite": {"value": "inf"}}

and of an array the words of its nulls, in their order. A field with the metadata `APART` is stored elsewhere, or not at all.
"""

import dataclasses
import math
import sys
import types
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from .errors import InputError
from .oracle.work import Tally

APART = {"apart": True}
NOT_FINITE = "not_finite"
NAMES = {"tolerance": "tol"}  # of fields that are called otherwise in JSON
WORDS = ("inf", "-inf", "nan")
LARGEST = 2**63  # whole numbers beyond are none of ours


class Unfit(ValueError):
    """Content that is not what a record holds: what was found, and what was expected."""

    def __init__(self, found: str, expected: str):
        self.found, self.expected = found, expected
        super().__init__(f"{found}; expected {expected}")


# --- writing ----------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A value in the types that JSON has; outside of records, numbers that it does not have are null alone."""
    if isinstance(value, Tally):
        return value.counts | {"total": value.total}
    if hasattr(value, "to_plain"):
        return value.to_plain()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _record(value)
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _record(value: Any) -> dict[str, Any]:
    content, missing = {}, {}
    for field in stored_fields(type(value)):
        name, item = NAMES.get(field.name, field.name), getattr(value, field.name)
        content[name] = plain(item)
        parts = item.items() if isinstance(item, Mapping) else [("", item)]
        for key, part in parts:
            if words := _words(part):
                missing[f"{name}.{key}" if key else name] = words
    return content | ({NOT_FINITE: missing} if missing else {})


def _words(value: Any) -> str:
    """The numbers of a value that JSON does not have."""
    row = isinstance(value, tuple) and all(isinstance(part, float) for part in value)
    if not row and not isinstance(value, (float, np.floating, np.ndarray)):
        return ""
    numbers = np.ravel(np.asarray(value))
    return " ".join(str(float(v)) for v in numbers[~np.isfinite(numbers)]) if numbers.dtype.kind == "f" else ""


# --- reading ----------------------------------------------------------------------------------------------------------


def typed(kind: Any, content: Any, where: str = "", **apart: Any) -> Any:
    """The record that `plain` wrote, or `Unfit`; `apart` are its fields that are stored elsewhere."""
    if not isinstance(content, dict):
        raise Unfit(f"{where.rstrip('.') or 'it'} is {_shown(content)}", "an object")
    missing = content.get(NOT_FINITE, {})
    if not isinstance(missing, dict) or not all(isinstance(words, str) for words in missing.values()):
        raise Unfit(f"its {where}{NOT_FINITE} is {_shown(missing)}", "words by name")
    missing, hints, given, names = dict(missing), _hints(kind), dict(apart), set()
    for field in stored_fields(kind):
        name = NAMES.get(field.name, field.name)
        names.add(name)
        if name in content:
            given[field.name] = _value(hints[field.name], content[name], f"{where}{name}", missing, name)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Unfit(f"it says nothing about {where}{name}", "a file that mescal wrote")
    for name in missing:
        if name.partition(".")[0] in names:  # others are those of another record in the same object
            raise Unfit(f"its {where}{NOT_FINITE} speaks of {_shown(name)}", "the names of its nulls")
    try:
        return kind(**given)
    except InputError as error:
        raise Unfit(f"its {where.rstrip('.')} cannot be: {error.found}", error.expected) from None


def value(hint: Any, content: Any, where: str) -> Any:
    """A value of that type which stands alone."""
    return _value(hint, content, where, {}, where)


def difference(content: Any, again: Any, where: str = "") -> Unfit | None:
    """The first entry in which a file differs from what its own parts say, which is `again`."""
    if isinstance(again, dict) and isinstance(content, dict):
        found = (
            difference(content[name], item, f"{where}{name}.")
            if name in content
            else Unfit(f"it says nothing about {where}{name}", "a file that mescal wrote")
            for name, item in again.items()
        )
        return next(filter(None, found), None)
    same = content == again and isinstance(content, bool) == isinstance(again, bool)
    return (
        None if same else Unfit(f"its {where.rstrip('.')} is {_shown(content)}", f"{_shown(again)}, as its parts say")
    )


def _value(hint: Any, content: Any, where: str, missing: dict[str, str], key: str) -> Any:
    """One value; `missing` has the words of its nulls under `key`, and loses what was read."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if content is None and key not in missing:
            return None
        return _value(next(kind for kind in inside if kind is not type(None)), content, where, missing, key)
    if hint is float or hint is np.ndarray:
        numbers = _numbers(content, missing.pop(key, "").split(), where)
        if hint is float and isinstance(numbers, list):
            raise Unfit(f"its {where} is {_shown(content)}", "a finite number, or null with its words beside it")
        return numbers if hint is float else np.asarray(numbers, np.float64)
    if origin is tuple and isinstance(content, list):
        return tuple(_value(inside[0], item, f"{where}[{i}]", {}, "") for i, item in enumerate(content))
    if (origin in (dict, Mapping) or hint is dict or _is_mapping(origin)) and isinstance(content, dict):
        kind = inside[1] if inside else Any
        return {n: _value(kind, item, f"{where}.{n}", missing, f"{key}.{n}") for n, item in content.items()}
    if hint is Any:
        return _numbers(content, missing.pop(key).split(), where) if key in missing else content
    if hint is Tally:
        return _tally(content, where)
    if read := getattr(hint, "from_plain", None):
        return read(content, where)
    if dataclasses.is_dataclass(hint):
        return typed(hint, content, f"{where}.")
    if isinstance(hint, type) and issubclass(hint, Enum):
        found = hint.__members__.get(content.upper()) if isinstance(content, str) and content.islower() else None
        if found is None:
            raise Unfit(f"its {where} is {_shown(content)}", f"one of {', '.join(m.lower() for m in hint.__members__)}")
        return found
    wanted, fits = _SIMPLE.get(hint, _SIMPLE.get(origin, ("an object", None)))
    if fits is None or not fits(content):
        raise Unfit(f"its {where} is {_shown(content)}", wanted)
    return content


_SIMPLE: dict[Any, Any] = {
    str: ("a text", lambda v: isinstance(v, str)),
    bool: ("true or false", lambda v: isinstance(v, bool)),
    int: ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool) and abs(v) < LARGEST),
    tuple: ("a list", None),
}


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _numbers(content: Any, words: list[str], where: str) -> Any:
    """A number, or nested lists of numbers that make an array; each null takes one of the words."""
    left = iter(words)

    def read(part: Any) -> Any:
        if isinstance(part, list):
            return [read(item) for item in part]
        if part is None:
            if (word := next(left, "")) not in WORDS:
                raise Unfit(f"its {where} is {_shown(content)}", "a finite number, or null with its words beside it")
            return float(word)
        if isinstance(part, bool) or not isinstance(part, (int, float)) or not abs(part) <= sys.float_info.max:
            raise Unfit(f"its {where} is {_shown(content)}", "finite numbers")
        return float(part)

    numbers = read(content)
    if next(left, None) is not None or not _is_even(numbers):
        raise Unfit(f"its {where} is {_shown(content)}", "numbers in rows of one length, with the words of its nulls")
    return numbers


def _is_even(numbers: Any) -> bool:
    parts = numbers if isinstance(numbers, list) else []
    return all(map(_is_even, parts)) and len({np.shape(part) for part in parts}) <= 1


def _tally(content: Any, where: str) -> Tally:
    counts = dict(_value(dict[str, Any], content, where, {}, ""))
    total = counts.pop("total", None)
    for name, count in counts.items():
        _value(int, count, f"{where}.{name}", {}, "")
    if set(counts) != set(Tally().counts) or min(counts.values()) < 0 or Tally(counts).total != total:
        raise Unfit(f"its {where} is {_shown(content)}", "the counts of a run, and their total")
    return Tally(counts)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def stored_fields(kind: Any) -> tuple[dataclasses.Field, ...]:
    """The fields of a record that are stored in its form."""
    return tuple(field for field in dataclasses.fields(kind) if not field.metadata.get("apart"))


def _shown(content: Any) -> str:
    text = repr(content)
    return text if len(text) <= 60 else f"{text[:57]}..."

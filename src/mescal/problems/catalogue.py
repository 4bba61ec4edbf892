"""The problems that the files of this folder declare, by name."""

import functools
import re
from collections.abc import Mapping
from typing import Any

from ..registry import by_name, declared, unknown_name
from .named import Entry, NamedProblem, Value


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

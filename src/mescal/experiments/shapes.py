"""What the JSON files of a run must look like: every field that is read, with the kind of its value.

A file may be damaged, edited, or made by somebody else: the first field that is missing or of another kind is named, and nothing
that reads a run has to look again. Numbers that JSON does not have are null.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .result_file import long_tolerance

MAX = sys.float_info.max
LARGEST = 2**63  # whole numbers beyond are none of ours


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MAX


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST


def _is_tolerance(value: Any) -> bool:
    try:
        long_tolerance(value)
    except (InputError, TypeError):
        return False
    return True


def _are_numbers(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_are_numbers, value)) and len({np.shape(part) for part in value}) <= 1
    return value is None or _is_number(value)


Kind = tuple[str, Callable[[Any], bool]]
TEXT: Kind = ("a text", lambda value: isinstance(value, str))
NUMBER: Kind = ("a finite number", _is_number)
MAYBE: Kind = ("a finite number or null", lambda value: value is None or _is_number(value))
WHOLE: Kind = ("a whole number", _is_whole)
SIZE: Kind = ("a whole number or null", lambda value: value is None or _is_whole(value))
TRUTH: Kind = ("true or false", lambda value: isinstance(value, bool))
OBJECT: Kind = ("an object", lambda value: isinstance(value, dict))
TEXTS: Kind = ("a list of texts", lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value))
TOLERANCE: Kind = ("a tolerance", _is_tolerance)
ROWS: Kind = (
    "numbers by name",
    lambda value: isinstance(value, dict) and all(map(_are_numbers, value.values())),
)
PARTS: Kind = (
    "constraints with their names, kinds and rows",
    lambda value: (
        isinstance(value, list)
        and all(
            isinstance(part, dict)
            and isinstance(part.get("name"), str)
            and isinstance(part.get("kind"), str)
            and _is_whole(part.get("rows"))
            for part in value
        )
    ),
)

MEASURED = {"value": MAYBE, "lower": MAYBE, "upper": MAYBE, "how": TEXT}
# A name that ends with "?" may be left out.
RESULT: dict[str, Any] = {
    "problem": TEXT,
    "solver": TEXT,
    "reason?": TEXT,
    "seed": WHOLE,
    "tol": TOLERANCE,
    "status": TEXT,
    "verdict": TEXT,
    "warnings?": TEXTS,
    "converged": TRUTH,
    "objective": MAYBE,
    "certificate": {
        "stationarity": MEASURED,
        "feasibility": MEASURED,
        "curvature": MEASURED,
        "relative_stationarity": MEASURED,
        "objective": MEASURED,
        "warnings": TEXTS,
    },
    "multipliers": ROWS,
    "constraints": ROWS,
    "slack": ROWS,
    "work": {"gradients": NUMBER, "hvps": NUMBER, "total": NUMBER, "certificate": NUMBER},
    "outer_iterations": WHOLE,
    "penalty": MAYBE,
    "seconds": {"total": NUMBER, "compile": NUMBER, "certificate": NUMBER},
    "versions": OBJECT,
    "machine": OBJECT,
    "parameters?": OBJECT,
    "options?": OBJECT,
    "description?": TEXT,
    "optimum?": MAYBE,
    "cone?": TEXT,
    "statement?": {"dimension": WHOLE, "population": SIZE, "constraints": PARTS, "domain": TEXT},
    "files?": {"history.csv": TEXT},
}
SOURCE = {"file": TEXT, "function": TEXT, "sha256": TEXT}
MAYBE_TEXT: Kind = ("a text or null", lambda value: value is None or isinstance(value, str))
CONFIG: dict[str, Any] = {
    "problem": TEXT,
    "source?": (
        "null, or the file, the function and the sha256 of a problem",
        lambda value: value is None or first_difference(value, SOURCE) is None,
    ),
    "parameters?": OBJECT,
    "solver?": TEXT,
    "options?": OBJECT,
    "seed?": WHOLE,
    "tol?": TOLERANCE,
    "cone?": TEXT,
    "record?": MAYBE_TEXT,
    "max_outer?": WHOLE,
    "max_inner?": WHOLE,
    "max_work?": MAYBE,
    "max_seconds?": MAYBE,
}


def check_shape(file: Path, content: Mapping[str, Any], shape: Mapping[str, Any]):
    """Raise where a file's content does not have the shape."""
    difference = first_difference(content, shape)
    if difference is None and shape is RESULT:
        sizes = [
            {name: np.shape(rows) for name, rows in content[key].items()} for key in ("constraints", "multipliers")
        ]
        difference = None if sizes[0] == sizes[1] else ("its multipliers do not fit its constraints", "one for each")
    if difference is not None:
        found, expected = difference
        raise InputError(
            f"{file} is damaged: {found}", expected, "restore it from a copy, or run it again with --force"
        )


def first_difference(content: Any, shape: Mapping[str, Any], where: str = "") -> tuple[str, str] | None:
    """The first field that is not as it must be, and what it must be; None if all are."""
    if not isinstance(content, dict):
        return f"{where.rstrip('.') or 'it'} is {_shown(content)}", "an object"
    for key, wanted in shape.items():
        name = key.removesuffix("?")
        if name not in content:
            if key == name:
                return f"it says nothing about {where}{name}", "a file that mescal wrote"
            continue
        value = content[name]
        if isinstance(wanted, Mapping):
            difference = first_difference(value, wanted, f"{where}{name}.")
            if difference is not None:
                return difference
        elif not wanted[1](value):
            return f"its {where}{name} is {_shown(value)}", wanted[0]
    return None


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."

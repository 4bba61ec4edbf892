"""The baselines of this folder by name."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..errors import InputTypeError
from ..registry import by_name, classes, make
from .base import Baseline


@cache
def found() -> Mapping[str, type[Baseline]]:
    """All baselines of this folder by name."""
    return by_name(classes(__package__ or "", Baseline))


def names() -> tuple[str, ...]:
    """The names of all baselines."""
    return tuple(found())


def get(name: Any, **options: Any) -> Baseline:
    """The baseline of that name with the given settings."""
    if not isinstance(name, str):
        raise InputTypeError(f"baseline {name!r}", f"one of {list(names())}", "write for example get('stoch-ialm')")
    return make("baseline", name, found(), options, "look at mescal.baselines.names()")

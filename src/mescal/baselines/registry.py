"""Finding baselines: one file each in this folder, found by itself."""

import dataclasses
import difflib
import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import InputError, InputTypeError
from .base import Baseline


@cache
def found() -> dict[str, type[Baseline]]:
    """All baselines of this folder by name."""
    classes = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        for _, cls in inspect.getmembers(importlib.import_module(f"{__package__}.{module.name}"), inspect.isclass):
            if issubclass(cls, Baseline) and "name" in vars(cls):
                classes[cls.name] = cls
    return dict(sorted(classes.items()))


def names() -> tuple[str, ...]:
    """The names of all baselines."""
    return tuple(found())


def get(name: Any, **options: Any) -> Baseline:
    """The baseline of that name with the given settings."""
    if not isinstance(name, str):
        raise InputTypeError(f"baseline {name!r}", f"one of {list(names())}", "write for example get('stoch-ialm')")
    if name not in found():
        near = difflib.get_close_matches(name, names(), 1)
        raise InputError(
            f"unknown baseline {name!r}",
            f"one of {list(names())}",
            f"did you mean {near[0]!r}?" if near else "look at mescal.baselines.names()",
        )
    cls = found()[name]
    known = {field.name for field in dataclasses.fields(cls)}
    if set(options) - known:
        raise InputError(
            f"baseline {name!r} has no option {sorted(set(options) - known)}",
            f"some of {sorted(known)}",
            "check the spelling",
        )
    return cls(**options)

"""Finding sub-solvers: one file each in this folder, found by itself."""

import dataclasses
import difflib
import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import InputError, InputTypeError
from .base import Solver


@cache
def found() -> dict[str, type[Solver]]:
    """All final solver classes of this folder by name."""
    classes = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        for _, cls in inspect.getmembers(importlib.import_module(f"{__package__}.{module.name}"), inspect.isclass):
            if issubclass(cls, Solver) and "name" in vars(cls):
                classes[cls.name] = cls
    return dict(sorted(classes.items()))


def names() -> tuple[str, ...]:
    """Names that `minimize(solver=...)` takes."""
    return tuple(found())


def get(solver: Any, **options: Any) -> Solver:
    """The solver of that name with the given settings; a solver object is passed through."""
    if isinstance(solver, Solver):
        if options:
            raise InputError(
                f"options {sorted(options)} beside a solver object",
                "either a name with options or an object",
                "set them when you build the solver",
            )
        return solver
    if not isinstance(solver, str):
        raise InputTypeError(f"solver={solver!r}", f"one of {list(names())}, or a solver object", "write solver='auto'")
    if solver not in found():
        near = difflib.get_close_matches(solver, names(), 1)
        raise InputError(
            f"unknown solver {solver!r}",
            f"one of {list(names())}",
            f"did you mean {near[0]!r}?" if near else "use 'auto' if in doubt",
        )
    cls = found()[solver]
    known = {field.name for field in dataclasses.fields(cls)}
    if set(options) - known:
        raise InputError(
            f"solver {solver!r} has no option {sorted(set(options) - known)}",
            f"some of {sorted(known)}",
            "check the spelling",
        )
    return cls(**options)

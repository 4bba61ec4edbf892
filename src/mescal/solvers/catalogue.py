"""The sub-solvers of this folder by name; one that is named like its file is found without importing the others."""

import importlib
import importlib.util
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..errors import InputError, InputTypeError
from ..registry import by_name, classes, is_complete, make
from .base import Solver

ROOMS = (__package__, f"{__package__}.paper")  # where a file that is named like a solver is looked for first
PROMISES = {"constants", "success", "option"}  # what theory modes alone are told


@cache
def found() -> Mapping[str, type[Solver]]:
    """All solvers of this folder by name."""
    return by_name(classes(__package__ or "", Solver))


def in_its_file(name: str) -> dict[str, type[Solver]]:
    """The solver of that name, from the file that is named like it. Empty if there is none."""
    file = name.replace("-", "_")
    if not file.isidentifier():
        return {}
    for room in ROOMS:
        if importlib.util.find_spec(f"{room}.{file}") is not None:
            held = vars(importlib.import_module(f"{room}.{file}")).values()
            return {cls.name: cls for cls in held if is_complete(cls, Solver) and cls.name == name}
    return {}


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

    def advise(unknown: list[str]) -> str:
        theory = f"{solver}-theory" if f"{solver}-theory" in found() else "spider-theory"
        return f"theory modes have it: use {theory!r}" if PROMISES & set(unknown) else "check the spelling"

    return make("solver", solver, in_its_file(solver) or found(), options, "use 'auto' if in doubt", advise)

"""Finding what a folder holds by name, one file each: sub-solvers here, and whatever else is made the same way."""

import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..errors import InputError, InputTypeError
from .base import Solver

ROOMS = (__package__, f"{__package__}.paper")  # where a file that is named like a solver is looked for first
PROMISES = {"constants", "success", "option"}  # what theory modes alone are told


def final_classes(package: str, base: type) -> dict[str, Any]:
    """The classes of a package's files, those of its folders too, that have a name of their own, by that name."""
    classes = {}
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if _is_named(cls, base, vars(cls).get("name")):
                classes[vars(cls)["name"]] = cls
    return dict(sorted(classes.items()))


def _is_named(cls: Any, base: type, name: Any) -> bool:
    return inspect.isclass(cls) and issubclass(cls, base) and isinstance(name, str) and vars(cls).get("name") == name


def make(
    kind: str, name: str, classes: Mapping[str, Any], options: Mapping[str, Any], in_doubt: str, advise: Any = None
) -> Any:
    """The class of that name with the given settings, or an error that names the nearest; `advise` on options that it has not."""
    if name not in classes:
        near = difflib.get_close_matches(name, classes, 1)
        raise InputError(
            f"unknown {kind} {name!r}",
            f"one of {list(classes)}",
            f"did you mean {near[0]!r}?" if near else in_doubt,
        )
    known = {field.name for field in dataclasses.fields(classes[name])}
    if unknown := sorted(set(options) - known):
        raise InputError(
            f"{kind} {name!r} has no option {unknown}",
            f"some of {sorted(known)}",
            "check the spelling" if advise is None else advise(unknown),
        )
    return classes[name](**options)


@cache
def found() -> dict[str, type[Solver]]:
    """All final solver classes of this folder by name."""
    return final_classes(__package__ or "", Solver)


def in_its_file(name: str) -> dict[str, type[Solver]]:
    """The solver of that name, from the file that is named like it: no other has to be imported. Empty if there is none."""
    file = name.replace("-", "_")
    if not file.isidentifier():
        return {}
    for room in ROOMS:
        if importlib.util.find_spec(f"{room}.{file}") is not None:
            classes = [
                cls for cls in vars(importlib.import_module(f"{room}.{file}")).values() if _is_named(cls, Solver, name)
            ]
            return {name: classes[0]} if classes else {}
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

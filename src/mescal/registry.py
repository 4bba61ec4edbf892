"""Finding what the files of a folder hold, so that nothing is registered anywhere: classes, declarations, and by their names.

A class counts where it is complete: it has a `name` of its own where its base asks for one, and no abstract method.
"""

import dataclasses
import difflib
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .errors import InputError


def classes(package: str, base: type) -> tuple[type, ...]:
    """The complete classes of a kind in a package's files, those of its folders too, in the order of their names."""
    found = {
        cls
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
        for cls in vars(importlib.import_module(module.name)).values()
        if is_complete(cls, base) and cls.__module__.startswith(f"{package}.")
    }
    return tuple(sorted(found, key=lambda cls: (vars(cls).get("name", ""), cls.__name__)))


def is_complete(cls: Any, base: type) -> bool:
    """Whether it is a class of that kind of which there are objects."""
    if not inspect.isclass(cls) or not issubclass(cls, base) or cls is base or inspect.isabstract(cls):
        return False
    return "name" not in inspect.get_annotations(base) or isinstance(vars(cls).get("name"), str)


def by_name(things: Iterable[Any]) -> dict[str, Any]:
    """A dict from the `name` of each thing to the thing; refuses two of one name."""
    named: dict[str, Any] = {}
    for thing in things:
        if thing.name in named:
            raise InputError(
                f"{thing.name!r} is declared twice", "one declaration of each name", "rename one of the two"
            )
        named[thing.name] = thing
    return named


def declared(package: str, attribute: str) -> Iterator[Any]:
    """What the files of a package hold under a module-level name, in the order of the files' names."""
    for found in sorted(pkgutil.iter_modules(importlib.import_module(package).__path__), key=lambda file: file.name):
        module = importlib.import_module(f"{package}.{found.name}")
        if hasattr(module, attribute):
            yield getattr(module, attribute)


def exported(package: str, base: type) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose complete classes are public names, whether they are listed or not."""

    def get(name: str) -> Any:
        for cls in () if name.startswith("_") else classes(package, base):
            if cls.__name__ == name:
                return cls
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *(cls.__name__ for cls in classes(package, base))})

    return get, names


def unknown_name(what: str, name: Any, known: Iterable[str], in_doubt: str = "choose one of these") -> InputError:
    """The error for a name that is not among the known ones; it suggests the nearest."""
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
    advice = f"did you mean {near[0]!r}?" if near else in_doubt
    return InputError(f"there is no {what} named {name!r}", f"one of {', '.join(known) or '(none)'}", advice)


def make(
    kind: str, name: str, known: Mapping[str, Any], options: Mapping[str, Any], in_doubt: str, advise: Any = None
) -> Any:
    """The class of that name with the given settings, or an error that names the nearest; `advise` on options that it has not.

    A setting whose default is found by name, such as a search, may be given by its name.
    """
    if name not in known:
        raise unknown_name(kind, name, known, in_doubt)
    fields = {field.name: field.default for field in dataclasses.fields(known[name])}
    if unknown := sorted(set(options) - set(fields)):
        raise InputError(
            f"{kind} {name!r} has no option {unknown}",
            f"some of {sorted(fields)}",
            "check the spelling" if advise is None else advise(unknown),
        )
    return known[name](**{option: _meant(value, fields[option]) for option, value in options.items()})


def _meant(value: Any, default: Any) -> Any:
    by_its_name = getattr(type(default), "named", None)
    return by_its_name(value) if by_its_name is not None and isinstance(value, str) else value

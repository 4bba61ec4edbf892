"""Finding things by name: what the files of a folder declare, and which known name an unknown one is nearest to."""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from ..errors import InputError


def declared(package: ModuleType, attribute: str) -> Iterator[Any]:
    """What the files of a package hold under a module-level name, in the order of the files' names."""
    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        module = importlib.import_module(f"{package.__name__}.{found.name}")
        if hasattr(module, attribute):
            yield getattr(module, attribute)


def unknown_name(what: str, name: Any, known: Iterable[str]) -> InputError:
    """The error for a name that is not among the known ones; it suggests the nearest."""
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
    advice = f"the nearest is {near[0]!r}: use it, or choose another" if near else "choose one of these"
    return InputError(f"there is no {what} named {name!r}", f"one of {', '.join(known) or '(none)'}", advice)


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

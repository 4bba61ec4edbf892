"""External peers on the same problems: one file each, `METHODS` names what a file offers; found by being in this folder.

Fair best effort for each: float64, exact derivatives from one compiled program, documented defaults, its own stopping test
set to the tolerance of the certificate, a small grid of learning rates where there is one to choose. What they were
given is in each file's docstring.
"""

import importlib
import json
import pkgutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

DISTRIBUTIONS = (
    "scipy",
    "casadi",
    "pounce-solver",
    "torch",
    "cooper-optim",
    "humancompatible-train",
    "sif2jax",
    "optiprofiler",
)


def load(module: str) -> Any:
    """A file of this folder; None where a package that it needs is not installed."""
    try:
        return importlib.import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("benchmarks", "mescal"):
            raise
        return None


def methods() -> tuple[Any, ...]:
    """Every peer whose packages are installed."""
    modules = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    return tuple(method for module in modules for method in getattr(load(module), "METHODS", ()))


def versions(last: Path | None = None) -> dict[str, str]:
    """Versions of the peers' packages: installed ones, and, of others, those that a summary of stored runs was made with."""
    found = json.loads(last.read_text())["settings"]["peers"] if last and last.exists() else {}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

"""Data sets that come with scikit-learn: no download, but scikit-learn must be installed."""

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from ..distribution import install
from ..errors import InputError
from .places import sha256


def load_bundled(name: str, **options) -> Any:
    """What `sklearn.datasets.load_<name>` returns."""
    try:
        module = importlib.import_module("sklearn.datasets")
    except ImportError as error:
        raise InputError(
            f"the data set {name} comes with scikit-learn, which cannot be imported ({error})",
            "an environment with scikit-learn",
            install("sklearn"),
        ) from error
    return getattr(module, f"load_{name}")(**options)


def bundled_file(name: str, digest: str) -> Path | None:
    """A data file of scikit-learn, found without importing it, which takes a second; None unless it has this sha256."""
    found = importlib.util.find_spec("sklearn")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / "datasets" / "data" / name
        if path.is_file() and sha256(path) == digest:
            return path
    return None

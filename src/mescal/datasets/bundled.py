"""Data sets that come with scikit-learn: no download, but scikit-learn must be installed."""

import importlib
from typing import Any

from ..errors import InputError


def load_bundled(name: str, **options) -> Any:
    """What `sklearn.datasets.load_<name>` returns."""
    try:
        module = importlib.import_module("sklearn.datasets")
    except ImportError as error:
        raise InputError(
            f"the data set {name} comes with scikit-learn, which cannot be imported ({error})",
            "an environment with scikit-learn",
            "install mescal with its extra: mescal[sklearn]",
        ) from error
    return getattr(module, f"load_{name}")(**options)

"""The files of a data set: in `MESCAL_DATA`, else in the cache, else downloaded, or with scikit-learn; verified by sha256.

The cache is `MESCAL_CACHE`, else `mescal` in `XDG_CACHE_HOME`, else in the platform's folder for caches.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..distribution import install
from ..errors import InputError
from .download import download_members, sha256


@dataclass(frozen=True)
class Files:
    """The files that a data set is made of.

    **Arguments:**

    - `checksums`: sha256 of every file, by file name.
    - `archive`: the zip archive that holds them, as a path on the UCI repository; None where nobody publishes them.
    - `unpublished`: where there is no archive: why, as a clause.
    """

    checksums: Mapping[str, str]
    archive: str | None = None
    unpublished: str = ""

    def find(self, **how) -> dict[str, Path]:
        """Where each file lies; downloads those that are nowhere (`how`: see `download_members`)."""
        found = {name: path for name in self.checksums if (path := self._local(name))}
        missing = {name: digest for name, digest in self.checksums.items() if name not in found}
        if not missing:
            return found
        if self.archive is None:
            name, digest = next(iter(missing.items()))
            raise InputError(
                f"{name} is neither in the folder MESCAL_DATA nor in the cache, {cache_folder()}",
                f"the file with sha256 {digest}; it cannot be downloaded, because {self.unpublished}",
                f"put {name} into a folder and set MESCAL_DATA to that folder",
            )
        return found | download_members(self.archive, missing, cache_folder(), **how)

    def _local(self, name: str) -> Path | None:
        folder = data_folder()
        if folder is not None and (folder / name).is_file():
            self._verify(folder / name)
            return folder / name
        cached = cache_folder() / name
        # A cached file that is damaged counts as missing: the download replaces it.
        return cached if cached.is_file() and sha256(cached) == self.checksums[name] else None

    def _verify(self, path: Path):
        digest = sha256(path)
        if digest != self.checksums[path.name]:
            raise InputError(
                f"{path} has sha256 {digest}",
                f"sha256 {self.checksums[path.name]}",
                "get the file again, or move it out of the folder MESCAL_DATA to have it downloaded",
            )


def data_folder() -> Path | None:
    """The folder that `MESCAL_DATA` names; None if the variable is not set."""
    value = os.environ.get("MESCAL_DATA")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not (folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)):
        raise InputError(
            f"MESCAL_DATA={value} cannot be read as a folder",
            "a folder that holds data files",
            "correct the path, or unset MESCAL_DATA to use the cache and downloads",
        )
    return folder


def cache_folder() -> Path:
    """The user's cache of data files; it need not exist."""
    if own := os.environ.get("MESCAL_CACHE"):
        return Path(own).expanduser() / "datasets"
    if shared := os.environ.get("XDG_CACHE_HOME"):
        root = Path(shared).expanduser()
    elif sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path.home() / ".cache"
    return root / "mescal" / "datasets"


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

"""Where files are looked for: the folder `MESCAL_DATA`, then the user's cache.

The cache is `MESCAL_CACHE`, else `mescal` in `XDG_CACHE_HOME`, else in the platform's folder for caches.
"""

import hashlib
import os
import sys
from pathlib import Path

from ..errors import InputError


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


def sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

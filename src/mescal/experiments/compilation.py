"""The persistent compilation cache: what was compiled once is read from the disk by every later process.

It lies in `MESCAL_CACHE` or the user's folder for caches. JAX's own settings go first: `JAX_COMPILATION_CACHE_DIR` moves
it, `JAX_ENABLE_COMPILATION_CACHE=false` switches it off.
"""

import os
from pathlib import Path
from typing import Any

import jax

from ..datasets import cache_folder


def compilation_cache() -> Path:
    """The folder of compiled programs; it need not exist."""
    return cache_folder().parent / "compiled"


def keep_compilations(folder: Path | None = None) -> Path | None:
    """Switch the cache on, for this process; None where it is off or its folder cannot be written to."""
    if not _setting("jax_enable_compilation_cache"):
        return None
    if chosen := _setting("jax_compilation_cache_dir"):
        return Path(chosen)
    folder = compilation_cache() if folder is None else folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK | os.X_OK):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # Programs that compile in an instant are kept too: a run has dozens of them.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder


def kept_in() -> Path | None:
    """The folder in use in this process; None if the cache is off."""
    chosen = _setting("jax_compilation_cache_dir")
    return Path(chosen) if chosen and _setting("jax_enable_compilation_cache") else None


def _setting(name: str) -> Any:
    return getattr(jax.config, name)

"""Compiled programs that are kept on the disk, so that a later process reads them instead of compiling them again.

This is JAX's persistent compilation cache, with thresholds that keep small programs too: a solve has dozens of them. In the same
folder are those that a later process need not even trace (`kept_calls`).
"""

import os
import stat
from pathlib import Path
from typing import Any

import jax

from .errors import InputError
from .files import as_path
from .kept_calls import keep_calls_in

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def keep_compiled(folder: str | os.PathLike[str] | None = None) -> Path:
    """Keep what is compiled from now on in a folder, and read from there what an earlier process compiled.

    ```python
    import mescal

    mescal.keep_compiled()  # once, at the top of a script or notebook
    ```

    Entries are found by program, versions, options and kind of machine; there is nothing to invalidate, and the folder may be
    deleted at any time. A program in it is code: **whoever can write to the folder can run code in your process**, so keep
    it where only you can write.

    **Arguments:**

    - `folder`: made, for you alone, where it does not exist. By default the one that JAX was given
        (`JAX_COMPILATION_CACHE_DIR`, which then keeps its own thresholds), else the one of the command line: `compiled` in
        `MESCAL_CACHE`, or in mescal's folder among the user's caches.

    **Returns:** the folder. `JAX_ENABLE_COMPILATION_CACHE=false` switches all of it off.

    **Raises:** `InputError` for a file, for a folder that cannot be written to, and for one that others can write to.
    """
    chosen = jax_setting("jax_compilation_cache_dir")
    if folder is None and chosen:
        return Path(chosen)
    own = (default_folder() if folder is None else as_path(folder, "folder")).expanduser().absolute()
    _make(own)
    _require_own(own)
    if chosen != str(own):
        from jax.experimental.compilation_cache import compilation_cache

        compilation_cache.reset_cache()  # JAX looks at its settings once
    jax.config.update("jax_compilation_cache_dir", str(own))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")  # what they hold depends on the machine
    keep_calls_in(own)
    return own


def keep_compilations(folder: Path | None = None) -> Path | None:
    """Keep what is compiled where that can be done, as the command line does; None where it is off or its folder cannot be used."""
    if (used := kept_in()) is not None or not jax_setting("jax_enable_compilation_cache"):
        return used
    try:
        return keep_compiled(folder)
    except InputError:
        return None


def kept_in() -> Path | None:
    """The folder in use in this process; None if the cache is off."""
    chosen = jax_setting("jax_compilation_cache_dir")
    return Path(chosen) if chosen and jax_setting("jax_enable_compilation_cache") else None


def default_folder() -> Path:
    """The folder of compiled programs among the user's caches; it need not exist."""
    from .datasets.places import cache_folder

    return cache_folder().parent / "compiled"


def jax_setting(name: str) -> Any:
    """One of JAX's settings, as it is now."""
    return getattr(jax.config, name)


def _make(folder: Path):
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(
                f"{folder} is a file", "a folder for compiled programs", "name a folder, or one to be made"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {folder} cannot be made: {(error.strerror or str(error)).lower()}",
            "a folder for compiled programs",
            "choose a folder that you may write to",
        ) from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(
            f"the folder {folder} cannot be written to",
            "a folder for compiled programs",
            "choose a folder of your own, or change its permissions",
        )


def _require_own(folder: Path):
    """Refuse a folder in which somebody else can put programs; a sticky one too, where anybody can add a file."""
    if not hasattr(os, "geteuid"):  # permissions are not in the mode there
        return
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise InputError(
            f"the folder {folder} belongs to another user, who could run code in your process",
            "a folder of your own",
            "choose another; it is made where it does not exist",
        )
    if found.st_mode & OTHERS_WRITE:
        raise InputError(
            f"others can write to the folder {folder} (mode {stat.S_IMODE(found.st_mode):o}) and so run code in your process",
            "a folder that only you can write to",
            f"chmod go-w {folder}, once you have emptied it, or choose another folder",
        )

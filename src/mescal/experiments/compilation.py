"""Compiled programs that the command line keeps: switched on by itself where it can be, by `mescal.keep_compiled`.

JAX's own settings go first: `JAX_COMPILATION_CACHE_DIR` moves the folder, `JAX_ENABLE_COMPILATION_CACHE=false` switches the
cache off.
"""

from pathlib import Path

from ..errors import InputError
from ..kept_programs import jax_setting, keep_compiled


def keep_compilations(folder: Path | None = None) -> Path | None:
    """Switch the cache on, for this process; None where it is off or its folder cannot be used."""
    if not jax_setting("jax_enable_compilation_cache"):
        return None
    if chosen := jax_setting("jax_compilation_cache_dir"):
        return Path(chosen)
    try:
        return keep_compiled(folder)
    except InputError:
        return None


def kept_in() -> Path | None:
    """The folder in use in this process; None if the cache is off."""
    chosen = jax_setting("jax_compilation_cache_dir")
    return Path(chosen) if chosen and jax_setting("jax_enable_compilation_cache") else None

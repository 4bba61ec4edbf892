"""Compiled functions that are kept on the disk by what they are made from: a later process neither traces nor lowers them.

JAX's own cache of compiled programs finds one by its text, and to write that takes longer than most small solves. Here it is

    key = name of the function, its arguments but for the values of arrays, settings of JAX, versions and sources, the machine

A user's functions are among the arguments as their equations (`problem.traced`). What has no value that can be written down, as
functions and classes of the user's have none, is not kept, nor what calls anything outside of itself, as LAPACK: these programs
are compiled as ever, as are those of several devices and of accelerators. The same key never means two things; where in doubt,
nothing is kept.
"""

import hashlib
import io
import os
import pickle
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jaxlib.version
import numpy as np
from jax.extend.core import Primitive

ARRAY = object()  # stands where an array was
# Whose functions and classes are known by their names: their versions, or sources, are in the key.
OWN = {
    "builtins",
    "collections",
    "copyreg",
    "enum",
    "functools",
    "equinox",
    "jax",
    "jaxlib",
    "mescal",
    "ml_dtypes",
    "numpy",
}
UNKEPT = ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs")  # settings that programs of their own would not obey
MOST = 4096  # programs that a process holds, as many as JAX holds of one function; they are on the disk
_IMPORTED = time.time() - 2.0  # or a little before, as other modules were
_folder: list[Path] = []
_told: dict[str, Hashable] = {}
_programs: dict[Hashable, Callable[..., Any] | None] = {}


def keep_calls_in(folder: Path):
    """Keep them in a folder from now on, for as long as JAX keeps its own there."""
    _folder[:] = [folder]


def tell(name: str, value: Hashable):
    """What programs depend on from now on, beside their arguments."""
    _told[name] = value


def are_kept() -> bool:
    """Whether they are."""
    if not _folder or not _setting("jax_enable_compilation_cache"):
        return False
    if _setting("jax_compilation_cache_dir") != str(_folder[0]):
        return False
    return _is_plain() and not any(map(_setting, UNKEPT))


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


class Structure:
    """Arguments without their arrays, hashed once."""

    def __init__(self, structure: Any, rest: tuple[Any, ...]):
        self.parts = structure, rest
        self._hash = hash(self.parts)

    @classmethod
    def of(cls, arguments: Any) -> "tuple[Structure, list[Any]]":
        """The structure of arguments, and their arrays."""
        leaves, structure = jax.tree.flatten(arguments)
        rest = tuple(ARRAY if eqx.is_array(leaf) else leaf for leaf in leaves)
        return cls(structure, rest), [leaf for leaf in leaves if eqx.is_array(leaf)]

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Structure) and self.parts == other.parts)

    def with_arrays(self, arrays: Iterable[Any]) -> Any:
        """The arguments again, with as many arrays as there were."""
        structure, rest = self.parts
        given = iter(arrays)
        return jax.tree.unflatten(structure, [next(given) if leaf is ARRAY else leaf for leaf in rest])


def kept(
    function: Callable, parts: tuple[Structure, ...], arrays: list[Any], options: tuple[tuple[str, Any], ...]
) -> Callable[..., Any] | None:
    """A compiled function of the arrays alone: of this process, of an earlier one, or compiled now and kept; None if it cannot be.

    The arguments of `function` are those of the parts, one after the other.
    """
    if not all(_is_here(array.sharding) for array in arrays if isinstance(array, jax.Array)):
        return None
    shapes = tuple([(array.shape, array.dtype, getattr(array, "weak_type", False)) for array in arrays])
    known = _folder[0], function, parts, shapes, _settings(), *_told.items()
    if known not in _programs:
        if len(_programs) >= MOST:
            _programs.clear()
        _programs[known] = _found(function, parts, arrays, dict(options))
    return _programs[known]


def _found(function: Callable, parts: tuple[Structure, ...], arrays: list[Any], options: dict) -> Callable | None:
    try:
        key = _key(function, _together(parts, map(_Shape.of, arrays)), options)
    except Exception:  # whatever an object's own way of being written down raises
        return None
    path = _folder[0] / f"{function.__name__}-{key}-program"
    return _read(path) or _written(function, parts, arrays, options, path)


def _together(parts: tuple[Structure, ...], arrays: Iterable[Any]) -> tuple[Any, ...]:
    given = iter(arrays)
    return tuple(argument for part in parts for argument in part.with_arrays(given))


def _written(
    function: Callable, parts: tuple[Structure, ...], arrays: list[Any], options: dict, path: Path
) -> Callable | None:
    from jax.experimental.serialize_executable import serialize

    out: list[Any] = []

    def flat(*given: Any) -> list[Any]:
        leaves, tree = jax.tree.flatten(function(*_together(parts, given)))
        out[:] = [tree]
        return leaves

    flat.__name__ = flat.__qualname__ = path.name.replace("-", "_")  # one entry of JAX's cache for one of ours
    lowered = jax.jit(flat, compiler_options=options).lower(*arrays)
    text = lowered.as_text()
    if "callback" in text:
        return None
    with _cache_hits() as hits:
        program = lowered.compile()
    # what JAX has read cannot be written down again: parts of it are missing then; and lowering makes ready what is called
    if not hits and "custom_call" not in text:
        try:
            skeleton = jax.tree.unflatten(out[0], range(out[0].num_leaves))
            _write(path, pickle.dumps((skeleton, *serialize(program))))
        except Exception:  # nothing is kept: a program that cannot be, a full disk
            pass
    return _calling(program, out[0])


@contextmanager
def _cache_hits() -> Iterator[list[str]]:
    """What JAX reads from its own cache meanwhile, in any thread."""
    hits: list[str] = []

    def listen(event: str, **_: Any):
        if event.endswith("/cache_hits"):
            hits.append(event)

    jax.monitoring.register_event_listener(listen)
    try:
        yield hits
    finally:
        jax.monitoring.unregister_event_listener(listen)


def _read(path: Path) -> Callable | None:
    from jax.experimental.serialize_executable import deserialize_and_load

    try:
        skeleton, *program = pickle.loads(path.read_bytes())
        return _calling(deserialize_and_load(*program), jax.tree.structure(skeleton))
    except Exception:  # not there, cut short, or of a library that reads it no longer
        return None


def _calling(program: Callable, structure: Any) -> Callable[..., Any]:
    return lambda arrays: jax.tree.unflatten(structure, program(*arrays))


def _write(path: Path, content: bytes):
    """As a whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


# What a program is made from ---------------------------------------------------------------------------------------------


def _key(function: Callable, arguments: tuple[Any, ...], options: dict) -> str:
    # what JAX makes of a function has its name
    if "<" in function.__qualname__ or _root(function) != "mescal" or hasattr(function, "__wrapped__"):
        raise pickle.PicklingError(f"{function.__qualname__} is known by more than its name")
    written = io.BytesIO()
    unread = {name: value for name, value in jax.config.values.items() if "cache" not in name}
    surroundings = sorted(options.items()), sorted(_told.items()), _settings(), sorted(unread.items()), _machine()
    _ByValue(written).dump((function.__module__, function.__qualname__, arguments))
    written.write(repr((surroundings, _sources())).encode())
    return hashlib.sha256(written.getvalue()).hexdigest()[:40]


class _ByValue(pickle.Pickler):
    """Writes down what decides a program, and refuses what cannot be told by its value."""

    def __init__(self, file: Any):
        super().__init__(file, protocol=5)
        self.fast = True  # equal values alike, whether or not their parts are the same objects

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, Primitive):
            return "primitive", _place(obj)
        known_by = getattr(type(obj), "known_by", None)
        if known_by is None or _root(type(obj)) != "mescal":
            return None
        return type(obj).__qualname__, known_by(obj)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray):
            raise pickle.PicklingError("an array that is no argument")
        if _root(obj if hasattr(obj, "__qualname__") else type(obj)) not in OWN:
            raise pickle.PicklingError(f"{obj!r} is no part of the libraries")
        kind = getattr(type(obj), "__dataclass_params__", None)
        if kind is None or not (kind.eq and kind.frozen):
            return NotImplemented
        # what is compared, as where a process knows its programs by it: what was computed from that may be there or not
        return type(obj), tuple(getattr(obj, part.name) for part in fields(obj) if part.compare)


def _root(obj: Any) -> str:
    return str(getattr(obj, "__module__", None)).partition(".")[0]


@cache
def _place(primitive: Primitive) -> str:
    """Where a primitive of the libraries' own is found: those of others may compute anything under any name."""
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in ("jax", "equinox") and vars(module).get(f"{primitive.name}_p") is primitive:
            return f"{name}.{primitive.name}"
    raise pickle.PicklingError(f"{primitive} is no part of the libraries")


class _Shape(NamedTuple):
    """An array as a program knows it; a class of its own, so that nothing else is written down alike."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool

    @classmethod
    def of(cls, array: Any) -> "_Shape":
        return cls(tuple(array.shape), str(array.dtype), getattr(array, "weak_type", False))


def _settings() -> tuple[Any, ...]:
    """All of JAX's settings as they are here and now, but for those of its own cache."""
    return tuple(map(_setting, _names()))


@cache
def _names() -> tuple[str, ...]:
    return tuple(name for name in sorted(jax.config.values) if hasattr(jax.config, name) and "cache" not in name)


@cache
def _is_plain() -> bool:
    """Whether there is one device, a CPU, and sources are those that were imported."""
    return jax.default_backend() == "cpu" and jax.device_count() == 1 and _sources() is not None


@lru_cache(maxsize=64)
def _is_here(sharding: Any) -> bool:
    """Whether an array lies where programs look for it that were told nothing else: on this device, in its own memory."""
    device = jax.local_devices()[0]
    return sharding.device_set == {device} and sharding.memory_kind in (None, device.default_memory().kind)


@cache
def _sources() -> tuple[Any, ...] | None:
    """Versions, and sizes and times of our own files; None where one has changed since it was imported."""
    files = []
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        seen = path.stat()
        if seen.st_ctime >= _IMPORTED:
            return None
        files.append((str(path), seen.st_size, seen.st_mtime_ns))
    if not files:
        return None
    return sys.version, jax.__version__, jaxlib.version.__version__, np.__version__, eqx.__version__, files


@cache
def _machine() -> tuple[Any, ...]:
    """The processor, of which the code makes use, and what XLA's compiler reads from the environment."""
    told = {name: value for name, value in os.environ.items() if name.startswith(("XLA_", "TF_"))}
    return platform.machine(), tuple(_processor()), os.cpu_count(), cores(), sorted(told.items())


def _processor() -> Iterator[str]:
    """The first core as Linux tells it, but for its speed; elsewhere the name of the machine, too."""
    try:
        with open("/proc/cpuinfo") as lines:
            for line in lines:
                if not line.strip():
                    return
                if line.startswith(("vendor", "model", "cpu family", "stepping", "flags", "Features", "CPU ")):
                    yield line
    except OSError:
        yield from (platform.processor(), platform.node())


def cores() -> int:
    """How many this process may use; 0 where the system does not tell."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0

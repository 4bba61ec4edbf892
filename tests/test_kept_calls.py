"""Calls kept on the disk: a later process traces nothing of ours, and meets no program of anything but what it asks for.

What a process holds itself is dropped between two calls, as if another one had begun.
"""

import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from jax.extend.core import Primitive
from jax.sharding import SingleDeviceSharding

import mescal
from mescal import E, kept_calls
from mescal.problem.traced import _Same
from mescal.testing import count_compilations

ROWS = np.random.default_rng(0).normal(size=(12, 2))
X = np.array([0.3, -0.2])
SCALE = 1.0  # set by tests
SETTINGS = (
    "jax_enable_compilation_cache",
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
    "jax_persistent_cache_enable_xla_caches",
)


@pytest.fixture
def folder(tmp_path):
    before = {name: getattr(jax.config, name) for name in SETTINGS}
    jax.config.update("jax_enable_compilation_cache", True)
    mescal.keep_compiled(tmp_path / "kept")
    yield tmp_path / "kept"
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    kept_calls._folder.clear()
    kept_calls._programs.clear()


def programs(folder) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.endswith("-program")}


def square(x, row):
    return 0.5 * SCALE * jnp.sum((x - row) ** 2)


@jax.custom_jvp
def doubled(t):
    return 2 * t


doubled.defjvp(lambda given, change: (2 * given[0], 2 * SCALE * change[0]))


def bent(x, row):
    """Whose derivative alone is what its rule says."""
    return doubled(jnp.sum((x - row) ** 2)) / 4


def called(x, row):
    """Whose value alone is from a function of this process."""
    value = jax.pure_callback(lambda: np.asarray(SCALE), jax.ShapeDtypeStruct((), x.dtype))
    return 0.5 * jnp.sum((x - row) ** 2) + value


def slope(scale):
    return scale * np.linalg.norm(np.mean(X - ROWS, axis=0))


def judged(fn=square) -> mescal.Certificate:
    kept_calls._programs.clear()
    return mescal.certify(mescal.Problem(E(fn, over=ROWS)), X)


def test_a_later_process_traces_and_compiles_nothing(folder):
    first, there = judged(), programs(folder)
    with count_compilations() as found:
        again = judged()
    assert found.count == 0 and programs(folder) == there and len(there) > 1
    assert again.objective == first.objective and again.curvatures == first.curvatures


@pytest.mark.parametrize("fn", [square, bent], ids=["global", "rule"])
def test_what_a_function_reads_is_part_of_its_programs(folder, monkeypatch, fn):
    for scale in (1.0, 2.0, 1.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        there = programs(folder)
        assert judged(fn).stationarity.value == pytest.approx(slope(scale), rel=1e-12)
    assert there and programs(folder) == there


def solved(x, row):
    """By LAPACK, which lowering makes ready; a process that lowers nothing would call what is not there."""
    return 0.5 * jnp.sum(jnp.linalg.solve(2 * jnp.eye(2, dtype=x.dtype), x - row) ** 2)


def test_what_calls_libraries_is_not_kept(folder):
    assert judged(solved).objective.value == pytest.approx(np.mean(np.sum((X - ROWS) ** 2, axis=1)) / 8, rel=1e-12)
    assert not programs(folder)


def test_what_calls_back_is_not_kept(folder, monkeypatch):
    for scale in (1.0, 2.0):
        monkeypatch.setitem(globals(), "SCALE", scale)
        wanted = scale + 0.5 * np.mean(np.sum((X - ROWS) ** 2, axis=1))
        assert judged(called).objective.value == pytest.approx(wanted, rel=1e-12)
    assert not programs(folder)


def test_a_damaged_program_is_not_used(folder):
    first = judged()
    for path in folder.iterdir():
        if path.name.endswith("-program"):
            path.write_bytes(path.read_bytes()[:100])
    for _ in range(2):
        assert judged().objective == first.objective
    for path in folder.iterdir():
        path.unlink()
    there = judged(), programs(folder)
    with count_compilations() as found:
        assert judged().objective == first.objective
    assert found.count == 0 and programs(folder) == there[1]


class Own:
    """A class of a user's."""

    def known_by(self):
        return "anything"


UNKNOWN = [Own(), Own, square, lambda x: x, Primitive("add"), _Same(1), np.zeros(1 << 14)]


@pytest.mark.parametrize("value", UNKNOWN, ids=["object", "class", "function", "lambda", "primitive", "same", "rows"])
def test_what_cannot_be_told_by_its_value_is_refused(value):
    with pytest.raises((pickle.PicklingError, TypeError)):
        kept_calls._ByValue(io.BytesIO()).dump((1, [value]))


def test_arrays_are_told_from_what_looks_like_their_shapes():
    def written(value):
        into = io.BytesIO()
        kept_calls._ByValue(into).dump(value)
        return into.getvalue()

    shape = kept_calls._Shape.of(X)
    assert written(shape) == written(kept_calls._Shape.of(X + 1)) != written(tuple(shape))


def test_settings_are_part_of_a_program():
    before = kept_calls._settings()
    with jax.default_matmul_precision("highest"):
        assert kept_calls._settings() != before
    with jax.enable_x64(not jax.config.values["jax_enable_x64"]):
        assert kept_calls._settings() != before


def test_nothing_is_kept_where_sources_have_changed_or_programs_are_watched(folder, monkeypatch):
    assert kept_calls.are_kept()
    with jax.debug_nans(True):
        assert not kept_calls.are_kept()
    monkeypatch.setattr(kept_calls, "_IMPORTED", 0.0)
    monkeypatch.setattr(kept_calls, "_sources", kept_calls._sources.__wrapped__)
    monkeypatch.setattr(kept_calls, "_is_plain", kept_calls._is_plain.__wrapped__)
    assert not kept_calls.are_kept()


def test_arrays_that_lie_elsewhere_are_not_for_kept_programs():
    """An executable takes arrays where it was compiled for them."""
    device = jax.local_devices()[0]
    assert kept_calls._is_here(jnp.ones(2).sharding)
    others = {memory.kind for memory in device.addressable_memories()} - {device.default_memory().kind}
    assert not any(kept_calls._is_here(SingleDeviceSharding(device, memory_kind=kind)) for kind in others)


def test_what_is_made_of_a_function_is_not_taken_for_it():
    """A map or a derivative of a function has its module and its name."""
    mapped = jax.vmap(kept_calls.are_kept)
    assert mapped.__qualname__ == kept_calls.are_kept.__qualname__
    with pytest.raises(pickle.PicklingError):
        kept_calls._key(mapped, (), {})

"""The watchdog names what a run hangs in; devices that run out of memory are asked for less, once."""

import logging
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle import memory
from mescal.run import mescal as method
from mescal.run.limits import Watchdog, complaint

ROWS = np.linspace(-1, 1, 64, dtype=np.float32)
X0 = np.full(2, 0.5, np.float32)


def sleeps_while_it_is_traced(x, a):
    time.sleep(0.4)
    return jnp.sum((x - a) ** 2)


@pytest.mark.parametrize("solver", ["spider", "auto"])
def test_a_function_that_hangs_is_named(caplog, solver):
    """It is traced while the run is set up."""
    problem = mescal.Problem(E(sleeps_while_it_is_traced, over=ROWS))
    with caplog.at_level(logging.WARNING, logger="mescal"):
        outer = mescal.Outer(watchdog=0.1, max_inner=1)
        mescal.minimize(problem, X0, tol=0.1, solver=solver, max_outer=1, outer=outer)
    assert "the function sleeps_while_it_is_traced (test_watchdog.py, line" in caplog.text
    assert "time.sleep(0.4)" in caplog.text


def test_a_long_compilation_is_named(caplog):
    """Of some hundred equations that nothing fuses: a few tenths of a second."""

    def long(x):
        for i in range(120):
            x = jnp.sort(x * (1 + i)) + jnp.flip(x)
        return x

    with caplog.at_level(logging.WARNING, logger="mescal"), Watchdog(0.02) as dog:
        lowered = jax.jit(long).lower(jnp.arange(7.0))
        dog.move("the first chunk")
        lowered.compile()
    assert "in the first chunk: a program is being compiled" in caplog.text and "keep_compiled" in caplog.text


def test_a_dog_that_has_nothing_to_say_is_silent(caplog):
    with caplog.at_level(logging.WARNING, logger="mescal"), Watchdog(1.0) as dog:
        for _ in range(30):
            time.sleep(0.05)
            dog.move("the next step")
    assert caplog.text == ""


def test_a_dog_can_watch_again(caplog):
    """Between two watches it sleeps, however long that takes."""
    dog = Watchdog(0.1)
    with caplog.at_level(logging.WARNING, logger="mescal"):
        with dog:
            dog.move("the next step")
        time.sleep(0.3)
        assert caplog.text == ""
        with dog:
            time.sleep(0.3)
    assert "in the next step" in caplog.text


def test_complaints_grow_rarer(caplog):
    with caplog.at_level(logging.WARNING, logger="mescal"), Watchdog(0.05):
        time.sleep(1.0)
    said = caplog.text.count("Nothing has moved")
    assert 1 <= said <= 4, "after 0.05, 0.2 and 0.8 s"


def test_without_a_function_of_the_users_it_says_so():
    assert complaint("the judge", 12.0) == "Nothing has moved for 12 s, in the judge: in compiled code or in a library"


@pytest.fixture
def problem():
    return mescal.Problem(E(lambda x, a: jnp.sum((x - a) ** 2), over=ROWS))


@pytest.fixture
def full_memory(monkeypatch):
    """A device that has no memory left for the first `times` chunks."""
    monkeypatch.setattr(memory, "_shrunk", [1])
    monkeypatch.setattr(jax, "clear_caches", lambda: None)  # other tests share what is compiled
    advance = method.advance
    asked = []

    def make(times):
        def full(solver, sub, *rest):
            asked.append(sub.lagrangian.micro)
            if len(asked) <= times:
                raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4 GiB")
            return advance(solver, sub, *rest)

        monkeypatch.setattr(method, "advance", full)
        return asked

    return make


def test_memory_that_runs_out_once_is_asked_for_less(problem, full_memory, caplog):
    asked = full_memory(1)
    with caplog.at_level(logging.WARNING, logger="mescal"):
        result = mescal.minimize(problem, X0, tol=0.01, solver="spider")
    assert result.converged and asked[:2] == [256, 32] and set(asked[1:]) == {32}
    assert "ran out of memory: once more with micro-batches of 32 samples" in caplog.text


def test_memory_that_runs_out_twice_is_an_error(problem, full_memory):
    full_memory(2)
    with pytest.raises(
        MemoryError, match="too little memory for this problem, also with micro-batches of 32"
    ) as caught:
        mescal.minimize(problem, X0, tol=0.01, solver="spider")
    assert isinstance(caught.value, mescal.InputError) and "shard them over more devices" in str(caught.value)


def test_other_errors_of_a_device_pass_through(problem, monkeypatch):
    def broken(*_):
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    monkeypatch.setattr(method, "advance", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        mescal.minimize(problem, X0, tol=0.01, solver="spider")


def test_a_sampler_that_raises_is_named():
    def draw(key):
        raise RuntimeError("the tap is dry")

    with pytest.raises((mescal.InputError, RuntimeError), match="the tap is dry"):
        mescal.minimize(mescal.Problem(E(lambda x, a: x @ x + a, over=mescal.Sampler(draw))), X0)


@pytest.mark.parametrize(
    ("memory_bytes", "width", "expected"), [(None, 400, 256), (1 << 30, 400, 32768), (8 << 30, 1 << 20, 256)]
)
def test_micro_batches_follow_the_memory_of_a_device(monkeypatch, memory_bytes, width, expected):
    monkeypatch.setattr(memory, "_memory", lambda: memory_bytes)
    assert memory.micro_batch(width) == expected
    assert memory.chunk_bytes() == (memory.CACHED_BYTES if memory_bytes is None else memory_bytes // 64)

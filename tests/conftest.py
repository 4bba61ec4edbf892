"""Shared pieces of the tests: small problems, keys, and where the real data are."""

import ctypes
import gc
import os
import signal
from pathlib import Path
from typing import ClassVar

import jax
import numpy as np
import psutil
import pytest

import mescal
from mescal import E
from mescal.oracle import Lagrangian, Surrogate, surrogate
from mescal.problem import equality_form

LARGE = 2 << 30  # bytes of a test process
YOUNG = 10_000  # objects that a test process makes between two looks of the collector; Python's own is 700

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as where a shell started the tests in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # this process and those it starts are to hear Ctrl-C


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the real data; tests that need it say so when it is not there."""
    folder = os.environ.get("MESCAL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("MESCAL_DATA does not point at the real data sets")
    return Path(folder)


def pytest_configure(config):
    """Programs that the fast tests write themselves are compiled without optimising them: they run once.

    Those of the library name their options, and stay bit for bit what users have (`compiling.py`).
    """
    if "not slow" in config.option.markexpr:
        jax.config.update("jax_disable_most_optimizations", True)


def pytest_collection_finish():
    """What imports and collection left behind lives as long as the process: the collector need not look through it again.

    And it looks at new objects less often: 6 per cent of a process's seconds went into it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)


@pytest.fixture(scope="module", autouse=True)
def bounded_memory():
    """Between two files, drop what was compiled where it has grown large: every test process compiles hundreds of programs.

    What was dropped is given back to the system: a process that stays large would compile everything anew for every file.
    """
    yield
    if psutil.Process().memory_info().rss > LARGE:
        jax.clear_caches()
        gc.collect()
        if hasattr(ctypes.CDLL(None), "malloc_trim"):  # glibc keeps what is freed otherwise: 919 MB instead of 378
            ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(scope="session")
def key() -> jax.Array:
    return jax.random.key(20240517, impl="threefry2x32")


def sigmoid_problem(rng: np.random.Generator, rows: int = 300, d: int = 4, domain=None) -> mescal.Problem:
    """A Neyman-Pearson problem on Gaussian classes."""
    positives = rng.normal(size=(rows, d)).astype(np.float32) + 0.5
    negatives = rng.normal(size=(rows - 60, d)).astype(np.float32) - 0.5

    def score(w, a):
        return jax.nn.sigmoid(a @ w)

    return mescal.Problem(
        E(lambda w, a: 1 - score(w, a), over=positives), {"rate": E(score, over=negatives) <= 0.3}, domain
    )


def lagrangian(problem, x, multipliers, penalty, rule="ustat", micro=1024, dtype=np.float32) -> Lagrangian:
    """The augmented Lagrangian of a problem at given multipliers, unscaled."""
    program, _ = problem.bind(np.asarray(x, dtype), dtype=dtype)
    form = equality_form(program, problem.domain)
    return Lagrangian(
        form,
        problem.device_data(program, dtype),
        jax.numpy.asarray(multipliers, dtype),
        jax.numpy.asarray(penalty, dtype),
        surrogate(rule),
        micro,
    )


@pytest.fixture(scope="session")
def make_lagrangian():
    return lagrangian


@pytest.fixture(scope="session")
def make_sigmoid_problem():
    return sigmoid_problem


class SameBatch(Surrogate):
    """What mini-batch penalty methods do: the partner is the mean over the batch, the sample itself included."""

    name: ClassVar[str] = "same batch"
    draws: ClassVar[int] = 1
    totalled: ClassVar[int | None] = 0
    smallest_batch: ClassVar[int] = 1

    def partner(self, first, second, total, count):
        return total / count


@pytest.fixture(scope="session")
def same_batch() -> Surrogate:
    return SameBatch()

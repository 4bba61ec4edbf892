"""Digests see every row, weight and number, say the same in every process, and cost about a pass over memory."""

import os
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal.problem.digest import digest_array, digest_function, digest_of
from mescal.problem.over import as_source
from mescal.problem.traced import trace

ROWS = np.random.default_rng(0).normal(size=(20_000, 3)).astype(np.float32)


def changed(row: int) -> np.ndarray:
    rows = ROWS.copy()
    rows[row, 1] = np.nextafter(rows[row, 1], np.float32(np.inf))
    return rows


def swapped() -> np.ndarray:
    rows = ROWS.copy()
    rows[[7_001, 7_002]] = rows[[7_002, 7_001]]
    return rows


OTHERS = {
    "a row": changed(9_999),
    "the last row": changed(19_999),
    "order": swapped(),
    "fewer": ROWS[:-1],
    "type": ROWS.astype(np.float64),
    "shape": ROWS[:, :, None],
    "structure": {"a": ROWS},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_every_row_counts(other):
    assert as_source(ROWS).digest == as_source(ROWS.copy()).digest != as_source(other).digest


def test_weights_count():
    weights = np.ones(len(ROWS))
    other = weights.copy()
    other[12_345] += 1e-9
    digests = {as_source(ROWS, w).digest for w in (None, weights, other)}
    assert len(digests) == 3
    assert as_source(ROWS, 2 * weights).digest == as_source(ROWS, weights).digest, "only ratios of weights count"


def test_rows_on_disk_and_streams_of_rows(tmp_path):
    np.save(tmp_path / "a.npy", ROWS)
    np.save(tmp_path / "b.npy", changed(12_345))
    first, second = (mescal.on_disk(tmp_path / name) for name in ("a.npy", "b.npy"))
    assert first.digest != second.digest == mescal.stream(second).digest
    assert as_source(first, np.ones(len(ROWS))).digest != first.digest


@pytest.mark.parametrize("array", [np.zeros(0), np.float32(3), np.zeros((2, 0)), jax.random.key(3), np.arange(6)[::2]])
def test_arrays_of_all_kinds(array):
    assert digest_array(array) == digest_array(array) != digest_array(np.arange(7))


def test_digests_take_about_a_pass():
    """A quarter of a gigabyte; measured at 1.1 GB/s. The bound is 18 times that, for machines that are busy or slow."""
    array = np.zeros(1 << 25)
    begun = time.perf_counter()
    digest_array(array)
    assert time.perf_counter() - begun < 4.0


# Functions of many kinds: rules for derivatives, loops that close over arrays, gathers, callbacks, random draws.
FUNCTIONS = """
import jax, jax.numpy as jnp, numpy as np
table = np.arange(12.0, dtype=np.float32)
@jax.custom_vjp
def own(x): return x * x
own.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
FUNCTIONS = {
    "relu": lambda x, row: jax.nn.relu(x @ row).sum(),
    "softmax": lambda x, row: jax.nn.logsumexp(x * row),
    "loop": lambda x, row: jax.lax.fori_loop(0, 3, lambda i, s: s + jnp.asarray(table)[i] * x @ row, jnp.float32(0)),
    "scan": lambda x, row: jax.lax.scan(lambda s, t: (s * t + x[0], s), row[0], table)[0],
    "gather": lambda x, row: x[jnp.array([0, 2, 1])] @ row,
    "own rule": lambda x, row: own(x @ row),
    "branches": lambda x, row: jax.lax.cond(row[0] > 0, jnp.sin, jnp.cos, x @ row),
    "callback": lambda x, row: x @ row + jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct((), np.float32), row[0]),
    "compiled": lambda x, row: jax.jit(lambda a: a @ row * table[3])(x),
    "random": lambda x, row: x @ row + jax.random.normal(jax.random.key(3)),
}
"""
CHILD = (
    FUNCTIONS
    + """
from mescal.problem.digest import digest_function
from mescal.problem.over import as_source
from mescal.problem.traced import trace
at = jax.ShapeDtypeStruct((3,), np.float32)
for name, fn in FUNCTIONS.items():
    print(name, digest_function(*trace(fn, at, at)))
"""
)


def test_every_process_says_the_same_of_a_function():
    session: dict = {}
    exec(FUNCTIONS, session)
    at = jax.ShapeDtypeStruct((3,), np.float32)
    here = {name: digest_function(*trace(fn, at, at)) for name, fn in session["FUNCTIONS"].items()}
    assert len(set(here.values())) == len(here)
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    run = subprocess.run([sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, check=True)
    there = dict(line.rsplit(" ", 1) for line in run.stdout.splitlines())
    assert there == here


def digest_at(fn) -> str:
    at = jax.ShapeDtypeStruct((3,), np.float32)
    return digest_function(*trace(fn, at))


def test_every_number_of_a_function_counts():
    table, scale = np.arange(3.0, dtype=np.float32), 1.0
    kinds = {
        "same": lambda x: jnp.sum(scale * table * x),
        "number": lambda x: jnp.sum(1.0005 * table * x),
        "constant": lambda x: jnp.sum(scale * (table + np.float32([0, 0, 1e-6])) * x),
        "inside": lambda x: jnp.sum(jax.jit(lambda y: scale * table * y + 1e-9)(x)),
        "operation": lambda x: jnp.sum(scale * table + x),
    }
    assert len({digest_at(fn) for fn in kinds.values()}) == len(kinds)
    assert digest_at(kinds["same"]) == digest_at(lambda v: jnp.sum(scale * np.array(table) * v))


def test_words_do_not_run_together():
    assert len({digest_of("ab", "c"), digest_of("a", "bc"), digest_of(("a", "b"), "c"), digest_of("a", "b", "c")}) == 4
    assert digest_of({1, 2, "x"}) == digest_of({"x", 2, 1}) and digest_of(1) != digest_of(1.0) != digest_of("1")


def test_it_is_looked_at_once(monkeypatch):
    source = as_source(ROWS)
    first = source.digest
    monkeypatch.setattr("mescal.problem.source.digest_array", None)
    assert source.digest == first

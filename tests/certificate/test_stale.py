"""A certificate is of the problem as it was built: of what its functions read then, of the rows that it was given, of nothing else.

And what was compiled for a problem serves whatever has the same equations.
"""

from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E

ROWS = np.random.default_rng(0).normal(size=(12, 2))
X = np.array([0.3, -0.2])
VALUES = (1.0, 2.0, -0.5, 3.25, 0.75)
SCALE = 1.0  # set by tests


@contextmanager
def compilations():
    """The programs that are compiled meanwhile, one entry for each."""
    seen: list[str] = []

    def listener(event: str, duration_secs: float, **_):
        if "backend_compile" in event:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listener)
    try:
        yield seen
    finally:
        jax.monitoring.unregister_event_duration_listener(listener)


# What a function reads ---------------------------------------------------------------------------------------------------


def of_a_global(x, row):
    return 0.5 * SCALE * jnp.sum((x - row) ** 2)


def of_a_cell():
    scale = 1.0

    def change(value):
        nonlocal scale
        scale = value

    return (lambda x, row: 0.5 * scale * jnp.sum((x - row) ** 2)), change


def of_a_default():
    def fn(x, row, scale=1.0):
        return 0.5 * scale * jnp.sum((x - row) ** 2)

    return fn, lambda value: setattr(fn, "__defaults__", (value,))


class Model:
    """An object that can be changed, and whose method is the function."""

    scale = 1.0

    def loss(self, x, row):
        return 0.5 * self.scale * jnp.sum((x - row) ** 2)


def of_an_attribute():
    model = Model()
    return model.loss, lambda value: setattr(model, "scale", value)


READS = {"cell": of_a_cell, "default": of_a_default, "attribute": of_an_attribute}


def problem_of(fn) -> mescal.Problem:
    return mescal.Problem(E(fn, over=ROWS), {"level": E(lambda x, row: fn(x, row) * row[0], over=ROWS) == 0.1})


def measured(problem, multiplier=0.5) -> np.ndarray:
    """f, c, |grad L| and the smallest curvature of the Lagrangian on all of space, with next to no penalty."""
    certificate = mescal.certify(problem, X, [multiplier], penalty=1e-14)
    return np.array(
        [
            certificate.objective.value,
            float(certificate.constraints["level"]),
            certificate.stationarity.value,
            certificate.curvatures["whole"].value,
        ]
    )


def expected(scale, rows=ROWS, multiplier=0.5) -> np.ndarray:
    """The same in numpy."""
    squares, weight = 0.5 * np.sum((X - rows) ** 2, axis=1), 1 + multiplier * rows[:, 0]
    gradient = scale * np.mean(weight[:, None] * (X - rows), axis=0)
    return np.array(
        [
            scale * np.mean(squares),
            scale * np.mean(squares * rows[:, 0]) - 0.1,
            np.linalg.norm(gradient),
            scale * np.mean(weight),
        ]
    )


@pytest.mark.parametrize("make", [*READS.values(), None], ids=[*READS, "global"])
def test_a_problem_built_anew_is_judged_with_what_its_functions_read_now(make, monkeypatch):
    """Five values, there and back again: all agree with numpy, and those seen before compile nothing."""
    fn, change = make() if make else (of_a_global, lambda value: monkeypatch.setitem(globals(), "SCALE", value))
    for value in VALUES:
        change(value)
        np.testing.assert_allclose(measured(problem_of(fn)), expected(value), rtol=1e-10)
    with compilations() as compiled:
        for value in reversed(VALUES):
            change(value)
            np.testing.assert_allclose(measured(problem_of(fn)), expected(value), rtol=1e-10)
    assert compiled == []


def test_a_problem_that_was_bound_stays_what_it_was():
    fn, change = of_a_cell()
    problem = problem_of(fn)
    before = measured(problem)
    change(2.0)
    np.testing.assert_array_equal(measured(problem), before)
    np.testing.assert_allclose(measured(problem_of(fn)), expected(2.0), rtol=1e-10)


def shifted_by(table):
    return lambda x, row: 0.5 * jnp.sum((x - row - table) ** 2)


@pytest.mark.parametrize("kind", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_arrays_that_a_function_closes_over_are_arguments(kind):
    """Other arrays, the same program."""
    with jax.enable_x64(True):
        tables = [kind(np.random.default_rng(seed).normal(size=2)) for seed in range(5)]
    measured(problem_of(shifted_by(tables[0])))
    with compilations() as compiled:
        for table in tables:
            found = measured(problem_of(shifted_by(table)))
            assert found[0] == pytest.approx(
                0.5 * np.mean(np.sum((X - ROWS - np.asarray(table)) ** 2, axis=1)), rel=1e-12
            )
    assert compiled == []


@pytest.mark.parametrize("wrap", [lambda fn: fn, jax.jit], ids=["plain", "jit"])
def test_arrays_are_not_rounded_by_who_came_first(wrap):
    """A solver in float32 reads the functions before the judge does."""
    table = np.array([1.1, 2.0])
    problem = mescal.Problem(E(wrap(lambda x, row: 0.5 * jnp.sum((x - row - jnp.asarray(table)) ** 2)), over=ROWS))
    problem.bind(X.astype(np.float32), dtype=np.float32)
    found = mescal.certify(problem, X).objective.value
    assert found == pytest.approx(0.5 * np.mean(np.sum((X - ROWS - table) ** 2, axis=1)), rel=1e-14)


# Rows --------------------------------------------------------------------------------------------------------------------


def aligned(rows: np.ndarray) -> np.ndarray:
    """A copy that begins where a CPU could share its memory with JAX."""
    raw = np.zeros(rows.nbytes + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    copy = raw[begin : begin + rows.nbytes].view(rows.dtype).reshape(rows.shape)
    copy[:] = rows
    return copy


def sharded(rows):
    return mescal.shard(rows, jax.make_mesh((1,), ("rows",)))


def square(x, row):
    return 0.5 * jnp.sum((x - row) ** 2)


@pytest.mark.parametrize("hold", [lambda rows: rows, sharded], ids=["memory", "devices"])
def test_rows_written_into_after_the_problem_was_built_are_not_seen(hold):
    rows, weights = aligned(ROWS), aligned(np.ones(len(ROWS)))
    problem = mescal.Problem(E(square, over=hold(rows), weights=weights))
    rows += 5  # before anything has looked at them
    weights[0] = 100
    wanted = 0.5 * np.mean(np.sum((X - ROWS) ** 2, axis=1))
    assert mescal.certify(problem, X).objective.value == pytest.approx(wanted, rel=1e-12)
    rows += 5
    assert mescal.certify(problem, X).objective.value == pytest.approx(wanted, rel=1e-12)
    anew = mescal.Problem(E(square, over=hold(rows)))
    assert mescal.certify(anew, X).objective.value == pytest.approx(
        0.5 * np.mean(np.sum((X - ROWS - 10) ** 2, axis=1)), rel=1e-12
    )


def test_arrays_closed_over_and_written_into_after_the_first_look_are_not_seen():
    table = aligned(np.array([1.0, 2.0]))
    problem = problem_of(shifted_by(table))
    before = measured(problem)
    table += 1
    np.testing.assert_array_equal(measured(problem), before)


# How often a function is read --------------------------------------------------------------------------------------------


def test_certify_reads_every_function_once():
    """Once for a type and a structure of parameters, whatever is asked; used in several places or not."""
    calls = {"loss": 0, "rate": 0}

    def loss(x, row):
        calls["loss"] += 1
        return 0.5 * jnp.sum((x - row) ** 2)

    def rate(x, row):
        calls["rate"] += 1
        return jnp.tanh(row @ x)

    problem = mescal.Problem(
        E(loss, over=ROWS),
        {"one": E(rate, over=ROWS) <= 0.5, "two": E(rate, over=ROWS[:9]) - 2 * E(rate, over=ROWS) <= 0.5},
    )
    mescal.certify(problem, X)
    assert calls == {"loss": 1, "rate": 1}
    mescal.certify(problem, X + 1, [0.1, 0.2], tol=0.1, cone="critical")
    mescal.certify(problem, X, seed=3)
    assert calls == {"loss": 1, "rate": 1}
    mescal.certify(problem, X.astype(np.float32))
    assert calls == {"loss": 2, "rate": 2}


def test_certify_from_samples_reads_every_function_once():
    calls = {"loss": 0, "draw": 0}

    def draw(key):
        calls["draw"] += 1
        return jax.random.normal(key, (2,))

    def loss(x, row):
        calls["loss"] += 1
        return 0.5 * jnp.sum((x - row) ** 2)

    problem = mescal.Problem(E(loss, over=mescal.Sampler(draw)))
    built = calls["draw"]
    mescal.certify(problem, X, samples=64)
    assert calls["loss"] == 1
    once = calls["draw"]
    mescal.certify(problem, X + 1, samples=64, seed=3)
    assert calls == {"loss": 1, "draw": once}
    assert once - built <= 2  # its shape, and its equations
    problem.bind(X.astype(np.float32), dtype=np.float32)
    assert calls["loss"] == 3  # parameters of another type are read for the judge, and for a solver


# What is compiled --------------------------------------------------------------------------------------------------------


def of_a_stream() -> mescal.Problem:
    stream = mescal.Sampler(lambda key: jax.random.normal(key, (2,)))
    return mescal.Problem(E(lambda x, row: square(x, row) + 0.1 * jnp.sum(x**4), over=stream))


def of_groups(rows=ROWS) -> mescal.Problem:
    groups = {f"{k}": E(lambda x, row: jnp.tanh(row @ x), over=rows[k : k + 4]) <= 0.5 for k in range(0, 12, 4)}
    return mescal.Problem(E(square, over=rows) + E(lambda x: jnp.sum(x**4)), groups, mescal.sets.Box(-2.0, 2.0))


def of_a_sample(rows=np.concatenate([ROWS, ROWS + 1])) -> mescal.Problem:
    return mescal.Problem(E(lambda x, row: square(x, row) ** 2, over=rows))


@pytest.mark.parametrize(
    ("make", "asked"),
    [(of_a_stream, {"samples": 64}), (of_groups, {"tol": 0.1}), (of_a_sample, {"as_sample": True})],
)
def test_the_same_equations_built_anew_compile_nothing(make, asked):
    first = mescal.certify(make(), X, **asked)
    with compilations() as compiled:
        again = mescal.certify(make(), X, **asked)
    assert compiled == []
    assert again.objective == first.objective and again.curvatures == first.curvatures


def test_other_rows_and_bounds_compile_nothing():
    mescal.certify(of_groups(), X)
    with compilations() as compiled:
        found = mescal.certify(of_groups(ROWS + 0.5), X).objective.value
    assert compiled == []
    assert found == pytest.approx(0.5 * np.mean(np.sum((X - ROWS - 0.5) ** 2, axis=1)) + np.sum(X**4), rel=1e-12)

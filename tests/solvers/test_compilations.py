"""What is compiled, and how often functions are read: by what they compute, for every practical solver."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.solvers import Spider
from mescal.testing import Traces, count_compilations, count_traces

PRACTICAL = tuple(name for name in mescal.solvers.names() if mescal.solvers.get(name).mode == "practical")
TRACES = 4  # readings of a function per solve: the solver's and the judge's types, and what is left for retries
D = 3


def rows(seed: int, n: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)


def functions(shift: float, traces: list[Traces] | None) -> tuple[Callable, Callable]:
    """|x - a - shift|^2/2 and b.x: new functions every time, the first with an array that it closes over."""
    moved = np.full(D, shift, np.float32)
    pair = (lambda x, a: (x - a - moved) @ (x - a - moved) / 2, lambda x, b: b @ x)
    if traces is None:
        return pair
    (objective, first), (constraint, second) = map(count_traces, pair)
    traces += [first, second]
    return objective, constraint


def finite(seed: int = 0, bound: float = 0.5, shift: float = 0.0, traces: list | None = None) -> mescal.Problem:
    """min E|x - a - shift|^2/2  s.t.  E[b.x] = bound: new arrays of the same shapes, too."""
    objective, constraint = functions(shift, traces)
    return mescal.Problem(E(objective, over=rows(seed)), {"c": E(constraint, over=rows(seed + 1) + 1) == bound})


def streamed(seed: int = 0, bound: float = 0.5, shift: float = 0.0, traces: list | None = None) -> mescal.Problem:
    """The same on streams with means of (0, 0, 0) and (1, 1, 1)."""
    objective, constraint = functions(shift, traces)
    first = mescal.Sampler(lambda key: 0.1 * jax.random.normal(key, (D,)))
    second = mescal.Sampler(lambda key: 1 + 0.1 * jax.random.normal(key, (D,)))
    return mescal.Problem(E(objective, over=first), {"c": E(constraint, over=second) == bound})


KINDS: dict[str, Callable[..., mescal.Problem]] = {"finite": finite, "streamed": streamed}
CASES = [
    *((name, "finite") for name in PRACTICAL),
    *(pytest.param(name, "streamed", marks=[] if name == "spider" else pytest.mark.slow) for name in PRACTICAL),
]


def nearest(problem: mescal.Problem, bound: float, shift: float) -> np.ndarray:
    """The minimiser: the projection of the mean of a + shift onto E[b].x = bound."""
    means = [
        np.mean(np.asarray(source.arrays, np.float64), axis=0) if source.size else level
        for source, level in zip(problem.sources, (np.zeros(D), np.ones(D)), strict=True)
    ]
    a, b = means[0] + shift, means[1]
    return a - (a @ b - bound) / (b @ b) * b


def solve(problem, solver: Any = "auto", tol: Any = 0.01, **options) -> mescal.Result:
    result = mescal.minimize(problem, np.zeros(D, np.float32), solver=solver, tol=tol, **options)
    assert result.converged, result
    return result


@pytest.mark.parametrize(("solver", "kind"), CASES)
def test_functions_are_read_a_few_times_and_compiled_once(solver, kind):
    """A problem that the same code builds again, with new functions and new arrays, compiles nothing."""
    traces: list[Traces] = []
    solve(KINDS[kind](traces=traces), solver)
    with count_compilations() as compilations:
        again = KINDS[kind](10, traces=traces)
        result = solve(again, solver, seed=1)
    assert compilations.count == 0, compilations.programs
    assert len(traces) == 4 and all(1 <= each.count <= TRACES for each in traces), traces
    np.testing.assert_allclose(result.x, nearest(again, 0.5, 0.0), atol=0.05)


@pytest.mark.parametrize("solver", ["newton-cg", "spider"])
@pytest.mark.parametrize("moved", ["bound", "shift"])
def test_ten_values_of_a_bound_or_of_an_array_compile_once(solver, moved):
    """A bound is a number of the program's arguments, and so is an array that a function closes over."""
    solve(finite(), solver)
    for value in np.linspace(-1, 1, 10):
        given = {"bound": 0.5, "shift": 0.0} | {moved: float(value)}
        with count_compilations() as compilations:
            problem = finite(**given)
            result = solve(problem, solver, tol=1e-3)
        assert compilations.count == 0, (value, compilations.programs)
        np.testing.assert_allclose(result.x, nearest(problem, **given), atol=5e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_over_batches_compiles_once_more_than_one_of_them(kind):
    """The batch of a recursive step is a number of the program's arguments."""
    problem = KINDS[kind]()
    solve(problem, Spider(batch=48))
    with count_compilations() as compilations:
        for batch in (49, 56, 80, 100):
            result = solve(problem, Spider(batch=batch))
            assert set(result.history.column("batch")) == {batch}
    assert compilations.count <= 1, compilations.programs


# ---- functions that read what has changed

LEVEL = 0.0


class Held:
    """Something with an attribute."""

    level = 0.0


def of_global(level: float) -> Callable[[], float]:
    globals()["LEVEL"] = level
    return read_global


def read_global():
    return LEVEL


def make_cell() -> tuple[Callable[[float], None], Callable[[], float]]:
    inside = 0.0

    def change(value):
        nonlocal inside
        inside = value

    return change, lambda: inside


CHANGE_CELL, READ_CELL = make_cell()


def of_cell(level: float) -> Callable[[], float]:
    CHANGE_CELL(level)
    return READ_CELL


def read_default(level=0.0):
    return level


def of_default(level: float) -> Callable[[], float]:
    read_default.__defaults__ = (level,)
    return read_default


HELD = Held()


def of_attribute(level: float) -> Callable[[], float]:
    HELD.level = level
    return lambda: HELD.level


READERS = {"global": of_global, "closure": of_cell, "default": of_default, "attribute": of_attribute}


@pytest.mark.parametrize("where", READERS)
@pytest.mark.parametrize(
    "solver",
    [name if name in ("newton-cg", "spider") else pytest.param(name, marks=pytest.mark.slow) for name in PRACTICAL],
)
def test_functions_that_read_something_else_are_other_functions(solver, where):
    """The same function objects, and a problem that is built anew after what they read has changed: x = (level, 2 level, 0)."""

    def objective(x, a):
        return (x[0] - a * read()) ** 2 / 2 + (x[1] ** 2 + x[2] ** 2) / 2

    def constraint(x, a):
        return a * (x[1] - 2 * read())

    ones = np.ones(70, np.float32)
    for level in (0.5, -1.0, 0.5):
        read = READERS[where](level)
        problem = mescal.Problem(E(objective, over=ones), {"c": E(constraint, over=ones.copy()) == 0})
        result = solve(problem, solver, tol=1e-3)
        np.testing.assert_allclose(result.x, [level, 2 * level, 0], atol=5e-3)
        assert result.certificate.feasibility.value <= 1e-3


def test_a_sampler_that_reads_something_else_is_another_one():
    """min E|x - s|^2/2 for samples s of one value: x is that value."""
    for level in (0.5, -1.0):
        HELD.level = level
        stream = mescal.Sampler(lambda key: 0 * jax.random.normal(key, (D,)) + HELD.level)
        result = solve(mescal.Problem(E(lambda x, s: (x - s) @ (x - s) / 2, over=stream)))
        np.testing.assert_allclose(result.x, np.full(D, level), atol=0.02)


def test_a_problem_is_what_its_functions_were_when_they_were_read():
    """A change in what they read is not seen, unless the problem is built anew: solver and judge are of one mind."""
    read = of_attribute(0.5)
    problem = mescal.Problem(E(lambda x: (x[0] - read()) ** 2 / 2 + x[1] ** 2 + x[2] ** 2))
    first = solve(problem, tol=1e-3)
    HELD.level = 3.0
    again = solve(problem, tol=1e-3)
    assert np.array_equal(first.x, again.x) and mescal.certify(problem, again.x, tol=1e-3).passes(1e-3)

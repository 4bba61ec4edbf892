"""Counters of traces and compilations, held to what JAX is known to do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.testing import count_compilations, count_traces


def test_a_function_is_counted_when_it_is_traced_and_not_when_it_runs():
    square, traces = count_traces(lambda x: x * x)
    run = jax.jit(square)
    for k in range(3):
        assert run(jnp.full(2, float(k))).tolist() == [k * k, k * k]
    assert traces.count == 1
    run(jnp.ones(3))  # another shape
    assert traces.count == 2 and repr(traces) == "Traces(count=2)"
    traces.reset()
    square(2.0)  # Python runs it
    assert traces.count == 1


def test_names_arguments_and_derivatives_are_those_of_the_function():
    def cube(x, *, factor=1.0):
        """Three of them."""
        return factor * x**3

    counted, traces = count_traces(cube)
    assert counted.__name__ == "cube" and counted.__doc__ == "Three of them."
    assert jax.grad(lambda x: counted(x, factor=2.0))(1.0) == 6.0
    assert traces.count == 1


def test_a_second_solve_traces_and_compiles_nothing():
    rows = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    loss, traces = count_traces(lambda x, a: jnp.log1p((a @ x - 1) ** 2))
    problem = mescal.Problem(E(loss, over=rows), {"size": E(lambda x: x @ x) <= 1.0})
    with count_compilations() as first:
        assert mescal.minimize(problem, np.zeros(2, np.float32), solver="newton-cg", tol=0.05).converged
    assert traces.count > 0 and first.count > 0 and first.read == 0
    assert min(first.seconds.values()) > 0
    traces.reset()
    with count_compilations() as second:
        mescal.minimize(problem, np.full(2, 0.1, np.float32), solver="newton-cg", tol=0.04, seed=1)
    assert (traces.count, second.count, second.programs) == (0, 0, [])
    assert second.seconds == {"tracing": 0.0, "lowering": 0.0, "compiling": 0.0}


def test_programs_are_named_and_counted_only_within():
    def halve(x):
        return x / 2

    x = jnp.ones(3)
    with count_compilations() as outer:
        jax.jit(halve)(x)
        with count_compilations() as inner:
            jax.jit(lambda x: x + 1)(x)
    jax.jit(lambda x: x + 2)(x)
    assert inner.count == 1 and outer.count == 2
    assert "halve" in outer.programs[0]


def test_an_error_within_ends_the_counting():
    with pytest.raises(KeyError), count_compilations() as found:
        raise KeyError
    jax.jit(lambda x: x + 3)(jnp.ones(3))
    assert found.count == 0

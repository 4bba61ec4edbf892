"""Inequalities of several outputs over a population: slacks of every practical solver end where the closed form has them.

    min E[sum_j w_j (x_j - a_j)^2]/2   s.t.   E[x - b] <= r        x_j = min(E[a_j], E[b_j] + r_j)

One coordinate is much stiffer than slacks are, so that steps in x are much shorter than theirs.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E

PRACTICAL = tuple(name for name in mescal.solvers.names() if mescal.solvers.get(name).mode == "practical")
RNG = np.random.default_rng(4)
A, B = RNG.normal(size=(30, 3)) / 4 + np.array([1.0, 0.5, -1.0]), RNG.normal(size=(30, 3)) / 4
BOUND, WEIGHTS = np.array([0.2, 3.0, -0.5]), np.array([1.0, 30.0, 1.0])


def stiff(x, a):
    return jnp.asarray(WEIGHTS, x.dtype) @ (x - a) ** 2 / 2


@pytest.mark.parametrize("solver", PRACTICAL)
def test_slacks_of_three_outputs(solver):
    """One output is active and two are not, from a start that violates the first and the last."""
    problem = mescal.Problem(E(stiff, over=A), {"c": E(lambda x, b: x - b, over=B) <= BOUND})
    free, most = A.mean(axis=0), B.mean(axis=0) + BOUND
    expected = np.minimum(free, most)
    assert list(free > most) == [True, False, False]
    for seed in range(2):
        result = mescal.minimize(problem, np.array([1, 1, 1], np.float32), solver=solver, tol=0.01, seed=seed)
        assert result.converged, f"{solver} {seed}: {result}"
        np.testing.assert_allclose(result.x, expected, atol=0.02)
        np.testing.assert_allclose(result.slack["c"], most - expected, atol=0.02)
        np.testing.assert_allclose(result.multipliers["c"], WEIGHTS * (free - expected), atol=0.02)


@pytest.mark.parametrize("solver", ["natasha2", "sg-hv-nc", "spider"])
def test_rows_that_are_far_from_active_cost_no_steps(solver):
    """min E|x - a|^2 / 2 s.t. W x <= 100, which every step keeps far away: with 20 rows and with 200 as many steps.

    Slacks that lag behind put al W'W, which grows with the rows, into the curvature that steps see.
    """
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 10)) / np.sqrt(10)
    a = 1 + rng.normal(size=(200, 10))

    def steps(m):
        far = E(lambda x, _: jnp.asarray(rows[:m], x.dtype) @ x, over=a) <= 100
        problem = mescal.Problem(E(lambda x, row: jnp.sum((x - row) ** 2) / 2, over=a), {"far": far})
        result = mescal.minimize(problem, np.zeros(10, np.float32), solver=solver, tol=0.01, seed=0)
        assert result.converged, f"{solver} {m}: {result}"
        return sum(row.inner_steps for row in result.history)

    few, many = steps(20), steps(200)
    assert max(few, many) <= 1.5 * min(few, many), (few, many)

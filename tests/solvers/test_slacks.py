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

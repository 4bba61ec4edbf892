"""Unbiased to the end: batches of 4 and a penalty of 10 settle at the solution; the same-batch penalty settles off it.

    min (x_1^2 + x_2^2)/2   s.t.   E[zeta x_1 + x_2 - 1] = 0,   zeta = 1 + xi, xi ~ N(0, 1)

has the solution (1/2, 1/2) with multiplier -1/2. From one batch of n, E[al |cbar|^2 / 2] = al |c|^2 / 2 + al x_1^2 / (2n): the
penalty has a ridge of its own. With n = 4 and al = 10 that is 2.5 on x_1, and the minimiser under it, at the multipliers
that make it feasible, is (1, 3.5)/4.5 = (0.22, 0.78).
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.solvers import Natasha2, SgHvNc, Spider

BATCH, PENALTY, TOLERANCE = 4, 10.0, 0.05
SOLUTION, BIASED = np.array([0.5, 0.5]), np.array([1, 3.5]) / 4.5
OUTER, STEPS = 30, 4000


@pytest.fixture(scope="module")
def problem():
    zeta = mescal.Sampler(lambda key: 1 + jax.random.normal(key))
    constraint = E(lambda x, z: z * x[0] + x[1] - 1, over=zeta) == 0
    return mescal.Problem(E(lambda x: x @ x / 2), {"c": constraint})


def settle(oracle, key):
    """The method of multipliers on stochastic gradients from batches of 4: Polyak averages, exact mean of c for the dual."""

    def inner(x, lam, key):
        at = replace(oracle, multipliers=lam[None])

        def step(carry, t):
            x, total = carry
            gradient, _ = at.gradient(x, jax.random.fold_in(key, t), BATCH)
            x = x - 0.02 / jnp.sqrt(1 + t / 50) * gradient
            return (x, total + x), None

        (_, total), _ = jax.lax.scan(step, (x, jnp.zeros_like(x)), jnp.arange(STEPS))
        return total / STEPS

    def outer(carry, k):
        x, lam = carry
        x = inner(x, lam, jax.random.fold_in(key, k))
        return (x, lam + oracle.penalty * (x[0] + x[1] - 1)), x

    _, path = jax.lax.scan(outer, (jnp.zeros(2), jnp.zeros(())), jnp.arange(OUTER))
    return jnp.mean(path[OUTER // 2 :], axis=0)


def test_batches_of_four_settle_at_the_solution_and_the_same_batch_off_it(problem, make_lagrangian, same_batch, key):
    """Over 20 keys, what is returned spreads by 0.0045 (ours) and 0.0007 (same batch): the bounds are eleven of these away."""
    ours = np.asarray(jax.jit(settle)(make_lagrangian(problem, np.zeros(2), [0.0], PENALTY), key))
    biased = make_lagrangian(problem, np.zeros(2), [0.0], PENALTY, same_batch)
    theirs = np.asarray(jax.jit(settle)(biased, key))
    assert np.linalg.norm(ours - SOLUTION) < TOLERANCE
    assert np.linalg.norm(theirs - BIASED) < TOLERANCE
    assert np.linalg.norm(theirs - SOLUTION) > 5 * TOLERANCE


@pytest.mark.parametrize(
    "solver",
    [
        Spider(batch=BATCH),
        pytest.param(SgHvNc(batch=2, points=2), marks=pytest.mark.slow),
        pytest.param(Natasha2(batch=BATCH), marks=pytest.mark.slow),
    ],
)
def test_every_solver_with_batches_of_four_is_certified_at_the_solution(problem, solver):
    """The certificate holds with confidence 0.95; a gradient of 0.01 moves the solution by at most 0.01."""
    result = mescal.minimize(
        problem, np.zeros(2, np.float32), solver=solver, tol=0.01, outer=mescal.Outer(penalty=PENALTY), seed=0
    )
    assert result.converged, result
    assert np.linalg.norm(result.x - SOLUTION) < 0.02
    assert result.multipliers["c"] == pytest.approx(-0.5, abs=0.02)

"""Gradient steps: as long as the trust radius lets them be, whatever pushes against the boundary of the set."""

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.solvers.move import gradient_step, natural_radius

SETS = {
    "box": (mescal.sets.Box(-1.0, 1.0), [1.0, 0.0, -1.0]),
    "orthant": (mescal.sets.NonNegative(), [0.0, 2.0, 0.0]),
    "ball": (mescal.sets.Ball(5.0), [3.0, 0.0, 4.0]),
    "simplex": (mescal.sets.Simplex(), [0.5, 0.5, 0.0]),
}


@pytest.fixture(scope="module", params=SETS)
def on_boundary(request, make_lagrangian):
    domain, x = SETS[request.param]
    x = np.array(x, np.float32)
    problem = mescal.Problem(E(lambda y: jnp.sum(y**2)), {}, domain)
    return make_lagrangian(problem, x, [], 1.0), jnp.asarray(x)


def test_no_step_is_longer_than_the_trust_radius(on_boundary):
    """|P(x - t g) - x| <= t |P_T(-g)| for every convex set; L is so small that the radius alone limits the step."""
    oracle, z = on_boundary
    for seed in range(20):
        g = jnp.asarray(np.random.default_rng(seed).normal(size=3) * 10.0 ** (seed % 5), jnp.float32)
        moved = gradient_step(oracle, z, g, jnp.float32(1e-8), jnp.float32(0.25))
        assert float(jnp.linalg.norm(moved - z)) <= 0.25 * float(natural_radius(z)) * (1 + 1e-5)


def test_what_pushes_against_a_bound_does_not_shorten_a_step(make_lagrangian):
    """x_1 is pushed against its bound by 10^6, and x_2 is to move by g/L = 0.5 all the same."""
    problem = mescal.Problem(E(lambda y: jnp.sum(y**2)), {}, mescal.sets.Box(-1.0, 1.0))
    z = jnp.asarray([1.0, 0.0], jnp.float32)
    oracle = make_lagrangian(problem, z, [], 1.0)
    moved = gradient_step(oracle, z, jnp.asarray([-1e6, 1.0], jnp.float32), jnp.float32(2), jnp.float32(1))
    np.testing.assert_allclose(moved, [1.0, -0.5], rtol=1e-6)

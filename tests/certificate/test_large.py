"""Certificates of many variables: the cone that decides comes first, and what is held at its bounds costs nothing."""

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, sets

D = 2000  # beyond what is formed densely


def boxed(free):
    """min a.x + sum w_i x_i^2/2 on [0, 1]^d: all but `free` coordinates are held at 0 with multiplier 1 at the minimiser."""
    inside = np.arange(D) < free
    a, w = np.where(inside, -0.5, 1.0), np.linspace(1, 3, D)
    slope, bend = jnp.asarray(a, jnp.float32), jnp.asarray(w, jnp.float32)
    problem = mescal.Problem(E(lambda x: slope @ x + jnp.sum(bend * x**2) / 2), {}, sets.Box(0.0, 1.0))
    return problem, np.where(inside, 0.5 / w, 0.0).astype(np.float32)


@pytest.mark.parametrize("free", [1, 5, D // 2])
def test_held_coordinates_cost_nothing(free):
    """At most 19 steps decide on the free coordinates, the curvature of which is 1 or more; the other cones get 64 each."""
    problem, x = boxed(free)
    found = mescal.certify(problem, x, tol=0.01)
    assert found.passes(0.01)
    assert 0 < found.curvature.lower <= 1 + 1e-6 <= found.curvature.upper + 2e-2
    assert found.work.hvps <= 19 + 2 * 64 + 20
    for curvature in found.curvatures.values():
        assert curvature.lower <= 1.01 and curvature.upper >= 0.99


def test_negative_curvature_on_the_free_coordinates_is_found():
    problem, x = boxed(D // 2)
    bent = mescal.Problem(problem.objective + E(lambda y: -3 * (y[3] - 0.2) ** 2), {}, sets.Box(0.0, 1.0))
    x = x.copy()
    w3 = float(np.linspace(1, 3, D)[3])
    x[3] = (0.5 - 1.2) / (w3 - 6)  # stationary, with curvature w_3 - 6
    found = mescal.certify(bent, x, tol=0.01)
    assert found.stationarity.upper < 1e-4 and not found.passes(0.01)
    assert found.curvature.value == pytest.approx(w3 - 6, abs=0.01) and abs(found.direction[3]) > 0.9

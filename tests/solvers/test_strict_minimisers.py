"""Strict minimisers with strong rows: certified by default, although curvature is negative on the tangent cone.

The paper's condition (iii) asks for curvature on all tangent directions that keep c, and no minimiser owes it that: at 0,
min x - x^2 over x >= 0 rises at rate 1 in the one direction there is, whose curvature is -2. It is the counter-example.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, sets

PRACTICAL = tuple(name for name in mescal.solvers.names() if mescal.solvers.get(name).mode == "practical")


def at_zero(slope):
    """min slope x - x^2 over [0, 0.4]."""
    return mescal.Problem(E(lambda x, s=jnp.float32(slope): jnp.sum(s * x - x**2)), {}, sets.Box(0.0, 0.4))


def vertex():
    """min c.x - 0.4 |x|^2 over the simplex: e_0 is a strict minimiser, its neighbours along every edge are higher."""
    return mescal.Problem(E(lambda x: x[1] + x[2] - 0.4 * x @ x), {}, sets.Simplex())


def below_one():
    """min -x^2 with x <= 1 as a constraint, on [0, 3]."""
    return mescal.Problem(E(lambda x: -(x[0] ** 2)), {"x <= 1": E(lambda x: x[0]) <= 1}, sets.Box(0.0, 3.0))


CASES = {
    "zero": (at_zero(1), [0.3], [0.0]),
    "vertex": (vertex(), [0.5, 0.3, 0.2], [1, 0, 0]),
    "one": (below_one(), [0.5], [1.0]),
}


@pytest.mark.parametrize("solver", PRACTICAL)
@pytest.mark.parametrize("name", CASES)
def test_certified_by_default_and_refused_by_the_papers_condition(name, solver):
    problem, x0, minimiser = CASES[name]
    result = mescal.minimize(problem, np.asarray(x0, np.float32), solver=solver, tol=0.01)
    assert result.converged and result.certificate.cone == "critical", result
    np.testing.assert_allclose(result.x, minimiser, atol=0.011)
    assert result.certificate.curvatures["paper"].upper < -0.3


def test_refused_where_the_critical_cone_refuses():
    """With multipliers below the tolerance the same rows are weak, and the curvature into the set decides."""
    assert mescal.certify(at_zero(1), np.zeros(1), tol=0.01).passes(0.01)
    weak = mescal.certify(at_zero(0.001), np.zeros(1), tol=0.01)
    assert weak.cone == "critical" and weak.stationarity.upper <= 0.01 and not weak.passes(0.01)
    assert weak.curvature.upper < -1 and weak.direction is not None and weak.direction[0] > 0
    edge = mescal.certify(vertex(), np.array([0.0, 0.5, 0.5]), tol=0.01)
    assert not edge.passes(0.01)  # stationary along the edge, where it is a maximiser
    level = mescal.Problem(E(lambda x: -0.4 * x @ x), {}, sets.Simplex())
    middle = mescal.certify(level, np.full(3, 1 / 3), tol=0.01)
    assert middle.stationarity.upper <= 0.01 and middle.curvature.upper < -0.7
    start = below_one()
    assert not mescal.certify(start, np.zeros(1), tol=0.01).passes(0.01)
    assert mescal.certify(start, np.ones(1), tol=0.01).passes(0.01)

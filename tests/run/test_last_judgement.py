"""The certificate of a run that broke off: at its own multipliers, unless less is missing at the best ones."""

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.run.judging import last_judgement
from mescal.run.loop import Run
from mescal.run.mescal import prepare
from mescal.run.settings import Outer, Settings
from mescal.solvers import get

ROWS = np.ones((20, 2), np.float32)
SETTINGS = Settings(tol=0.01, cone="paper", max_outer=3, outer=Outer(max_inner=10))


def run_at(x: list[float]) -> Run:
    """A run that has only just begun, with multipliers zero."""
    problem = mescal.Problem(E(lambda x: x @ x / 2), {"c": E(lambda x, a: a @ x, over=ROWS) == 1})
    return prepare(problem, np.asarray(x, np.float32), get("spider"), SETTINGS, None)


def test_a_minimiser_with_multipliers_that_lag_behind_is_certified_at_the_best():
    run = run_at([0.5, 0.5])
    assert not mescal.certify(run.here.problem, np.array([0.5, 0.5]), [0.0], tol=0.01).passes(0.01)
    state, certificate = last_judgement(run.here, run.state, None)
    assert certificate.passes(0.01) and certificate.multipliers["c"] == pytest.approx(-0.5)
    assert state.judged.total > 0 == run.state.judged.total


def test_another_point_has_the_best_multipliers_too():
    """grad f + lam (1, 1) = (0.9, 0.3) + lam (1, 1) is smallest at lam = -0.6."""
    run = run_at([0.9, 0.3])
    state, certificate = last_judgement(run.here, run.state, None)
    assert not certificate.passes(0.01) and state.judged.total > 0
    assert certificate.multipliers["c"] == pytest.approx(-0.6)
    assert certificate.stationarity.value == pytest.approx(np.hypot(0.3, 0.3))


@pytest.mark.parametrize("solver", ["newton-cg", "spider"])
def test_many_constraints_with_tiny_slacks_are_certified(solver):
    """200 half-spaces, a few active: a solver's own slacks of 1e-8 beside positive multipliers are read as zero."""
    rng = np.random.default_rng(0)
    normals, offsets = rng.normal(size=(200, 5)), np.abs(rng.normal(size=200)) + 0.05
    rows = rng.normal(size=(100, 5)) + 1
    problem = mescal.Problem(
        E(lambda x, r: jnp.sum((x - 3 * r) ** 2) / 2, over=rows),
        {"c": E(lambda x: jnp.asarray(normals, x.dtype) @ x) <= offsets},
    )
    result = mescal.minimize(problem, np.zeros(5, np.float32), solver=solver, tol=1e-3)
    assert result.converged, result
    assert mescal.certify(problem, result.x, tol=1e-3).passes(1e-3)

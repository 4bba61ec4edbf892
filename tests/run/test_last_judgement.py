"""The certificate of a run that broke off: at its own multipliers, unless only better ones pass."""

import numpy as np
import pytest

import mescal
from mescal import E
from mescal.run.judging import last_judgement
from mescal.run.loop import Run
from mescal.run.mescal import prepare
from mescal.run.settings import check_settings
from mescal.solvers import get

ROWS = np.ones((20, 2), np.float32)
DEFAULTS = {
    "cone": "paper", "seed": 0, "max_outer": 3, "max_inner": 10, "max_work": None, "max_seconds": None, "penalty": 1.1,
    "growth": 1.1, "bounded_dual": False, "scale": True, "record": None, "confidence": 0.95, "callback": None,
    "progress": None,
}  # fmt: skip


def run_at(x: list[float]) -> Run:
    """A run that has only just begun, with multipliers zero."""
    problem = mescal.Problem(E(lambda x: x @ x / 2), {"c": E(lambda x, a: a @ x, over=ROWS) == 1})
    return prepare(problem, np.asarray(x, np.float32), get("spider"), check_settings(tol=0.01, **DEFAULTS), None)


def test_a_minimiser_with_multipliers_that_lag_behind_is_certified_at_the_best():
    run = run_at([0.5, 0.5])
    assert not mescal.certify(run.here.problem, np.array([0.5, 0.5]), [0.0], tol=0.01).passes(0.01)
    state, certificate = last_judgement(run.here, run.state, None)
    assert certificate.passes(0.01) and certificate.multipliers["c"] == pytest.approx(-0.5)
    assert state.judged.total > 0 == run.state.judged.total


def test_another_point_keeps_the_multipliers_of_the_run():
    run = run_at([0.9, 0.3])
    state, certificate = last_judgement(run.here, run.state, None)
    assert not certificate.passes(0.01) and certificate.multipliers["c"] == 0 and state.judged.total > 0

"""A judge whose time is up ends with intervals that hold: whenever it is stopped, they contain the truth and prove nothing else."""

import itertools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.certificate import second_order
from mescal.certificate.budget import Budget

RNG = np.random.default_rng(11)
ROWS = RNG.normal(size=(40, 12))


def bowl(x, a):
    """Smooth at 0, which the judge has to find out: it has a kink elsewhere."""
    return 0.5 * (a @ x) ** 2 + 0.1 * jnp.sum(jnp.cos(x)) - 0.3 * x[0] * x[1] + jnp.maximum(x[0] - 7, 0)


def stopped_after(checks):
    """A budget that is over at the so-and-so-manieth time that somebody asks."""
    count = itertools.count()
    return Budget(asked=lambda: next(count) >= checks)


PROBLEMS = {
    "free": mescal.Problem(E(bowl, over=ROWS)),
    "weak bounds": mescal.Problem(
        E(bowl, over=ROWS), {"c": E(lambda x: jnp.sum(x)) == 0.0}, domain=mescal.sets.NonNegative()
    ),
}


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("name", PROBLEMS)
def test_stopped_anywhere_the_intervals_hold(monkeypatch, name, dense):
    """Dense faces and Lanczos alike; with all of its time, the judge certifies or refuses."""
    x = np.zeros(12)
    full = mescal.certify(PROBLEMS[name], x, tol=1e-3)
    if not dense:
        monkeypatch.setattr(second_order, "DENSE_SIZE", 1)
    passes = []
    for checks in (0, 1, 3, 4, 5, 8, 13, 21, 34, 300):
        found = mescal.certify(PROBLEMS[name], x, tol=1e-3, max_seconds=stopped_after(checks))
        for cone, measured in found.curvatures.items():
            truth = full.curvatures[cone]
            assert measured.lower <= truth.upper and measured.upper >= truth.lower, (checks, cone, measured, truth)
        passes.append(found.passes(1e-3))
        if not found.passes(1e-3) and not found.refuses(1e-3):
            assert any("time was up" in sentence for sentence in found.warnings), checks
    assert not passes[0], "without a product with the Hessian nothing passes"
    assert passes[-1] == full.passes(1e-3)


def test_no_time_at_all_says_what_is_missing():
    found = mescal.certify(PROBLEMS["free"], np.zeros(12), tol=1e-3, max_seconds=0)
    assert not found.passes(1e9) and not found.refuses(1e-3)
    assert "curvature in [-inf, inf]" in found.warnings[-1]
    assert found.to_dict()["curvature"]["lower"] is None and str(found)


def test_streams_stop_between_looks():
    """What 8,192 draws leave open stays open, and nothing is claimed of a spread that was not measured to its end."""
    stream = mescal.Sampler(lambda key: jax.random.normal(key, (12,)))
    problem = mescal.Problem(E(lambda x, a: bowl(x, a) + 5 * (a[0] * x[1]), over=stream))
    for checks in (0, 4, 5, 9):
        found = mescal.certify(problem, np.zeros(12), tol=1e-4, max_seconds=stopped_after(checks))
        assert not found.passes(1e-4) and found.curvature.lower <= 1 - 0.1 - 0.3 <= found.curvature.upper
        assert any("time was up" in sentence for sentence in found.warnings)


def test_functions_that_are_not_surely_smooth_pass_nowhere_without_quotients():
    """|x + 2|^3 is smooth at 0, which only difference quotients can tell."""
    problem = mescal.Problem(E(lambda x, a: bowl(x, a) + x @ x + 1e-3 * jnp.sum(jnp.abs(x + 2) ** 3), over=ROWS))
    late = mescal.certify(problem, np.zeros(12), tol=1.0, max_seconds=stopped_after(0))
    assert not late.passes(1e9) and any("were not compared" in sentence for sentence in late.warnings)
    assert mescal.certify(problem, np.zeros(12), tol=1.0).passes(1.0)


@pytest.mark.parametrize("seconds", ["1", -1, np.nan, True, 1j])
def test_seconds_that_are_none_are_refused(seconds):
    with pytest.raises(mescal.InputError, match="max_seconds="):
        mescal.certify(PROBLEMS["free"], np.zeros(12), max_seconds=seconds)


def test_a_budget_has_a_least_time_that_signals_do_not_cut():
    budget = Budget.of(100.0, lambda: True, least=0.05)
    assert not budget.over
    time.sleep(0.06)
    assert budget.over and not budget.affords(0.0)
    assert Budget.of(0.0).over and not Budget().over and Budget.of(10.0).share(0.5).left <= 5.0

"""What every baseline promises: a certificate on a problem of its class, honest counters, and every way to stop."""

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, Status, baselines, testing
from mescal.baselines import bounds
from mescal.errors import InputError, InputTypeError

NAMES = baselines.names()
THETAS = {"conex": 2 * 64, "penalty-storm": 2 * 64, "stoch-ialm": 2 * 64, "stoch-sqp": 64}  # of a step
PASS = 256


def test_all_are_found():
    assert {"adaptive-curvature", "conex", "penalty-storm", "stoch-ialm", "stoch-sqp"} <= set(NAMES)
    for name in NAMES:
        assert baselines.get(name).name == name
    assert baselines.get("stoch-sqp", batch=32) == baselines.StochSQP(batch=32)
    with pytest.raises(InputError, match="did you mean 'conex'"):
        baselines.get("conx")
    with pytest.raises(InputError, match="no option"):
        baselines.get("conex", step=1.0)
    with pytest.raises(InputTypeError):
        baselines.get(3)


@pytest.mark.parametrize("check", testing.BASELINE_CHECKS)
@pytest.mark.parametrize("name", NAMES)
def test_what_every_baseline_promises(name, check):
    testing.BASELINE_CHECKS[check](baselines.get(name), 0)


@pytest.mark.parametrize("name", THETAS)
def test_work_is_that_of_a_hand_count(solved, name):
    """First leg: a measurement, the bounds (gradients, and HVPs of f and of c), the steps, a measurement.

    The batches of adaptive-curvature adapt; its steps are counted in test_adaptive_curvature.py.
    """
    row = solved[name].history[0]
    gradients = bounds.SAMPLES * (1 + len(bounds.WAY))
    products = bounds.SAMPLES * len(bounds.WAY) * min(bounds.STEPS, 3) * 2
    assert row.hvps == products
    assert row.gradients == gradients + 2 * PASS + row.inner_steps * THETAS[name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_what_becomes_not_a_number_keeps_the_last_good_point(cliffs, name):
    later = baselines.get(name).minimize(cliffs, np.array([0.0], np.float32))
    assert later.status is Status.NOT_FINITE and later.x[0] <= 1 and np.isfinite(later.objective)


@pytest.fixture(scope="module")
def cliffs():
    """Downhill towards x = 1, beyond which nothing is a number."""

    def cliff(x, a):
        return jnp.where(x[0] > 1, jnp.nan, -x[0] * a[0])

    return mescal.Problem(E(cliff, over=np.ones((40, 1), np.float32)))


def test_averages_over_ten_thousand_steps_stay_in_the_set():
    """A variable that its bounds hold at 0.1: sums over many steps would round it away from there."""
    rows = np.random.default_rng(0).normal(size=(64, 2)).astype(np.float32)
    held = mescal.Problem(
        E(lambda x, a: jnp.sum((x - a) ** 2), over=rows), {}, mescal.sets.Box([0.1, -1.0], [0.1, 1.0])
    )
    x0 = np.array([0.1, 0.9], np.float32)
    result = baselines.ConEx().minimize(held, x0, tol=1e-9, max_work=10_000 * THETAS["conex"])
    assert result.x[0] == x0[0] and abs(result.x[1]) <= 1


class TestDeclines:
    def test_the_reasons(self, convex, nonconvex):
        box = mescal.Problem(nonconvex.problem.objective, {}, mescal.sets.Box(-1.0, 1.0))
        assert "equality 'squared'" in str(baselines.ConEx().declines(nonconvex.problem))
        assert "inequality 'along'" in str(baselines.StochSQP().declines(convex.problem))
        assert "bounds" in str(baselines.StochSQP().declines(box))
        for baseline in (baselines.StochIALM(), baselines.PenaltyStorm()):
            assert all(baseline.declines(p) is None for p in (convex.problem, nonconvex.problem, box))
        assert baselines.ConEx().declines(convex.problem) is None is baselines.ConEx().declines(box)
        assert baselines.StochSQP().declines(nonconvex.problem) is None

    @pytest.mark.parametrize("name", ["conex", "stoch-sqp"])
    def test_declined_with_advice(self, convex, nonconvex, name):
        problem = nonconvex.problem if name == "conex" else convex.problem
        with pytest.raises(baselines.OutOfClass) as caught:
            baselines.get(name).minimize(problem, np.ones(3, np.float32))
        assert isinstance(caught.value, InputError) and "mescal.minimize" in caught.value.advice
        assert name in caught.value.found

"""What every baseline promises: a certificate on a problem of its class, honest counters, and every way to stop."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, Status, baselines
from mescal.baselines import bounds
from mescal.errors import InputError, InputTypeError

NAMES = baselines.names()
THETAS = {"conex": 2 * 64, "penalty-storm": 2 * 64, "stoch-ialm": 2 * 64, "stoch-sqp": 64}  # of a step
PASS = 256


def test_all_five_are_found():
    assert NAMES == ("adaptive-curvature", "conex", "penalty-storm", "stoch-ialm", "stoch-sqp")
    for name in NAMES:
        assert baselines.get(name).name == name
    assert baselines.get("stoch-sqp", batch=32) == baselines.StochSQP(batch=32)
    with pytest.raises(InputError, match="did you mean 'conex'"):
        baselines.get("conx")
    with pytest.raises(InputError, match="no option"):
        baselines.get("conex", step=1.0)
    with pytest.raises(InputTypeError):
        baselines.get(3)


@pytest.mark.parametrize("name", NAMES)
class TestEveryBaseline:
    def test_certified_at_the_known_solution(self, known, solved, name):
        """A certificate to eps puts x within eps / mu of a minimiser, mu = 1 the curvature of f and lam >= 0: 3 eps is ample."""
        result, at, tol = solved[name], known[name], solved[name].tolerance.gradient
        assert result.converged and result.solver == name
        again = mescal.certify(at.problem, result.x, result.multipliers, slack=result.slack, tol=tol)
        assert again.passes(tol)
        assert np.linalg.norm(result.x - at.solution) <= 3 * tol
        if at.constraint is not None:
            assert abs(float(result.multipliers[at.constraint]) - at.multiplier) <= 5 * tol

    def test_history_has_the_rows_of_minimize(self, solved, name):
        result = solved[name]
        assert len(result.history) == result.outer_iterations
        assert np.all(np.diff(result.history.column("work")) > 0)
        last = result.history[-1]
        assert last.inner == "verified" and last.work <= result.work.total
        assert max(last.stationarity, last.feasibility) <= solved[name].tolerance.gradient
        assert last.step > 0 and last.batch >= 64 and last.large_batch == PASS
        assert result.history.to_csv().startswith("outer,work")

    def test_work_is_that_of_a_hand_count(self, solved, name):
        """First leg: a measurement, the bounds (gradients, and HVPs of f and of c), the steps, a measurement."""
        if name not in THETAS:
            pytest.skip("its batches adapt; its steps are counted in test_adaptive_curvature.py")
        row = solved[name].history[0]
        gradients = bounds.SAMPLES * (1 + len(bounds.WAY))
        products = bounds.SAMPLES * len(bounds.WAY) * min(bounds.STEPS, 3) * 2
        assert row.hvps == products
        assert row.gradients == gradients + 2 * PASS + row.inner_steps * THETAS[name]

    def test_same_seed_same_bits_and_nothing_recompiles(self, known, solved, traces, name):
        first, before = solved[name], traces()
        again = known[name].solve(name)
        other = known[name].solve(name, seed=1)
        tight = known[name].solve(baselines.get(name, max_outer=3), tol=1e-8, seed=2)
        assert np.array_equal(again.x, first.x) and again.work.total == first.work.total
        assert not np.array_equal(other.x, first.x) and other.converged
        assert tight.status is Status.OUTER_LIMIT and len(tight.history) == 3 and not tight.converged
        assert traces() == before
        assert again.seconds.compile == other.seconds.compile == 0
        assert (
            tight.seconds.compile == 0 or name == "adaptive-curvature"
        )  # feasible: the judge looks for a kink beside it

    def test_budgets_and_callbacks_end_a_run(self, known, solved, name):
        _ = solved[name]  # compiled by then
        work = known[name].solve(name, tol=1e-8, max_work=30_000)
        assert work.status is Status.WORK_LIMIT and 30_000 < work.work.total < 90_000
        time = known[name].solve(name, tol=1e-8, max_seconds=1e-3)
        assert time.status is Status.TIME_LIMIT
        rows = []
        stopped = known[name].solve(name, tol=1e-8, callback=lambda row: row.outer == 1, progress=rows.append)
        assert stopped.status is Status.STOPPED and len(stopped.history) == 2 == len(rows)

        def interrupt(row):
            raise KeyboardInterrupt

        interrupted = known[name].solve(name, tol=1e-8, callback=interrupt)
        assert interrupted.status is Status.INTERRUPTED
        for result in (work, time, stopped, interrupted):
            assert not result.converged and np.isfinite(result.x).all() and "NOT CERTIFIED" in str(result)

    def test_what_is_not_a_number_ends_a_run(self, cliffs, name):
        at_once = baselines.get(name).minimize(cliffs, np.array([1.5], np.float32))
        assert at_once.status is Status.NOT_FINITE and at_once.x == 1.5 and not at_once.converged

    @pytest.mark.slow
    def test_what_becomes_not_a_number_keeps_the_last_good_point(self, cliffs, name):
        later = baselines.get(name).minimize(cliffs, np.array([0.0], np.float32))
        assert later.status is Status.NOT_FINITE and later.x[0] <= 1 and np.isfinite(later.objective)

    def test_wrong_arguments_are_refused(self, known, name):
        at = known[name]
        with pytest.raises(InputError, match="tol"):
            at.solve(name, tol=-1)
        with pytest.raises(InputError, match="max_work"):
            at.solve(name, max_work=0)
        not_a_problem: Any = 3
        with pytest.raises(InputTypeError, match=r"mescal\.Problem"):
            baselines.get(name).minimize(not_a_problem, at.x0)


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
    def test_declined_before_any_work(self, convex, nonconvex, traces, name):
        problem = nonconvex.problem if name == "conex" else convex.problem
        before, rows = traces(), []
        with pytest.raises(baselines.OutOfClass) as caught:
            baselines.get(name).minimize(problem, np.ones(3, np.float32), progress=rows.append)
        assert isinstance(caught.value, InputError) and "mescal.minimize" in caught.value.advice
        assert name in caught.value.found and traces() == before and not rows


@pytest.mark.parametrize("name", baselines.names())
def test_a_run_that_is_carried_on_ends_as_if_it_had_never_stopped(known, solved, name, tmp_path):
    """From what a budget leaves, inside of a leg."""
    whole, at = solved[name], known[name]
    kept = mescal.Checkpoint(tmp_path, seconds=0.0)
    half = at.solve(name, max_work=whole.work.total / 8, checkpoint=kept)
    assert half.status is Status.WORK_LIMIT
    resumed = mescal.resume(tmp_path, at.problem, max_work=2e7)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.work.solver == whole.work.solver and resumed.status is whole.status
    assert [row.multipliers for row in resumed.history] == [row.multipliers for row in whole.history]

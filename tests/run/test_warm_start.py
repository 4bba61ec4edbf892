"""Large populations are solved on a sixteenth of their rows first: what that counts, says, and where it gives way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, Status
from mescal.solvers import Auto, Spider

RNG = np.random.default_rng(0)
ROWS = (RNG.normal(size=(4000, 3)) + np.array([0.5, -0.2, 0.1])).astype(np.float32)
X0 = np.array([2.0, -1.0, 0.5], np.float32)
LARGE, NEVER = Auto(small=64, large=2000), Auto(small=64, large=0)


def loss(x, row):
    return jnp.logaddexp(0.0, -row @ x) + 0.01 * x @ x


@pytest.fixture(scope="module", autouse=True)
def short_chunks():
    """A look at the budgets after every epoch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Spider, "chunk", 1)
        yield


@pytest.fixture(scope="module")
def problem() -> mescal.Problem:
    return mescal.Problem(E(loss, over=ROWS), {"circle": E(lambda x: x @ x) == 1.0})


@pytest.fixture(scope="module")
def rehearsed(problem):
    return mescal.minimize(problem, X0, solver=LARGE, tol=1e-4)


def test_it_ends_where_a_run_from_nowhere_ends_and_says_what_it_did(problem, rehearsed):
    cold = mescal.minimize(problem, X0, solver=NEVER, tol=1e-4)
    assert rehearsed.converged and cold.converged
    assert "began at a solution on 250 rows" in rehearsed.reason and "began" not in cold.reason
    assert rehearsed.outer_iterations == len(rehearsed.history)
    np.testing.assert_allclose(rehearsed.x, cold.x, atol=1e-3)


def test_both_parts_count(problem, rehearsed):
    """The second one's searches may cost a share of all work so far, so that theirs is not the sum."""
    first = mescal.minimize(mescal.subsample(problem, 250), X0, solver=NEVER, tol=1e-4)
    then = mescal.minimize(problem, start=first, solver=NEVER, tol=1e-4)
    np.testing.assert_array_equal(rehearsed.x, then.x)
    parts = first.work.solver + then.work.solver
    assert rehearsed.work.gradients == parts.gradients
    assert rehearsed.work.judge == first.work.judge + then.work.judge
    assert parts.total <= rehearsed.work.total < 1.2 * parts.total
    assert rehearsed.history[0].work > first.work.total


def test_budgets_are_for_both_parts(problem):
    short = mescal.minimize(problem, X0, solver=LARGE, tol=1e-4, max_work=500)
    assert short.status is Status.WORK_LIMIT and "no solution to begin at" in short.reason
    assert mescal.minimize(problem, X0, solver=LARGE, tol=1e-4, max_seconds=1e-9).status is Status.TIME_LIMIT


def test_a_stored_run_is_carried_on_as_if_nothing_had_happened(problem, rehearsed, tmp_path):
    mescal.minimize(problem, X0, solver=LARGE, tol=1e-4, checkpoint=tmp_path, max_work=0.8 * rehearsed.work.total)
    resumed = mescal.resume(tmp_path, problem, max_work=1e12)
    np.testing.assert_array_equal(resumed.x, rehearsed.x)
    assert resumed.work.solver == rehearsed.work.solver


def test_without_a_solution_on_some_rows_it_starts_from_x0():
    """The constraint can be met because of one row in 4000, which the draw does not hold."""
    marks = np.zeros(4000, np.float32)
    marks[np.setdiff1d(np.arange(4000), _drawn(4000))[0]] = 4000.0
    rows = {"a": ROWS, "mark": marks}
    hard = mescal.Problem(
        E(lambda x, row: loss(x, row["a"]), over=rows), {"mark": E(lambda x, row: row["mark"] * x[0], over=rows) >= 1.0}
    )
    result = mescal.minimize(hard, X0 * np.float32(0.1), solver=LARGE, tol=1e-3)
    cold = mescal.minimize(hard, X0 * np.float32(0.1), solver=NEVER, tol=1e-3)
    assert result.converged and "no solution to begin at" in result.reason
    np.testing.assert_array_equal(result.x, cold.x)
    assert result.work.total > cold.work.total


def _drawn(size: int) -> np.ndarray:
    part = mescal.subsample(mescal.Problem(E(lambda x, i: i * x[0], over=np.arange(size))), 250)
    source = part.sources[0]
    assert isinstance(source, mescal.problem.Population)
    return np.asarray(source.arrays)


@pytest.mark.parametrize("solver", [NEVER, Spider(), Auto()], ids=["off", "spider", "too small"])
def test_nothing_is_solved_first_elsewhere(problem, solver, monkeypatch):
    monkeypatch.setattr("mescal.run.warm_start.subsample", lambda *_: pytest.fail("drew rows"))
    assert mescal.minimize(problem, X0, solver=solver, tol=0.01).converged


@pytest.mark.slow
def test_streams_rows_elsewhere_and_deterministic_problems_have_no_rows_to_draw(monkeypatch, tmp_path):
    monkeypatch.setattr("mescal.run.warm_start.subsample", lambda *_: pytest.fail("drew rows"))
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    stream = mescal.Sampler(lambda key: jax.random.normal(key, (3,)))
    np.save(tmp_path / "rows.npy", ROWS)
    for over in (mescal.shard(ROWS, mesh), stream, mescal.on_disk(tmp_path / "rows.npy")):
        result = mescal.minimize(mescal.Problem(E(loss, over=over)), X0, solver=LARGE, tol=0.1, max_work=3e5)
        assert "began" not in result.reason
    flat = mescal.minimize(mescal.Problem(E(lambda x: x @ x)), X0, solver=Auto(small=1, large=1), tol=0.01)
    assert flat.converged

"""Rows as a stream: the draws are those of the population, the expectation is its mean, and nobody makes a pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import mescal
from mescal import E
from mescal.certificate.sampling import draw
from mescal.errors import InputError
from mescal.problem.stored import Selected

ROWS = 3_000_000  # more than what the tolerance below takes, by far
SURE = 1 - 1e-6  # of intervals that a test looks at: false failures, 1 in 10^6


def loss(x, row):
    return jnp.sum((x - row) ** 2) / 2


def gap(x, row):
    return x[0] + x[1] * row[0] - 0.5


def problem_over(rows):
    return mescal.Problem(E(loss, over=rows), {"gap": E(gap, over=rows) == 0})


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(3).normal(1.0, 0.3, size=(5000, 2)).astype(np.float32)


def test_estimates_are_those_of_the_population_bit_for_bit(rows, make_lagrangian, key):
    x = np.array([0.3, 0.7], np.float32)
    whole, streamed = (make_lagrangian(problem_over(over), x, [0.5], 2.0) for over in (rows, mescal.stream(rows)))
    assert whole.population == 5000 and streamed.population is None
    (first, spent), (second, also) = (oracle.estimate(jnp.asarray(x), key, 300) for oracle in (whole, streamed))
    for a, b in zip(jax.tree.leaves((first, spent)), jax.tree.leaves((second, also)), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_the_work_is_less_than_one_pass_and_the_certificate_is_true():
    many = np.random.default_rng(5).normal(1.0, 0.3, size=(ROWS, 2)).astype(np.float32)
    problem, whole = problem_over(mescal.stream(many)), problem_over(many)
    result = mescal.minimize(problem, np.zeros(2, np.float32), tol=0.02, confidence=SURE)
    assert result.converged
    work = result.work
    assert work.solver.total + work.judge.total + work.searches.total < ROWS
    exact = mescal.certify(whole, result.x, result.multipliers, tol=0.02)
    assert exact.passes(0.02)
    for name in ("stationarity", "feasibility", "curvature", "objective"):
        bounds = getattr(result.certificate, name)
        assert bounds.lower <= getattr(exact, name).value <= bounds.upper, name


def test_rows_on_disk_are_drawn_alike(rows, tmp_path, make_lagrangian, key):
    np.save(tmp_path / "rows.npy", rows)
    x = np.array([0.3, 0.7], np.float32)
    sources = [mescal.stream(over) for over in (rows, mescal.on_disk(tmp_path / "rows.npy"))]
    estimates = [
        make_lagrangian(problem_over(source), x, [0.5], 2.0).estimate(jnp.asarray(x), key, 300)[0] for source in sources
    ]
    for a, b in zip(*map(jax.tree.leaves, estimates), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    judged = [draw({0: source}, {}, 100, {0: (1,)})[0].at(np.arange(100)).samples for source in sources]
    np.testing.assert_array_equal(judged[0], judged[1])


def test_rows_taken_as_a_sample_are_halved_and_not_drawn_again(rows):
    """Fresh draws of the rows would say ever more of the rows, and nothing more of where they came from."""
    x = np.zeros(2, np.float32)
    of_rows, of_stream = (
        mescal.certify(mescal.Problem(E(loss, over=over)), x, as_sample=True, tol=0.01)
        for over in (rows, mescal.stream(rows))
    )
    assert of_rows.stationarity == of_stream.stationarity and of_rows.objective == of_stream.objective
    with pytest.raises(InputError, match="rows to split"):
        mescal.certify(mescal.Problem(E(loss, over=mescal.stream(rows[:5]))), x, as_sample=True)


def test_the_judge_draws_all_rows_alike():
    drawn = draw({0: mescal.stream(np.arange(4, dtype=np.float32))}, {}, 80_000, {0: (0,)})[0]
    counts = np.bincount(np.asarray(drawn.at(np.arange(80_000)).samples).astype(int), minlength=4)
    assert stats.chisquare(counts).pvalue > 1e-6  # false failures: 1 in 10^6


def test_rows_on_disk_stay_there_when_they_are_judged(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros((10, 3)))
    drawn = draw({0: mescal.stream(mescal.on_disk(tmp_path / "rows.npy"))}, {}, 1000, {0: (0,)})[0]
    assert isinstance(drawn, Selected) and drawn.size == 1000


def test_a_subsample_is_of_the_rows(rows):
    (source,) = mescal.subsample(problem_over(mescal.stream(rows)), 100).sources
    assert source.size == 100


def test_streams_of_the_same_rows_are_one_source(rows):
    one = mescal.Problem(E(loss, over=mescal.stream(rows)), {"gap": E(gap, over=mescal.stream(rows)) == 0})
    two = mescal.Problem(E(loss, over=mescal.stream(rows)), {"gap": E(gap, over=rows) == 0})
    assert len(one.sources) == 1 and len(two.sources) == 2
    assert "stream of Population(5000 rows)" in repr(one.sources[0])


def test_other_rows_do_not_carry_a_run_on(rows, tmp_path):
    start = np.zeros(2, np.float32)
    mescal.minimize(
        problem_over(mescal.stream(rows)), start, tol=0.05, max_outer=1, checkpoint=tmp_path, solver="newton-cg"
    )
    with pytest.raises(InputError, match="other rows"):
        mescal.resume(tmp_path, problem_over(mescal.stream(rows + 1)))


def test_the_taylor_checks_take_streams_of_rows(rows):
    mescal.testing.check_derivatives(problem_over(mescal.stream(rows)), np.ones(2))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda rows: mescal.stream(mescal.Sampler(lambda key: jax.random.normal(key, (2,)))), "as they are"),
        (lambda rows: mescal.stream(mescal.stream(rows)), "as they are"),
        (lambda rows: mescal.stream(lambda key: jax.random.normal(key, (2,))), r"mescal.Sampler\(draw\)"),
        (lambda rows: mescal.stream("rows/"), r"mescal.stream\(mescal.on_disk\(path\)\)"),
        (lambda rows: mescal.stream(mescal.shard(rows, jax.make_mesh((1,), ("rows",)))), "as they are"),
        (lambda rows: E(loss, over=mescal.stream(rows), weights=np.ones(len(rows))), "together with a stream"),
    ],
)
def test_what_is_refused(make, says, rows):
    with pytest.raises(InputError, match=says):
        make(rows)


def test_weights_are_refused(rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    weighted = mescal.on_disk(tmp_path / "rows.npy").with_weights(np.ones(len(rows)))
    with pytest.raises(InputError, match="count alike"):
        mescal.stream(weighted)


def test_rows_that_are_not_finite_are_refused_when_the_problem_is_built():
    with pytest.raises(InputError, match=r"not finite|NaN"):
        problem_over(mescal.stream(np.array([[1.0, np.nan]])))

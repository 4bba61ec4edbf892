"""The same problem on some of its rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, InputError, InputTypeError
from mescal.problem import Population

RNG = np.random.default_rng(0)
ROWS = {"a": RNG.normal(size=(1000, 3)).astype(np.float32), "i": np.arange(1000)}
FEW = RNG.normal(size=(40, 3)).astype(np.float32)
WEIGHTS = RNG.uniform(1, 2, 1000)


def population(problem: mescal.Problem) -> Population:
    """Its first one."""
    source = problem.sources[0]
    assert isinstance(source, Population)
    return source


def score(x, row):
    return row["a"] @ x


def square(x, row):
    return (row["a"] @ x) ** 2


def draw(key):
    return jax.random.normal(key, (3,))


@pytest.fixture
def problem() -> mescal.Problem:
    stream = mescal.Sampler(draw)
    return mescal.Problem(
        2 * E(square, over=ROWS) - 0.5 * E(score, over=ROWS) + E(lambda x: x @ x) + 3,
        {"few": E(lambda x, a: a @ x, over=FEW) <= 1, "stream": E(lambda x, s: s @ x, over=stream) == 0},
        mescal.sets.Box(-2.0, 2.0),
    )


def test_rows_are_drawn_once_per_population(problem):
    part = mescal.subsample(problem, 100, seed=1)
    assert [source.size for source in part.sources] == [100, 40, None]
    drawn = population(part).arrays
    np.testing.assert_array_equal(drawn["a"], ROWS["a"][drawn["i"]])
    assert len(set(drawn["i"].tolist())) == 100, "without replacement"
    assert part.domain is problem.domain and part.sources[2] is problem.sources[2]
    other = population(mescal.subsample(problem, 100, seed=2)).arrays
    assert not np.array_equal(drawn["i"], other["i"])


def test_the_functions_are_the_same_on_these_rows(problem):
    part = mescal.subsample(problem, 100)
    x = np.array([0.5, -1.0, 0.25])
    a = np.asarray(population(part).arrays["a"], np.float64)
    expected = 2 * np.mean((a @ x) ** 2) - 0.5 * np.mean(a @ x) + x @ x + 3
    unconstrained = mescal.Problem(part.objective)
    assert mescal.certify(unconstrained, x, {}).objective.value == pytest.approx(expected, abs=1e-9)


def test_weights_go_with_their_rows():
    part = mescal.subsample(mescal.Problem(E(score, over=ROWS, weights=WEIGHTS)), 50)
    source = population(part)
    assert source.weights is not None
    kept = WEIGHTS[source.arrays["i"]]
    np.testing.assert_allclose(source.weights / source.weights.sum(), kept / kept.sum())


def test_rows_on_disk_come_into_memory(tmp_path):
    np.save(tmp_path / "a.npy", ROWS["a"])
    np.save(tmp_path / "i.npy", ROWS["i"])
    stored = mescal.on_disk({"a": tmp_path / "a.npy", "i": tmp_path / "i.npy"})
    part = mescal.subsample(mescal.Problem(E(score, over=stored)), 64)
    drawn = population(part).arrays
    np.testing.assert_array_equal(drawn["a"], ROWS["a"][drawn["i"]])


def test_a_population_that_is_small_already_is_kept(problem):
    whole = mescal.subsample(problem, 5000)
    assert [a is b for a, b in zip(whole.sources, problem.sources, strict=True)] == [True] * 3


@pytest.mark.slow
def test_a_large_problem_starts_from_its_sample():
    """From the solution on 300 of 3000 rows, fewer evaluations than from nothing."""
    rows = RNG.normal(size=(3000, 4)).astype(np.float32) + np.float32(0.3)

    def loss(x, a):
        return jnp.logaddexp(0.0, -a @ x)

    large = mescal.Problem(E(loss, over=rows), {"sphere": E(lambda x: x @ x) == 1.0})
    start = np.array([1.0, -2.0, 3.0, -4.0], np.float32)
    first = mescal.minimize(mescal.subsample(large, 300), start, solver="newton-cg", tol=1e-3)
    cold = mescal.minimize(large, start, solver="newton-cg", tol=1e-3)
    warm = mescal.minimize(large, start=first, solver="newton-cg", tol=1e-3)
    assert first.converged and cold.converged and warm.converged
    assert warm.work.total < cold.work.total


@pytest.mark.parametrize("rows", [0, -3, 2.5, "many", True, None])
def test_refused_numbers_of_rows(problem, rows):
    with pytest.raises(InputError, match="at least 1"):
        mescal.subsample(problem, rows)


def test_refused_problems():
    with pytest.raises(InputTypeError, match="Problem"):
        mescal.subsample(E(score, over=ROWS), 10)  # pyright: ignore[reportArgumentType]
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    with pytest.raises(InputError, match=r"before mescal\.shard"):
        mescal.subsample(mescal.Problem(E(score, over=mescal.shard(ROWS, mesh))), 10)

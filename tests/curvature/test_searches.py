"""What every search promises beside its contract: the face, plain cases, prices, no compilation, the same answer twice."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.curvature import Lanczos, Neon2, Oja, Search
from mescal.errors import InputError
from tests.curvature.searches import SEARCHES

EVERY, names = list(SEARCHES.values()), list(SEARCHES)


def test_every_search_is_found_by_its_name():
    assert {"lanczos", "neon2", "oja"} <= set(names)
    for search in EVERY:
        assert Search.named(search.name) == search and getattr(mescal.curvature, type(search).__name__) is type(search)
    assert mescal.solvers.get("spider", search="oja") == mescal.solvers.Spider(search=Oja())
    with pytest.raises(InputError, match="did you mean 'lanczos'"):
        mescal.baselines.get("adaptive-curvature", search="lanczoz")


def test_a_zero_hessian_has_no_negative_curvature(bench, repeated, key):
    answer = bench(repeated(np.zeros((6, 6))), 0.01, key)
    assert not answer.negative
    assert answer.curvature == 0
    assert not answer.direction.any()


@pytest.mark.parametrize("search", EVERY, ids=names)
def test_one_dimension(make_bench, key, search):
    """H = -0.3, 0.3 and -0.3 with noise of deviation 1; t = 0.2."""
    bench = make_bench(search, size=1, rows=1000)
    signs = np.resize([1.0, -1.0], (1000, 1, 1))
    for matrices, negative in ((np.full((1000, 1, 1), -0.3), True), (0.3 + 0 * signs, False), (-0.3 + signs, True)):
        answer = bench(matrices, 0.2, key, batch=1000)
        assert answer.negative == negative
        if negative:
            assert abs(answer.direction[0]) == 1
            assert answer.curvature < -0.1
    assert bench.traces <= 1


def test_active_bounds_restrict_the_search_to_the_face(bench, repeated, noises, key):
    """The lowest eigenvector points out of the face; what counts is the block of the free coordinates."""
    matrix = np.diag([-2.0, 0.6, 0.5, 0.4, 0.7, 0.3])
    matrix[0, 1:] = matrix[1:, 0] = 0.3
    matrix[4, 5] = matrix[5, 4] = 0.2
    on_bound = np.array([1.0, 0, 0, 0.5, 0, 0])
    assert np.linalg.eigvalsh(matrix[1:, 1:])[0] > 0.2
    assert bench(repeated(matrix), 0.1, key).negative
    assert not bench(repeated(matrix), 0.1, key, z=on_bound).negative
    matrix[3, 3] = -0.5
    answer = bench(matrix + 0.1 * noises["gauss"], 0.2, key, z=np.array([1.0, 0, -1.0, 0.5, 0, 0]))
    assert answer.negative
    assert answer.direction[0] == answer.direction[2] == 0
    assert answer.direction @ matrix @ answer.direction <= -0.4
    nowhere = bench(repeated(-np.eye(6)), 0.1, key, z=np.ones(6))
    assert not nowhere.negative
    assert not nowhere.direction.any()


def test_the_same_key_gives_the_same_answer_and_nothing_recompiles(bench, noises, symmetric, key):
    matrices = symmetric(np.random.default_rng(0), [-0.5, 0, 0.1, 0.2, 0.5, 1.0]) + 0.3 * noises["rank one"]
    first, again = bench(matrices, 0.3, key), bench(matrices, 0.3, key)
    assert first.negative
    np.testing.assert_array_equal(first.direction, again.direction)
    assert (first.curvature, first.work) == (again.curvature, again.work)
    other = bench(matrices, 0.2, jax.random.fold_in(key, 1), batch=500)
    assert not np.array_equal(first.direction, other.direction)
    assert bench.traces <= 1


def test_nan_ends_the_search_with_nothing(bench, repeated, key):
    answer = bench(repeated(np.full((6, 6), np.nan)), 0.1, key)
    assert not answer.negative
    assert not answer.direction.any()


def test_lanczos_by_hand(make_bench, repeated, noises, symmetric, key):
    """One eigenvalue: one step. Two: two steps. Noise that only the whole population resolves: two attempts."""
    bench = make_bench(Lanczos())
    once = bench(repeated(0.5 * np.eye(6)), 0.2, key)
    assert (once.work.hvps, once.work.gradients) == (128 + 8 * 16, 0)
    assert once.curvature == pytest.approx(0.5, rel=1e-5)
    matrix = symmetric(np.random.default_rng(1), [-0.7, -0.7, 1, 1, 1, 1])
    twice = bench(repeated(matrix), 0.2, key)
    assert (twice.work.hvps, twice.work.gradients) == (2 * 128 + 8 * 16, 0)
    assert twice.curvature == pytest.approx(-0.7, rel=1e-5)
    whole = bench(matrix + 50 * noises["sign"], 0.2, key, batch=10_000)
    assert (whole.work.hvps, whole.work.gradients) == (2 * 128 + 8 * 16 + 2 * 2048, 2048)
    assert whole.negative


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_oja_by_hand(make_bench, repeated, key, sign):
    """H = +-I/2, t = 0.2, p = 0.01: 16 products of 64; L = 0.55, b = 2; T steps, or 50 if they show -t; 128 to verify."""
    answer = make_bench(Oja())(repeated(sign * 0.5 * np.eye(6)), 0.2, key)
    steps = math.ceil(2 * math.log(6 / 0.01) * 2 * 0.55 / 0.2) if sign > 0 else 50
    assert (answer.work.hvps, answer.work.gradients) == (16 * 64 + 2 * steps + 128, 0)
    assert answer.negative == (sign < 0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_neon2_by_hand(make_bench, repeated, key, sign):
    """As Oja with two gradients for a product, after 5 probes at 3 points; without an escape nothing is verified."""
    answer = make_bench(Neon2())(repeated(sign * 0.5 * np.eye(6)), 0.2, key)
    steps, verified = (math.ceil(2 * math.log(6 / 1e-4) * 2 * 0.55 / 0.2), 0) if sign > 0 else (50, 128)
    assert answer.work.gradients == 5 * 3 * 64 + 2 * (16 * 64 + 2 * steps + verified)
    assert answer.work.hvps == 0
    assert answer.negative == (sign < 0)


@pytest.mark.parametrize("search", EVERY, ids=names)
def test_saddle_and_minimiser_of_principal_components_on_the_sphere(make_lagrangian, key, search):
    """min E[-(a'x)^2]/2 with E[|x|^2 + noise] = 1 as a stream: at eigenvector k, L'' = -S + s_k I + 4 al x x'.

    S = diag(2, 1, 1/2, 1/4), al = 1.1. At the second eigenvector L'' = diag(-1, 4.4, 1/2, 3/4); at the first it is
    diag(4.4, 1, 3/2, 7/4).
    """
    scales = np.sqrt([2.0, 1.0, 0.5, 0.25])
    draws = mescal.Sampler(lambda k: jnp.asarray(scales, jnp.float32) * jax.random.normal(k, (4,)))
    noise = mescal.Sampler(lambda k: 0.1 * jax.random.normal(k))
    problem = mescal.Problem(
        E(lambda x, a: -((a @ x) ** 2) / 2, over=draws), {"sphere": E(lambda x, e: x @ x + e, over=noise) == 1.0}
    )
    run = jax.jit(search.__call__)
    for k, negative in ((1, True), (0, False)):
        x = np.eye(4)[k]
        oracle = make_lagrangian(problem, x, [scales[k] ** 2 / 2], 1.1, micro=64)
        found, _ = run(oracle, jnp.asarray(x, jnp.float32), jnp.float32(0.5), key, jnp.int32(20_000))
        assert bool(found.negative) == negative
        if negative:
            u = np.asarray(found.direction, np.float64)
            assert u @ (np.diag([-1.0, 4.4, 0.5, 0.75]) @ u) <= -0.25
    assert run._cache_size() == 1  # pyright: ignore[reportFunctionMemberAccess]

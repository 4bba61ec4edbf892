"""Batches: the same estimate however they are cut, nothing recompiled, every evaluation counted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle import Tally, Work, surrogates
from mescal.oracle.draw import row_indices
from mescal.testing import count_calls

NAMES = tuple(surrogates())


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    positives, negatives = rng.normal(size=(50, 3)), rng.normal(size=(70, 3))
    return mescal.Problem(
        E(lambda w, a: jnp.tanh(a @ w) ** 2, over=positives),
        {
            "one": E(lambda w, a: jnp.sin(a @ w), over=negatives) <= 0.1,
            "two": E(lambda w, a: a * w, over=negatives) == np.zeros(3),
        },
    )


X = np.array([0.3, -0.2, 0.5])
MULTIPLIERS = [0.5, 0.1, -0.3, 0.2]


def test_batches_and_simplices_need_no_implicit_promotion(problem, make_lagrangian, key):
    """As under JAX_NUMPY_DTYPE_PROMOTION=strict: positions of samples, and what is projected on a simplex, have one type each."""
    oracle = make_lagrangian(problem, X, MULTIPLIERS, 2.0, "ustat", 32)
    z = jnp.asarray([*X, 0.4], jnp.float32)
    plain, simplex = oracle.gradient(z, key, 50)[0], mescal.sets.Simplex()
    with jax.numpy_dtype_promotion("strict"):
        assert np.array_equal(oracle.gradient(z, key, 50)[0], plain)
        assert float(simplex.project(z).sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("name", NAMES)
def test_micro_batches_do_not_change_the_estimate(problem, make_lagrangian, key, name):
    """Micro-batches of 1, 32 and 500 for batches of 37 and 500, in float64: equal to rounding."""
    with jax.enable_x64(True):
        z = jnp.asarray([*X, 0.4])
        results = {}
        for micro in (1, 32, 500):
            oracle = make_lagrangian(problem, X, MULTIPLIERS, 2.0, name, micro, dtype=np.float64)
            run = jax.jit(
                lambda o, n: (o.value(z, key, n)[0], o.gradient(z, key, n)[0], o.hvp(z, jnp.ones(4), key, n)[0])
            )
            results[micro] = [run(oracle, jnp.int32(n)) for n in (37, 500)]
        for micro in (1, 32):
            for got, want in zip(results[micro], results[500], strict=True):
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_known_size_equals_one_of_traced_size(problem, make_lagrangian, key, name):
    """Value, gradient, HVP: 37 samples as one micro-batch of known size, and as a traced number of them."""
    oracle = make_lagrangian(problem, X, MULTIPLIERS, 2.0, name)
    z = jnp.asarray([*X, 0.4], jnp.float32)

    def all_of(n):
        return oracle.value(z, key, n)[0], oracle.gradient(z, key, n)[0], oracle.hvp(z, jnp.ones(4), key, n)[0]

    known, traced = jax.jit(lambda: all_of(37))(), jax.jit(all_of)(jnp.int32(37))
    for a, b in zip(known, traced, strict=True):
        np.testing.assert_allclose(a, b, rtol=5e-5, atol=1e-5)


def test_an_estimate_tells_apart_what_the_gradient_joins(problem, make_lagrangian, key):
    """`estimate` on a batch: the U-statistic gradient, and the mean constraint with its Jacobian.

    100 samples are taken up to whole micro-batches, four of 32.
    """
    oracle = make_lagrangian(problem, X, MULTIPLIERS, 2.0, micro=32)
    z = jnp.asarray([*X, 0.4], jnp.float32)
    at, work = jax.jit(lambda n: oracle.estimate(z, key, n))(jnp.int32(100))
    gradient, constraint, columns = jax.jit(
        lambda: (
            oracle.gradient(z, key, 128)[0],
            oracle.constraint(z, key, 128)[0],
            jax.jacfwd(lambda y: oracle.constraint(y, key, 128)[0])(z),
        )
    )()
    np.testing.assert_allclose(at.gradient, gradient, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(at.constraint, constraint, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(at.jacobian, columns, rtol=1e-4, atol=1e-5)
    assert work.tally().gradients == 128


def test_differences_use_the_same_samples(problem, make_lagrangian, key):
    oracle = make_lagrangian(problem, X, MULTIPLIERS, 2.0)
    z, previous = jnp.asarray([*X, 0.4], jnp.float32), jnp.zeros(4)
    (difference, work), apart = jax.jit(
        lambda: (
            oracle.difference(z, previous, key, 16),
            oracle.gradient(z, key, 16)[0] - oracle.gradient(previous, key, 16)[0],
        )
    )()
    np.testing.assert_allclose(difference, apart, rtol=1e-5, atol=1e-6)
    assert work.tally().gradients == 32


def test_nothing_recompiles_when_sizes_multipliers_and_penalty_change(problem, make_lagrangian, key):
    traces = []

    @jax.jit
    def run(oracle, z, n):
        traces.append(1)
        return oracle.gradient(z, key, n)[0]

    z = jnp.asarray([*X, 0.4], jnp.float32)
    for n, multipliers, penalty in ((10, MULTIPLIERS, 1.1), (2000, [1.0, 2.0, 3.0, 4.0], 99.0), (2, np.zeros(4), 1)):
        run(make_lagrangian(problem, X, multipliers, penalty), z, jnp.int32(n))
    assert len(traces) == 1


def test_indices_are_uniform():
    """Chi-square over 7 cells of 70 000 indices; the 1 - 1e-6 quantile of chi2(6) is 38.3."""
    words = jax.vmap(lambda i: jax.random.key_data(jax.random.fold_in(jax.random.key(1), i)))(jnp.arange(70_000))
    counts = np.bincount(np.asarray(row_indices(words, 7)), minlength=7)
    assert counts.size == 7
    assert np.sum((counts - 10_000) ** 2 / 10_000) < 38.3


@pytest.mark.parametrize("size", [1, 3, 65_537, 2**31 - 1])
def test_indices_equal_the_64_bit_floor(size):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**32, size=(1000, 2), dtype=np.uint64)
    words[:3] = [[0, 0], [2**32 - 1, 2**32 - 1], [2**32 - 1, 0]]
    expected = [((int(a) << 32 | int(b)) * size) >> 64 for a, b in words]
    assert np.asarray(row_indices(jnp.asarray(words, jnp.uint32), size)).tolist() == expected


@pytest.fixture(scope="module")
def counted():
    rng = np.random.default_rng(5)
    objective, f_calls = count_calls(lambda w, a: jnp.tanh(a @ w) ** 2)
    constraint, c_calls = count_calls(lambda w, a: jnp.stack([jnp.sin(a @ w), a[0] * w[1]]))
    problem = mescal.Problem(
        E(objective, over=rng.normal(size=(48, 3))), {"c": E(constraint, over=rng.normal(size=(32, 3))) <= np.ones(2)}
    )
    return problem, f_calls, c_calls


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("micro", [16, 64], ids=["chunked", "one chunk"])
def test_counters_equal_instrumented_calls(counted, make_lagrangian, key, name, micro):
    """The five counters of Definition 1.3 against what the running program really evaluated."""
    problem, f_calls, c_calls = counted
    oracle = make_lagrangian(problem, X, [0.1, 0.2], 2.0, name, micro)
    z, n, rows = jnp.asarray([*X, 0.1, 0.2], jnp.float32), 64, 2
    calls = {
        "value": lambda: oracle.value(z, key, n),
        "gradient": lambda: oracle.gradient(z, key, n),
        "hvp": lambda: oracle.hvp(z, jnp.ones(5), key, n),
        "exact": lambda: oracle.exact(z),
        "exact_hvp": lambda: oracle.exact_hvp(z, jnp.ones(5), at),
    }
    at = jax.jit(lambda: oracle.exact(z)[0])()
    for kind, call in calls.items():
        jax.effects_barrier()
        f_calls.reset()
        c_calls.reset()
        estimate, work = jax.jit(call)()
        jax.block_until_ready(estimate)
        jax.effects_barrier()
        tally = work.tally()
        assert tally.objective_gradients == f_calls.gradients - f_calls.hvps, kind
        assert tally.objective_hvps == f_calls.hvps, kind
        assert tally.constraint_values == rows * c_calls.values, kind
        assert tally.constraint_gradients == rows * c_calls.gradients, kind
        assert tally.constraint_hvps == rows * c_calls.hvps, kind


def test_totals_follow_from_thetas(problem, make_lagrangian, key):
    oracle = make_lagrangian(problem, X, MULTIPLIERS, 2.0)
    z = jnp.asarray([*X, 0.4], jnp.float32)
    work, exact = jax.jit(
        lambda: (
            oracle.gradient(z, key, 30)[1] + oracle.hvp(z, z, key, 20)[1] + oracle.value(z, key, 9)[1],
            oracle.exact(z)[1],
        )
    )()
    tally = work.tally()
    assert (tally.gradients, tally.hvps, tally.total) == (33, 20, 73)
    assert exact.tally().gradients == 70  # the larger population


def test_counters_do_not_wrap():
    """Beyond 2^32: the sum of eight times 3 * 10^9 is exact."""
    work = Work.zero()
    for _ in range(8):
        work = work + Work.of(gradient_samples=np.uint32(3_000_000_000))
    assert work.tally().gradients == 24_000_000_000
    assert (work.tally() + Tally({"hvp_samples": 10**12})).hvps == 10**12


@pytest.mark.parametrize(("n", "evaluations"), [(16, 1), (37, 2)], ids=["fits", "does not fit"])
def test_a_traced_batch_that_fits_into_a_micro_batch_is_evaluated_once(counted, make_lagrangian, key, n, evaluations):
    """The total of C that every partner needs costs evaluations of its own only where a micro-batch does not see all."""
    problem, _, c_calls = counted
    micro, rows = 16, 2
    oracle = make_lagrangian(problem, X, [0.1, 0.2], 2.0, "ustat", micro)
    z = jnp.asarray([*X, 0.1, 0.2], jnp.float32)
    run = jax.jit(lambda n: oracle.gradient(z, key, n))
    jax.block_until_ready(run(jnp.int32(n)))
    jax.effects_barrier()
    c_calls.reset()
    (estimate, work) = run(jnp.int32(n))
    jax.block_until_ready(estimate)
    jax.effects_barrier()
    assert work.tally().constraint_values == rows * n * evaluations
    assert c_calls.values == -(-n // micro) * micro * evaluations  # masked samples are evaluated, not counted
    known = jax.jit(lambda: oracle.gradient(z, key, n)[0])()
    np.testing.assert_allclose(estimate, known, rtol=2e-5, atol=1e-6)

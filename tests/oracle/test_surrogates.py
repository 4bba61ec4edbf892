"""Surrogates: unbiased in value, gradient and HVP; ordered in variance; symmetric where they say so."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.errors import InputError
from mescal.oracle import surrogate, surrogates

pytestmark = pytest.mark.quick

DRAWS = 20_000
NAMES = tuple(surrogates())
MULTIPLIER, PENALTY = 0.3, 4.0


@pytest.fixture(scope="module")
def scalar_problem():
    """f = 0, c(x) = E[zeta x - 1], zeta ~ N(1, 1): at x = 2 the gradient of L is 0.3 + 4 = 4.3, the Hessian 4."""
    zeta = mescal.Sampler(lambda k: 1 + jax.random.normal(k))
    return mescal.Problem(E(lambda x: 0.0 * x[0]), {"c": E(lambda x, z: z * x[0] - 1, over=zeta) == 0})


def estimates(lagrangian, z, key, n):
    """Value, first gradient entry and first HVP entry on many batches."""
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(DRAWS))

    @jax.jit
    def run(lagrangian, keys):
        def one(k):
            return (
                lagrangian.value(z, k, n)[0],
                lagrangian.gradient(z, k, n)[0][0],
                lagrangian.hvp(z, jnp.ones_like(z), k, n)[0][0],
            )

        return jax.vmap(one)(keys)

    return [np.asarray(part, np.float64) for part in run(lagrangian, keys)]


def deviation(samples, truth):
    """Distance of the mean from the truth in standard errors."""
    return abs(samples.mean() - truth) / (samples.std() / np.sqrt(samples.size))


@pytest.mark.parametrize("name", NAMES)
def test_unbiased_where_the_popular_way_is_not(scalar_problem, make_lagrangian, key, name):
    """Batches of 4; |mean - truth| <= 4 standard errors fails wrongly with probability 6e-5 per comparison."""
    x = np.array([2.0])
    oracle = make_lagrangian(scalar_problem, x, [MULTIPLIER], PENALTY, name)
    value, gradient, hvp = estimates(oracle, jnp.array([2.0]), key, 4)
    assert deviation(value, MULTIPLIER + PENALTY / 2) < 4
    assert deviation(gradient, 4.3) < 4
    assert deviation(hvp, PENALTY) < 4


def test_the_same_batch_penalty_is_biased_by_the_covariance(scalar_problem, make_lagrangian, same_batch, key):
    """al Cov(J, C) / n = 4 * 2 / 4 = 2: the mean is 6.3, a hundred standard errors off."""
    oracle = make_lagrangian(scalar_problem, np.array([2.0]), [MULTIPLIER], PENALTY, same_batch)
    _, gradient, _ = estimates(oracle, jnp.array([2.0]), key, 4)
    assert deviation(gradient, 6.3) < 4
    assert deviation(gradient, 4.3) > 20


def test_variance_order_at_equal_draws_of_zeta(scalar_problem, make_lagrangian, key):
    """ustat on 2n thetas <= cross on n <= pair on n. Each variance is known to 2 % (one s.e.); the gaps are larger."""
    gradient = {}
    for name, n in (("pair", 4), ("cross", 4), ("ustat", 8)):
        oracle = make_lagrangian(scalar_problem, np.array([2.0]), [MULTIPLIER], PENALTY, name)
        gradient[name] = estimates(oracle, jnp.array([2.0]), key, n)[1].var()
    assert gradient["ustat"] < 0.9 * gradient["cross"] < 0.9 * 0.9 * gradient["pair"]


@pytest.fixture(scope="module")
def vector_problem():
    """C(x, z) = A_z x - b_z + q_z |x|^2 / 2 with two rows, F quadratic, over a finite population of 40 rows."""
    rng = np.random.default_rng(3)
    population = {
        "A": rng.normal(size=(40, 2, 5)) + 0.5,
        "b": rng.normal(size=(40, 2)),
        "q": rng.normal(size=(40, 2)) + 0.3,
    }
    targets = rng.normal(size=(30, 5))
    problem = mescal.Problem(
        E(lambda x, a: 0.5 * jnp.sum((x - a) ** 2) * (1 + a[0] ** 2), over=targets),
        {"c": E(lambda x, z: z["A"] @ x - z["b"] + z["q"] * (x @ x) / 2, over=population) == 0},
    )
    return problem, population, targets


@jax.jit
def dense(oracle, z, directions):
    """Exact values, and products with the Hessian."""
    exact, _ = oracle.exact(z)
    return exact, jax.vmap(lambda v: oracle.exact_hvp(z, v, exact)[0])(directions)


@pytest.mark.parametrize("name", NAMES)
def test_vector_constraints_are_unbiased(vector_problem, make_lagrangian, key, name):
    """Against the exact augmented Lagrangian; 3 comparisons at 4 standard errors: 2e-4 false failures."""
    problem, _, _ = vector_problem
    x = np.linspace(-0.5, 0.7, 5)
    oracle = make_lagrangian(problem, x, [0.4, -0.7], 3.0, name)
    z, ones = jnp.asarray(x, jnp.float32), jnp.ones(5)
    value, gradient, hvp = estimates(oracle, z, key, 6)
    exact, product = dense(oracle, z, ones[None])
    assert deviation(value, float(exact.value)) < 4
    assert deviation(gradient, float(exact.gradient[0])) < 4
    assert deviation(hvp, float(product[0, 0])) < 4


@pytest.mark.parametrize("name", NAMES)
def test_symmetry_of_the_sampled_hessian(vector_problem, make_lagrangian, key, name):
    problem, _, _ = vector_problem
    x = np.linspace(-0.5, 0.7, 5)
    oracle = make_lagrangian(problem, x, [0.4, -0.7], 3.0, name)
    z = jnp.asarray(x, jnp.float32)
    hessian = np.asarray(jax.jit(jax.vmap(lambda v: oracle.hvp(z, v, key, 6)[0]))(jnp.eye(5)))
    gap = np.abs(hessian - hessian.T).max() / np.abs(hessian).max()
    assert (gap < 1e-5) if surrogate(name).symmetric else (gap > 1e-3)


@pytest.mark.parametrize("micro", [2, 128])
@pytest.mark.parametrize("name", NAMES)
def test_searches_have_the_symmetric_part_of_it(vector_problem, make_lagrangian, key, name, micro):
    """`symmetric_hvp` is (H + H')/2 of the same batch, in one micro-batch or several, and costs as many thetas."""
    problem, _, _ = vector_problem
    x = np.linspace(-0.5, 0.7, 5)
    oracle = make_lagrangian(problem, x, [0.4, -0.7], 3.0, name, micro)
    z = jnp.asarray(x, jnp.float32)

    def rows(product):
        columns, work = jax.jit(jax.vmap(lambda v: product(z, v, key, 6)))(jnp.eye(5))
        return np.asarray(columns).T, jax.tree.map(lambda leaf: leaf[0], work).tally()

    (plain, one), (symmetric, other) = rows(oracle.hvp), rows(oracle.symmetric_hvp)
    scale = np.abs(plain).max()
    np.testing.assert_allclose(symmetric, (plain + plain.T) / 2, atol=1e-5 * scale)
    assert other.hvps == one.hvps and other.gradients == one.gradients
    assert (other.constraint_gradients > one.constraint_gradients) == (not surrogate(name).symmetric)


def test_exact_values_equal_a_dense_computation(vector_problem, make_lagrangian):
    problem, population, targets = vector_problem
    x = np.linspace(-0.5, 0.7, 5)
    multipliers, penalty = np.array([0.4, -0.7]), 3.0
    c = np.mean(population["A"] @ x - population["b"] + population["q"] * (x @ x) / 2, axis=0)
    jacobian = np.mean(population["A"] + population["q"][:, :, None] * x, axis=0)
    weight = 1 + targets[:, 0] ** 2
    value = np.mean(0.5 * np.sum((x - targets) ** 2, 1) * weight) + multipliers @ c + penalty / 2 * c @ c
    gradient = np.mean((x - targets) * weight[:, None], 0) + jacobian.T @ (multipliers + penalty * c)
    curvature = np.eye(5) * (weight.mean() + (multipliers + penalty * c) @ population["q"].mean(0))
    hessian = curvature + penalty * jacobian.T @ jacobian
    with jax.enable_x64(True):
        oracle = make_lagrangian(problem, x, multipliers, penalty, dtype=np.float64)
        z = jnp.asarray(x)
        exact, product = dense(oracle, z, jnp.eye(5))
        assert np.allclose(exact.value, value, rtol=1e-13)
        assert np.allclose(exact.gradient, gradient, rtol=1e-12)
        assert np.allclose(exact.constraint, c, rtol=1e-12)
        assert np.allclose(product, hessian, rtol=1e-12)


def test_every_surrogate_is_found():
    assert {"cross", "pair", "ustat"} <= set(NAMES)
    assert [surrogate(name).symmetric for name in ("cross", "pair", "ustat")] == [True, False, True]


def test_unknown_surrogate_and_a_batch_too_small(scalar_problem, make_lagrangian, key):
    with pytest.raises(InputError, match="no surrogate named 'vstat'") as caught:
        surrogate("vstat")
    assert "Expected" in str(caught.value) and "What to do" in str(caught.value)
    oracle = make_lagrangian(scalar_problem, np.array([2.0]), [MULTIPLIER], PENALTY, "ustat")
    with pytest.raises(InputError, match="a batch of 1"):
        oracle.gradient(jnp.array([2.0]), key, 1)

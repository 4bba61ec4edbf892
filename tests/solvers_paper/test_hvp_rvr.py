"""HVP-RVR: the change of the gradient along a path, from one Hessian-vector product per point, each with its own theta."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.testing import count_calls

LENGTHS = (1, 2, 3, 7, 64)


def population(rng, rows=12, d=3):
    return {"shift": rng.normal(size=(rows, d)), "level": rng.normal(size=rows)}


@pytest.fixture(scope="module")
def quadratic():
    """Noise in gradients and values, none in Hessians: F = x'Hx/2 + a'x, C = b'x - z."""
    rng = np.random.default_rng(1)
    h, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    data = population(rng)
    return mescal.Problem(
        E(lambda x, s: x @ jnp.asarray(h + h.T, x.dtype) @ x / 2 + s["shift"] @ x, over=data),
        {"c": E(lambda x, s: jnp.asarray(b, x.dtype) @ x - s["level"], over=population(rng)) == 0},
    )


def moves(oracle, rng, number=4):
    return [(rng.normal(size=oracle.size), rng.normal(size=oracle.size)) for _ in range(number)]


def compiled(oracle, key):
    """The sampled path and the exact gradient as functions of points."""
    path = jax.jit(lambda z, previous, n: oracle.path_hvp(z, previous, key, n)[0])
    return path, jax.jit(lambda z: oracle.exact(z)[0].gradient)


def test_exact_on_quadratics_without_hessian_noise(quadratic, make_lagrangian, key):
    """For any J, in float64: the sampled differences of the gradient are the exact one."""
    with jax.enable_x64(True):
        oracle = make_lagrangian(quadratic, np.zeros(3), [0.7], 3.0, "pair", 8, dtype=np.float64)
        path, exact = compiled(oracle, key)
        for z, previous in moves(oracle, np.random.default_rng(2)):
            wanted = exact(z) - exact(previous)
            for n in LENGTHS:
                np.testing.assert_allclose(path(z, previous, jnp.int32(n)), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("power", [3, 4])
def test_bias_of_left_endpoints(make_lagrangian, key, power):
    """|sum_j H(x_{j-1}) dx/J - (grad(x_J) - grad(x_0))| <= L_H |dx|^2/(2J), and for cubics it is equality.

    f = |x|_p^p/p on |x| <= 1 without noise, for which L_H = (p - 1)(p - 2); along a coordinate axis of a cubic the error
    of left endpoints is exactly f''' dx^2/(2J).
    """
    problem = mescal.Problem(E(lambda x: jnp.sum(jnp.abs(x) ** power) / power))
    bend = (power - 1) * (power - 2)
    with jax.enable_x64(True):
        oracle = make_lagrangian(problem, np.zeros(3), np.zeros(0), 1.0, "pair", 8, dtype=np.float64)
        path, exact = compiled(oracle, key)
        for z, previous in moves(oracle, np.random.default_rng(3)):
            z, previous = (v / max(1, np.linalg.norm(v)) for v in (z, previous))
            wanted = exact(z) - exact(previous)
            for n in LENGTHS:
                bias = np.linalg.norm(path(z, previous, jnp.int32(n)) - wanted)
                assert 0 < bias <= bend * np.sum((z - previous) ** 2) / (2 * n)
        if power == 3:
            z, previous = np.array([0.9, 0.0, 0.0]), np.array([0.1, 0.0, 0.0])
            for n in LENGTHS:
                change = path(z, previous, jnp.int32(n))[0]
                assert 0.9**2 - 0.1**2 - float(change) == pytest.approx(2 * 0.8**2 / (2 * n), rel=1e-10)


@pytest.fixture(scope="module")
def bent():
    """Noise in everything, two inequalities with their slacks."""
    return bent_problem(bent_objective, bent_constraint)


def bent_objective(w, a):
    return jnp.tanh(a @ w) ** 2


def bent_constraint(w, a):
    return jnp.stack([jnp.sin(a @ w), a[0] * w[1] ** 2])


def bent_problem(objective, constraint):
    rng = np.random.default_rng(5)
    positives, negatives = rng.normal(size=(50, 3)), rng.normal(size=(40, 3))
    return mescal.Problem(E(objective, over=positives), {"c": E(constraint, over=negatives) <= np.ones(2)})


def test_one_point_is_one_product(bent, make_lagrangian, key):
    """J = 1: the Hessian-vector product at the left end on one theta, by the pair rule, and with the same price."""
    oracle = make_lagrangian(bent, np.zeros(3), [0.5, -0.2], 2.0, "pair", 8)
    rng = np.random.default_rng(4)
    z, previous = (jnp.asarray(rng.normal(size=5), jnp.float32) for _ in range(2))
    run = jax.jit(lambda z, y: (oracle.path_hvp(z, y, key, 1), oracle.hvp(y, z - y, key, 1)))
    (change, work), (product, price) = run(z, previous)
    np.testing.assert_allclose(change, product, rtol=1e-5, atol=1e-6)
    assert work.tally() == price.tally()


def test_samples_do_not_depend_on_micro_batches_or_surrogate(bent, make_lagrangian, key):
    with jax.enable_x64(True):
        rng = np.random.default_rng(4)
        z, previous = (jnp.asarray(rng.normal(size=5)) for _ in range(2))

        oracles = [
            make_lagrangian(bent, np.zeros(3), [0.5, -0.2], 2.0, rule, micro, dtype=np.float64)
            for rule, micro in (("pair", 4), ("pair", 64), ("ustat", 64))
        ]

        @jax.jit
        def paths(n):
            sizes = (n, 21, n)  # a size known when compiling is one micro-batch without a mask
            return [oracle.path_hvp(z, previous, key, size)[0] for oracle, size in zip(oracles, sizes, strict=True)]

        first, second, third = paths(jnp.int32(21))
        np.testing.assert_allclose(first, second, rtol=1e-12)
        np.testing.assert_allclose(first, third, rtol=1e-12)


def test_unbiased_up_to_the_bias_of_left_endpoints(bent, make_lagrangian, key):
    """5000 paths of 16 points, against the exact sum over them, each component within 4 standard errors: 3e-4."""
    oracle = make_lagrangian(bent, np.zeros(3), [0.5, -0.2], 2.0, "pair", 16)
    rng = np.random.default_rng(6)
    z, previous = (jnp.asarray(0.5 * rng.normal(size=5), jnp.float32) for _ in range(2))
    keys = jax.random.split(key, 5000)
    paths = np.asarray(jax.jit(jax.vmap(lambda k: oracle.path_hvp(z, previous, k, 16)[0]))(keys), np.float64)

    @jax.jit
    def exact(fraction):
        at = previous + fraction * (z - previous)
        return oracle.exact_hvp(at, z - previous, oracle.exact(at)[0])[0]

    wanted = np.mean([exact(j / 16) for j in range(16)], axis=0)
    error = np.abs(paths.mean(0) - wanted) / (paths.std(0) / np.sqrt(len(paths)))
    assert error.max() < 4


def test_counters_equal_instrumented_calls(make_lagrangian, key):
    (objective, f_calls), (constraint, c_calls) = count_calls(bent_objective), count_calls(bent_constraint)
    oracle = make_lagrangian(bent_problem(objective, constraint), np.zeros(3), [0.5, -0.2], 2.0, "pair", 8)
    z, previous = jnp.ones(5), jnp.zeros(5)
    jax.effects_barrier()
    f_calls.reset()
    c_calls.reset()
    change, work = jax.jit(lambda n: oracle.path_hvp(z, previous, key, n))(jnp.int32(24))
    jax.block_until_ready(change)
    jax.effects_barrier()
    tally, rows = work.tally(), 2
    assert (tally.hvps, tally.gradients) == (24, 0)
    assert tally.objective_hvps == f_calls.hvps == 24
    assert tally.constraint_values == rows * c_calls.values
    assert tally.constraint_gradients == rows * c_calls.gradients
    assert tally.constraint_hvps == rows * c_calls.hvps

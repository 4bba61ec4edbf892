"""SCR: the cubic model against dense eigen-solutions, its hard case, and how rho follows success."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import mescal
from mescal import E
from mescal.solvers import Scr
from mescal.solvers.base import Goal, Memory
from mescal.solvers.newton.cubic import cubic_minimiser, cubic_step
from mescal.solvers.newton.quadratic_model import make_model

D = 8
RNG = np.random.default_rng(5)
BASIS = np.linalg.qr(RNG.normal(size=(D, D)))[0]
SPECTRA = {
    "convex": np.linspace(0.5, 3, D),
    "indefinite": np.linspace(-1, 3, D),
    "concave": np.linspace(-3, -0.5, D),
    "flat": np.zeros(D),
}


def dense(values: np.ndarray, b: np.ndarray, rho: float) -> np.ndarray:
    """The minimiser by a root of |(values + rho r/2)^-1 b| = r in float64; b has a part along the lowest value."""
    length = lambda r: np.linalg.norm(b / (values + rho * r / 2)) - r
    low = max(0.0, -2 * values[0] / rho)
    high = low + 1.0
    while length(high) > 0:
        high *= 2
    r = float(brentq(length, low + 1e-12 * max(1, low), high, xtol=1e-14))  # pyright: ignore[reportArgumentType]
    return -b / (values + rho * r / 2)


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("rho", [0.1, 10.0])
def test_the_minimiser_is_that_of_a_dense_solution(name, rho):
    values, b = SPECTRA[name], RNG.normal(size=D)
    found = cubic_minimiser(jnp.asarray(values, jnp.float32), jnp.asarray(b, jnp.float32), jnp.float32(rho))
    expected = dense(values, b, rho)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4 * float(np.linalg.norm(expected)))


def test_the_hard_case_fills_up_along_the_lowest_eigenvector():
    """b_1 = 0 and small: |y| = -2 t_min / rho, of which b explains little."""
    values, b, rho = SPECTRA["indefinite"], np.full(D, 0.01), 0.5
    b[0] = 0
    y = np.asarray(cubic_minimiser(jnp.asarray(values, jnp.float32), jnp.asarray(b, jnp.float32), jnp.float32(rho)))
    size = np.linalg.norm(y)
    assert size == pytest.approx(2 / rho, rel=1e-3) and abs(y[0]) > 0.99 * size
    assert np.linalg.norm(b + values * y + rho / 2 * size * y) < 1e-3


@pytest.mark.parametrize("name", SPECTRA)
def test_a_step_of_the_krylov_space_is_the_minimiser(make_subproblem, key, name):
    """With all dimensions at hand, from products alone; fewer end sooner, where the residual allows."""
    values, b, rho = SPECTRA[name], RNG.normal(size=D), 0.7
    matrix = (BASIS * values) @ BASIS.T
    problem = mescal.Problem(E(lambda x: x @ jnp.asarray(matrix, x.dtype) @ x / 2 + jnp.asarray(b, x.dtype) @ x))
    sub = make_subproblem(problem, np.zeros(D), [], 1.0)
    reset = sub.look(np.zeros(D, np.float32))[0].arrays(np.float32)
    model = make_model(sub.lagrangian, reset, jnp.float32(1), jnp.float32(1), key, None)
    whole, _ = model.whole()
    run = jax.jit(lambda enough: cubic_step(model, whole, jnp.int32(1), jnp.float32(rho), enough, D))
    step, work = run(jnp.float32(0))
    expected = BASIS @ dense(values, BASIS.T @ b, rho)
    np.testing.assert_allclose(step.d, expected, rtol=5e-3, atol=2e-3 * float(np.linalg.norm(expected)))
    np.testing.assert_allclose(step.product, matrix @ np.asarray(step.d, np.float64), atol=1e-4)
    assert work.tally().hvp_samples == int(step.steps)  # a deterministic problem is a population of one
    rough, _ = run(jnp.float32(0.5 * np.linalg.norm(b)))
    assert int(rough.steps) <= int(step.steps)


ROWS = RNG.normal(size=(2000, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def recursion(make_subproblem):
    """One recursion on a population that is sub-sampled, as a function of the trust and of the key."""
    problem = mescal.Problem(E(lambda x, a: jnp.cos(a @ x) + (x - a) @ (x - a) / 4, over=ROWS))
    sub = make_subproblem(problem, np.zeros(3), [], 1.0)
    solver = Scr(batch=256, blocks=2)
    target = solver.plan(Goal(1e-3, 0.01, 100, 2000, 2000, 128), jnp.float32)
    reset = sub.look(np.full(3, 0.5, np.float32))[0].arrays(np.float32)

    @jax.jit
    def run(trust, key):
        memory = Memory(jnp.float32(1), jnp.float32(0), trust)
        return solver.recurse(sub.lagrangian, reset, memory, target, key, jnp.int32(9))

    return sub, reset, run


def test_a_step_leads_down_and_shrinks_with_the_trust(recursion, key):
    """rho is 1 / trust here: steps of the gradient's kind have the length sqrt(2 |g| / rho)."""
    sub, reset, run = recursion
    lengths = []
    for trust in (1.0, 1e-2, 1e-4):
        inner = run(jnp.float32(trust), key)
        assert sub.look(np.asarray(inner.z))[0].value < float(reset.value)
        lengths.append(float(jnp.linalg.norm(inner.z - reset.z)))
    assert lengths[0] > lengths[1] > lengths[2]
    assert lengths[2] == pytest.approx(np.sqrt(2 * np.linalg.norm(reset.gradient) * 1e-4), rel=0.05)


def test_counters_are_whole_blocks_and_keys_decide(recursion, key):
    _, _, run = recursion
    one, again, other = (run(jnp.float32(1), k) for k in (key, key, jax.random.fold_in(key, 1)))
    counted = one.work.tally()
    assert counted.gradient_samples == 512 and counted.hvp_samples % 256 == 0 and counted.value_samples == 0
    assert np.array_equal(one.z, again.z) and not np.array_equal(one.z, other.z)


def test_steps_stay_within_reach_where_the_hessian_vanishes():
    """sigmoid'' is 0 at 0, and with it rho: a step without a bound ended at x = 7071, where all is flat to rounding."""
    problem = mescal.Problem(E(lambda x, a: jax.nn.sigmoid(-a * x[0]), over=np.ones(4, np.float32)))
    result = mescal.minimize(problem, np.zeros(1, np.float32), solver="scr", tol=0.01)
    assert result.converged and 0 < float(result.x[0]) < 20
    assert result.certificate.stationarity.value > 1e-12  # not where it has vanished to rounding


def test_a_smoothness_that_was_too_large_is_forgotten(make_subproblem, key):
    """With a free slack the largest eigenvalue of the scaled model is at most |H| + al |J|^2 + S/4 for a smoothness S.

    f = |x|^2/2 and x_0 <= 5 with al = 1: |H| + al |J|^2 = 2, so S = 1e6 falls fourfold a step, to 8/3 after ten.
    """
    problem = mescal.Problem(E(lambda x: x @ x / 2), {"c": E(lambda x: x[0]) <= 5})
    sub = make_subproblem(problem, np.ones(3, np.float32), np.zeros(1), 1.0)
    solver, smoothness = Scr(), jnp.float32(1e6)
    target = solver.plan(Goal(1e-6, 0.01, 100, 1, 1, 128), jnp.float32)
    reset = sub.look(np.array([1.0, 1.0, 1.0, 4.0], np.float32))[0]
    assert reset.z[3] > 0
    run = jax.jit(lambda reset, memory: solver.recurse(sub.lagrangian, reset, memory, target, key, jnp.int32(9)))
    for _ in range(12):
        inner = run(reset.arrays(np.float32), Memory(smoothness, jnp.float32(0), jnp.float32(1e-3)))
        smoothness = inner.smoothness
    assert float(smoothness) < 4

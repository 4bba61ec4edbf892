"""Resets on streams: as large as the noise at the point itself asks for, and the largest where a point is to be verified."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle import noise as noise_module
from mescal.oracle.noise import SAMPLES, noise, squared_deviations
from mescal.problems.noise import gaussian
from mescal.solvers import Spider
from mescal.solvers.base import Goal
from mescal.solvers.reset import NORM_TEST, SMALLEST_RESET, Reset, sampled_reset

D, LARGE, TOL = 4, 1 << 15, 0.01
START, FAR = np.full(D, 0.1, np.float32), np.full(D, 20.0, np.float32)


def wandering(sigma: float) -> mescal.Problem:
    """|x|^2/2 + sigma xi'x  s.t.  x_1 + sigma z'x = 0: the noise of the constraint grows with x."""
    return mescal.Problem(
        E(lambda x, xi: x @ x / 2 + xi @ x, over=gaussian(sigma, (D,), role="objective")),
        {"c": E(lambda x, z: x[0] + z @ x, over=gaussian(sigma, (D,), role="constraint")) == 0},
        mescal.sets.Box(-100.0, 20.0),
    )


@pytest.fixture(scope="module")
def oracle(make_lagrangian):
    return make_lagrangian(wandering(0.1), START, [0.0], 2.0)


@pytest.fixture(scope="module")
def taken(oracle):
    """The reset at z after `before`, and the thetas of its batch."""
    target = Spider(batch=64).plan(Goal(TOL, TOL, 100, None, LARGE, 128), jnp.float32)
    take = jax.jit(lambda z, before, key: sampled_reset(oracle, z, before, target, key, jnp.int32(0)))

    def at(z, before, key) -> tuple[Reset, int]:
        reset, _, work = take(jnp.asarray(z), before, key)
        assert isinstance(reset, Reset)
        return reset, int(work.tally().gradient_samples) - SAMPLES

    return at


def known(oracle, z, gradient: np.ndarray, spread: float) -> Reset:
    """A reset that found this gradient with this noise per theta."""
    reset = Reset.unknown(oracle, jnp.asarray(z))
    parts = (jnp.float32(0), jnp.asarray(gradient, jnp.float32), jnp.float32(spread))
    return eqx.tree_at(lambda r: (r.value, r.gradient, r.noise), reset, parts)


@pytest.mark.parametrize("z", [START, FAR], ids=["near", "far"])
def test_the_noise_is_that_of_the_closed_form(oracle, key, z):
    """Traces of covariances of the influence form, from 128 samples of 4 to 5 Gaussians: to 13 %, and four times that."""
    x, penalty, sigma = np.asarray(z, np.float64), 2.0, 0.1
    c, row = x[0], np.eye(D)[0]
    found, work = noise(oracle, jnp.asarray(z), key, jnp.asarray([c], jnp.float32), jnp.asarray(row[None], jnp.float32))
    own = sigma**2 * D + (sigma * penalty * c) ** 2 * D  # of dF and of J_i' w, independent of each other
    moving = penalty**2 * sigma**2 * (x @ x) + 2 * penalty**2 * c * sigma**2 * x[0]  # of al J'C_i, and its covariance
    assert float(found.stationarity) == pytest.approx(own, rel=0.5)
    assert float(found.gradient) == pytest.approx(own + moving, rel=0.5)
    assert float(found.constraint) == pytest.approx(sigma**2 * (x @ x), rel=0.5)
    assert work.tally().gradient_samples == SAMPLES


@pytest.mark.parametrize("together", [1, 8 * D, 1 << 24])
def test_large_gradients_are_taken_in_parts(monkeypatch, together):
    rows = 1e3 + np.random.default_rng(2).normal(size=(SAMPLES, D)).astype(np.float32)
    monkeypatch.setattr(noise_module, "TOGETHER", together)
    found = squared_deviations(lambda row: (row, row[0]), jnp.asarray(rows), D)
    spread = (SAMPLES - 1) * np.var(rows.astype(np.float64), axis=0, ddof=1)
    np.testing.assert_allclose(found, [spread.sum(), spread[0]], rtol=1e-3)  # where squares would cancel to 10 %


def test_a_reset_measures_the_noise_where_it_is(oracle, taken, key):
    """At |x| = 40 it is 10^4 times that at the start; a solve that trusted the start would average too little for ever."""
    first, n = taken(START, Reset.unknown(oracle, jnp.asarray(START)), key)
    assert n == LARGE
    far, _ = taken(FAR, known(oracle, START, np.ones(D), 0.0), key)
    assert float(far.noise) > 1e3 * float(first.noise)


@pytest.mark.parametrize(("spread", "expected"), [(0.0, SMALLEST_RESET), (4096.0 * NORM_TEST**2, 4096), (1e9, LARGE)])
def test_the_batch_passes_the_norm_test(oracle, taken, key, spread, expected):
    before = known(oracle, START, np.eye(D)[1], spread)
    assert taken(START, before, key)[1] == pytest.approx(expected, abs=1)


def test_what_pushes_against_a_bound_does_not_count_as_gradient(oracle, taken, key):
    """x_1 .. x_3 free with a gradient of 0.1, x_4 on its bound and pushed there by 100: the batch is that of 0.1."""
    z = np.array([0, 0, 0, 20], np.float32)
    before = known(oracle, z, np.array([0.1, 0, 0, -100.0]), 4096 * (0.1 * NORM_TEST) ** 2)
    assert taken(z, before, key)[1] == pytest.approx(4096, abs=2)


def test_a_point_that_looks_stationary_is_looked_at_by_the_largest_batch(oracle, taken, key):
    """Whatever the norm test says: no smaller batch verifies, and a solver that does not move would ask for it for ever."""
    before = known(oracle, START, 0.5 * TOL * np.eye(D)[1], 0.0)
    reset, n = taken(START, before, key)
    assert n == LARGE and np.isfinite(float(reset.stationarity))
    away = known(oracle, START, 2 * TOL * np.eye(D)[1], 0.0)
    reset, n = taken(START, away, key)
    assert n == SMALLEST_RESET and np.isinf(float(reset.stationarity))

"""Resets on streams: as large as the noise at the point itself asks for, and the largest where a point is to be verified."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle.draw import words
from mescal.oracle.subproblem import Seen, best_shift
from mescal.problems.noise import gaussian
from mescal.solvers import Spider, reset
from mescal.solvers.base import Goal
from mescal.solvers.reset import NORM_TEST, SMALLEST_RESET, best_shift_on_face, sampled_look

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
def sub(make_subproblem):
    return make_subproblem(wandering(0.1), START, [0.0], 2.0)


@pytest.fixture(scope="module")
def taken(sub):
    """The reset at z after `before`, and the thetas of its batch."""
    target = Spider(batch=64).plan(Goal(TOL, TOL, 100, None, LARGE, 128), np.float32)

    def at(z, before) -> tuple[Seen, int]:
        seen, _, work = reset.sampled_reset(sub, z, before, target, (20240517, 3), 0)
        assert work.gradient_samples == work.value_samples  # at z, and at the reset before
        return seen, work.gradient_samples

    return at


def known(z, gradient: np.ndarray, spread: float) -> Seen:
    """A reset that found this gradient with this noise per theta."""
    row, zero = np.zeros((1, D)), np.zeros(1)
    return Seen(z, 0.0, 0.0, np.asarray(gradient), zero, zero, np.inf, np.inf, row, spread)


def closed_form(z) -> tuple[float, float, float]:
    """The noise of the gradient, of stationarity and of the constraint: traces of covariances of the influence form."""
    x, penalty, sigma = np.asarray(z, np.float64), 2.0, 0.1
    own = sigma**2 * D + (sigma * penalty * x[0]) ** 2 * D  # of dF and of J_i' w, independent of each other
    moving = (
        penalty**2 * sigma**2 * (x @ x) + 2 * penalty**2 * x[0] * sigma**2 * x[0]
    )  # of al J'C_i, and its covariance
    return float(own + moving), float(own), float(sigma**2 * (x @ x))


@pytest.mark.parametrize("z", [START, FAR], ids=["near", "far"])
def test_the_noise_that_a_look_finds_is_that_of_the_closed_form(sub, z):
    """From eight groups each: 7 degrees of freedom at least, so the mean over 16 keys errs by 13 %, and four times that."""
    looks = [sampled_look(sub.lagrangian, z, z, words(5, k), np.int32(SMALLEST_RESET)) for k in range(16)]
    found = [np.mean([float(getattr(seen.noise, part)) for seen, _ in looks]) for part in looks[0][0].noise._fields]
    assert looks[0][0].noise._fields == ("gradient", "stationarity", "constraint")
    np.testing.assert_allclose(found, closed_form(z), rtol=0.5)
    assert all(work.tally().gradient_samples == SMALLEST_RESET for _, work in looks)


def test_a_reset_measures_the_noise_where_it_is(taken):
    """At |x| = 40 it is 10^4 times that at the start; a solve that trusted the start would average too little for ever."""
    first, n = taken(START, None)
    assert n == LARGE
    far, _ = taken(FAR, known(START, np.ones(D), 0.0))
    assert float(far.noise) > 1e3 * float(first.noise)


@pytest.mark.parametrize(("spread", "expected"), [(0.0, SMALLEST_RESET), (4096.0 * NORM_TEST**2, 4096), (1e9, LARGE)])
def test_the_batch_passes_the_norm_test(taken, spread, expected):
    assert taken(START, known(START, np.eye(D)[1], spread))[1] == expected


def test_what_pushes_against_a_bound_does_not_count_as_gradient(taken):
    """x_1 .. x_3 free with a gradient of 0.1, x_4 on its bound and pushed there by 100: the batch is that of 0.1."""
    z = np.array([0, 0, 0, 20], np.float32)
    before = known(z, np.array([0.1, 0, 0, -100.0]), 4095.5 * (0.1 * NORM_TEST) ** 2)
    assert taken(z, before)[1] == 4096  # in whole micro-batches


def test_a_point_that_looks_stationary_is_looked_at_by_the_largest_batch(taken):
    """Whatever the norm test says: no smaller batch verifies, and a solver that does not move would ask for it for ever."""
    before = known(START, 0.5 * TOL * np.eye(D)[1], 0.0)
    seen, n = taken(START, before)
    assert n == LARGE and np.isfinite(float(seen.stationarity))
    away = known(START, 2 * TOL * np.eye(D)[1], 0.0)
    seen, n = taken(START, away)
    assert n == SMALLEST_RESET and np.isinf(float(seen.stationarity))


def test_at_the_same_point_a_value_does_not_change(sub, monkeypatch):
    """Two sums of the same numbers may differ in their last place; taken for an ascent, that would shrink steps for ever."""
    target = Spider(batch=64).plan(Goal(TOL, TOL, 100, None, LARGE, 128), np.float32)

    def rounded(*given):
        seen, work = sampled_look(*given)
        return seen._replace(change=seen.change + 1e-9, error=0 * seen.error), work

    monkeypatch.setattr(reset, "sampled_look", rounded)
    before = known(START, np.ones(D), 0.0)
    again, noise, _ = reset.sampled_reset(sub, START, before, target, (1, 2), 0)
    assert again.value == before.value and noise == 0.0
    there, _, _ = reset.sampled_reset(sub, START + 1, before, target, (1, 2), 0)
    assert there.value != before.value


def test_multipliers_at_a_vertex_are_not_moved():
    """Two constraints where all of x is on its bounds: the face is a point, both of their rows vanish on it."""
    assert np.array_equal(best_shift(np.zeros((2, 3)), np.zeros(3), np.ones(2)), np.zeros(2))
    oracle = SimpleNamespace(form=SimpleNamespace(constraints=2), project_face=lambda z, v: jnp.zeros_like(v))
    at = SimpleNamespace(jacobian=jnp.ones((2, 3)), gradient=jnp.ones(3))
    assert np.array_equal(best_shift_on_face(oracle, jnp.zeros(3), at, jnp.ones(2)), np.zeros(2))

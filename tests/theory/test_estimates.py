"""Estimated constants: against a problem whose constants are known, in any units, and where they cannot be had."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, theory
from mescal.errors import InputError
from mescal.theory.units import rescale

SIGNS = np.array([1.0, -1.0], np.float32)
A, W, B, NOISE = 0.5, 1.3, 0.7, 0.2


def wave(scale=1.0, length=1.0, constraint=1.0) -> mescal.Problem:
    """f = A cos(W u), F = (1 + 0.2 s) f; c = B v + u^2/2, C = (1 + 0.2 s) c; in units of one's choice."""

    def objective(x, s):
        return scale * A * (1 + NOISE * s) * jnp.cos(W * x[0] / length)

    def bowl(x, s):
        return constraint * (1 + NOISE * s) * (B * x[1] / length + (x[0] / length) ** 2 / 2)

    return mescal.Problem(E(objective, over=SIGNS), {"c": E(bowl, over=np.array([1.0, -1.0], np.float32)) == 0})


PROBLEM = wave()
X0 = np.array([0.4, 0.5], np.float32)
RADIUS = 2.0
REACH = float(np.linalg.norm(X0)) + RADIUS
# Suprema over the ball that is looked at; what power iterations and points may miss of them is left to `LEAST`.
KNOWN = {
    "objective_bound": (A, A),
    "objective_gradient_bound": (A * W, A * W),
    "constraint_bound": (2 * B, B * REACH + REACH**2 / 2),
    "jacobian_bound": (np.hypot(B, 1), np.hypot(B, REACH)),
    "constraint_hessian_bound": (1, 1),
    "objective_gradient_lipschitz": (1.1 * 1.2 * A * W**2, 1.1 * 1.2 * A * W**2),
    "objective_hessian_lipschitz": (1.5 * 1.2 * A * W**3, 1.5 * 1.2 * A * W**3),
    "constraint_gradient_lipschitz": (1.1 * 1.2, 1.1 * 1.2),
    "objective_gradient_noise": (0.2 * A * W, 0.2 * A * W),
    "objective_hessian_noise": (0.2 * A * W**2, 0.2 * A * W**2),
    "jacobian_noise": (0.2 * np.hypot(B, 1), 0.2 * np.hypot(B, REACH)),
    "constraint_hessian_noise": (0.2, 0.2),
}
# Of 64 fair signs the mean is 0 to 0.125 (one standard error), which moves F's by 2.5 %; 8 points miss the extremes.
LEAST, MOST = 0.6, 1.15


@pytest.fixture(scope="module")
def estimated():
    return theory.estimate(PROBLEM, X0, radius=RADIUS)


@pytest.mark.parametrize("name", KNOWN)
def test_estimates_are_near_what_is_known(estimated, name):
    low, high = KNOWN[name]
    assert LEAST * low <= getattr(estimated, name) <= MOST * high


def test_structure_is_seen(estimated):
    """d and m are exact; a constraint that is quadratic has no third derivative; |J| >= B, so c is regular."""
    assert (estimated.dimension, estimated.constraint_count) == (2, 1)
    assert estimated.constraint_hessian_lipschitz == pytest.approx(0, abs=1e-5)
    assert 0.95 * B <= estimated.regularity <= np.hypot(B, REACH)


def test_same_seed_same_estimates_other_seed_others(estimated):
    assert theory.estimate(PROBLEM, X0, radius=RADIUS, seed=0) == estimated
    assert theory.estimate(PROBLEM, X0, radius=RADIUS, seed=1) != estimated


@pytest.mark.parametrize(("s", "r", "t"), [(0.5, 4.0, 2.0)])
def test_estimates_have_the_units_they_say(estimated, s, r, t):
    """The same problem in other units (powers of two, so that rounding agrees) has the constants of those units."""
    other = theory.estimate(wave(s, r, t), X0 * r, radius=RADIUS * r)
    expected = rescale(estimated, s, r, t)
    for field in dataclasses.fields(other):
        assert getattr(other, field.name) == pytest.approx(getattr(expected, field.name), rel=1e-3, abs=1e-5), (
            field.name
        )


def test_slacks_are_variables():
    rows = np.linspace(-1, 1, 20, dtype=np.float32)
    problem = mescal.Problem(
        E(lambda x, a: (x[0] - a) ** 2, over=rows), {"c": E(lambda x, a: x[0] + a, over=rows) <= 1}
    )
    constants = theory.estimate(problem, np.zeros(1, np.float32))
    assert constants.dimension == 2
    assert constants.jacobian_bound == pytest.approx(np.sqrt(2), rel=1e-4)  # x and s
    assert constants.objective_gradient_lipschitz == pytest.approx(2.2, rel=1e-3)


def test_without_constraints_or_samples():
    """A deterministic quartic: no noise; L_g = 1.1 times 12 x^2 + 2 at the farthest point seen, which is within 2."""
    constants = theory.estimate(mescal.Problem(E(lambda x: x[0] ** 4 + x @ x)), np.ones(3, np.float32))
    assert constants.constraint_count == 0 and constants.constraint_bound == 0
    assert constants.objective_gradient_noise == pytest.approx(0, abs=1e-4)
    assert 1.1 * 14 <= constants.objective_gradient_lipschitz <= 1.1 * (12 * (1 + np.sqrt(3)) ** 2 + 2)
    assert constants.objective_hessian_lipschitz >= 1.5 * 24 * 0.999


def test_a_quadratic_has_room_for_steps():
    """L_H = 0 has no step along negative curvature; the floor is a tenth of L_g over the radius."""
    constants = theory.estimate(mescal.Problem(E(lambda x: x @ x)), np.zeros(2, np.float32), radius=4.0)
    assert constants.objective_hessian_lipschitz == pytest.approx(0.1 * 2.2 / 4, rel=1e-3)


def test_a_bottleneck_has_no_regularity():
    problem = mescal.Problem(E(lambda x: x @ x), {"c": E(lambda x: x @ x + 1) == 0})
    with pytest.raises(InputError, match="cannot be violated less"):
        theory.estimate(problem, np.zeros(2, np.float32))


def test_what_is_not_finite_is_refused():
    problem = mescal.Problem(E(lambda x: jnp.sum(jnp.log(x))))
    with pytest.raises(InputError, match="not finite"):
        theory.estimate(problem, np.full(2, 0.1, np.float32))


@pytest.mark.parametrize("given", [{"radius": -1.0}, {"points": 0}, {"samples": 1}])
def test_bad_settings(given):
    with pytest.raises(InputError):
        theory.estimate(mescal.Problem(E(lambda x: x @ x)), np.zeros(2, np.float32), **given)


def test_the_price_counts_every_product(make_lagrangian):
    """Points times samples gradients; a product per step of the power iterations, two per step on the third derivative."""
    from mescal.theory.estimates import BEND_STEPS, NOISE_STEPS, POWER_STEPS, measure_constants

    oracle = make_lagrangian(PROBLEM, X0, [0.0], 1.0)
    key = jax.random.key(0, impl="threefry2x32")
    found = measure_constants(oracle.form, oracle.data, jnp.asarray(X0), key, radius=RADIUS)
    products = 512 * (2 * POWER_STEPS + 3 * NOISE_STEPS + 1 + 4 * BEND_STEPS)
    assert found.work.gradients == 512 and found.work.hvps == products
    assert found.work.counts["constraint_hvps"] == products

"""Rounding travels with a look: it covers what float64 is off by, decides rank, and is added to what a certificate reports."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle.evaluator import evaluator_of
from mescal.oracle.rounding import magnitude
from mescal.problem.traced import trace

RNG = np.random.default_rng(11)
LARGE = 1e6 * RNG.normal(size=400)
REORDERED = RNG.permutation(LARGE)


def linear(x, a):
    return a * x[0]


def form(x, row):
    return row @ x


def wave(x, row):
    return jnp.sin(row @ x) + (row @ x) ** 2 / 7


def test_a_constraint_that_is_zero_up_to_rounding_certifies_no_point():
    """min (x-3)^2 with mean(A)x - mean(A reordered)x = 0: J is rounding, and no multiplier makes x = 10 stationary."""
    zero = E(linear, over=LARGE) - E(linear, over=REORDERED) == 0
    problem = mescal.Problem(E(lambda x: (x[0] - 3) ** 2), {"zero": zero})
    assert not mescal.certify(problem, np.array([10.0]), tol=0.01).passes(0.01)
    for size in (1e8, 1e10, 1e12):
        for sign in (-1, 1):
            assert not mescal.certify(problem, np.array([10.0]), {"zero": [sign * size]}, tol=0.01).passes(0.01)
    assert mescal.certify(problem, np.array([3.0]), tol=1e-4).passes(1e-4)


@pytest.mark.parametrize("cone", ["paper", "critical"])
@pytest.mark.parametrize("factor", [1e4, 1e7, 1e10])
def test_a_redundant_equality_hides_no_saddle(cone, factor):
    """k E(q) - (k-1) E(q) is E(q): rounding turns its gradient a little, which must not count as a second condition."""
    rows = RNG.normal(size=(50, 3)) + np.array([2.0, 1.0, 0.0])
    mean = rows.mean(0) / np.linalg.norm(rows.mean(0))
    across = np.cross(mean, [0.0, 0.0, 1.0])
    across /= np.linalg.norm(across)
    twice = {
        "q": E(form, over=rows) == 0,
        "again": factor * E(form, over=rows) - (factor - 1) * E(form, over=rows) == 0,
    }

    def length(x):
        return 0.5 * (x @ x)

    def bent(x):
        return 0.5 * (across @ x) ** 2

    saddle = mescal.Problem(E(length) - 30.8 * E(bent), twice)
    found = mescal.certify(saddle, np.zeros(3), tol=0.01, cone=cone)
    assert not found.passes(0.01) and found.curvature.upper < -25
    minimum = mescal.Problem(E(length) + 30.8 * E(bent), twice)
    assert mescal.certify(minimum, np.zeros(3), tol=0.01, cone=cone).passes(0.01)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e6, 1e12])
def test_bounds_cover_what_float64_is_off_by(scale):
    """Against the same sums in extended precision, with terms that cancel to a part in 10^9 and rows that nearly do."""
    rows = RNG.normal(size=(300, 4)) * scale
    rows[150:] = -rows[:150] * (1 + 1e-9 * RNG.normal(size=(150, 1)))
    x = RNG.normal(size=4) / scale
    k = 1e9
    body = k * E(wave, over=rows) - (k - 1) * E(wave, over=rows)
    problem = mescal.Problem(E(form, over=rows) + body, {"c": body == 0.5})
    program, _ = problem.bind(x)
    looks = evaluator_of(problem, program)
    at, off = looks.at(x), looks.at(x).rounding
    wide, at_wide = rows.astype(np.longdouble), x.astype(np.longdouble)
    u = wide @ at_wide
    value, slope, bend = np.sin(u) + u**2 / 7, np.cos(u) + 2 * u / 7, -np.sin(u) + np.longdouble(2) / 7
    c, jacobian = value.mean() - np.longdouble(0.5), (slope[:, None] * wide).mean(0)
    hessian = (wide * bend[:, None]).T @ wide / len(wide)
    entries, moved = looks.hessian_rounding(x, np.zeros(1))
    assert abs(at.constraint[0] - c) <= off.constraint[0]
    raw = np.where(np.any(at.jacobian), at.jacobian[0], 0.0)
    assert (np.abs(at.gradient - (u * 0 + 1) @ wide / len(wide) - jacobian) <= off.gradient + moved).all()
    assert (np.abs(raw - jacobian) <= off.jacobian[0] + np.linalg.norm(off.jacobian) + moved).all()
    assert np.linalg.norm((looks.hessian(x, np.zeros(1)) - hessian).astype(float), 2) <= entries.max()
    # and they are no more than the terms' magnitudes at N times the unit of float64
    assert off.constraint[0] <= 1e4 * np.finfo(float).eps * 2 * k * float(
        np.abs(value).mean() + np.abs(slope * u).mean() + 1
    )


def test_functions_that_compute_in_float32_are_off_by_its_unit():
    def coarse(x, row):
        return jnp.tanh(row.astype(jnp.float32) @ x.astype(jnp.float32))

    rows, x = RNG.normal(size=(64, 3)), np.array([0.3, -0.2, 0.1])
    problem = mescal.Problem(E(form, over=rows), {"fine": E(wave, over=rows) == 0, "coarse": E(coarse, over=rows) == 0})
    program, _ = problem.bind(x)
    off = evaluator_of(problem, program).at(x).rounding
    u = rows @ x
    wrong = np.abs(evaluator_of(problem, program).at(x).constraint[1] - np.tanh(u).mean())
    assert 0 < wrong <= off.constraint[1] and off.constraint[1] > 1e-7


def test_magnitudes_are_those_of_every_path():
    """|L||u| for L = A'B - B'A: the difference of two products vanishes for A = B, its magnitude does not."""
    A, B = RNG.normal(size=(2, 3, 3))
    u = np.abs(RNG.normal(size=3))

    def difference(u):
        return A.T @ (B @ u) - jax.jit(lambda w: -0.5 * w[::-1])(B.T @ (A @ u))

    expected = np.abs(A.T) @ (np.abs(B) @ u) + 0.5 * (np.abs(B.T) @ (np.abs(A) @ u))[::-1]
    with jax.enable_x64(True):
        np.testing.assert_allclose(magnitude(difference, jnp.asarray(u)), expected, rtol=1e-14)
        looped = magnitude(lambda v: jax.lax.fori_loop(0, 3, lambda i, w: A @ w, v), jnp.asarray(u))
        np.testing.assert_allclose(looped, np.linalg.matrix_power(np.abs(A), 3) @ u, rtol=1e-13)
    assert trace(difference, jax.ShapeDtypeStruct((3,), np.float32)).function.shape == (3,)


TARGET = np.array([0.3, 1.1, -0.4])


def distance(x):
    return jnp.sum((x - TARGET) ** 2)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("times", [2, 7])
def test_right_answers_pass_at_any_scale_and_with_constraints_stated_many_times(scale, times):
    """min |x - b|^2 s.t. mean row . x = 0, or <= 0, the constraint stated several times in several units."""
    rows = np.random.default_rng(times).normal(size=(60, 3)) + 1
    mean = rows.mean(0)
    x = TARGET - mean * (mean @ TARGET) / (mean @ mean)
    assert mean @ TARGET > 0
    bodies = [(1.0 + 0.37 * i) * scale * E(form, over=rows) for i in range(times)]
    equal, at_most = (
        {f"c{i}": part for i, part in enumerate(parts)}
        for parts in ([b == 0 for b in bodies], [b <= 0 for b in bodies])
    )
    tolerance = 1e-8 * scale
    for constraints, cone in ((equal, "paper"), (at_most, "critical")):
        problem = mescal.Problem(scale * E(distance), constraints)
        assert mescal.certify(problem, x, tol=tolerance, cone=cone).passes(tolerance)


def test_where_constraint_gradients_depend_on_each_other_minimisers_pass():
    """x_1^2 <= 0 and x_1 = 0 at the origin of min x_1 + |x|^2: LICQ fails, and the equality carries the multiplier."""
    problem = mescal.Problem(
        E(lambda x: x[0] + x @ x), {"flat": E(lambda x: x[0] ** 2) <= 0, "line": E(lambda x: x[0]) == 0}
    )
    assert mescal.certify(problem, np.zeros(2), tol=1e-8, cone="critical").passes(1e-8)


def test_functions_of_any_operations_have_bounds():
    """Complex numbers, loops, solves, sorts and branches: bounds are finite, small, and there is no doubt of the derivatives."""

    def many(x, a):
        looped = jax.lax.scan(lambda h, t: (jnp.tanh(h * x[0] + t * x[1]), h), jnp.asarray(0.1), a)[0]
        solved = jnp.linalg.solve(jnp.eye(3) * (2 + x[0] ** 2) + jnp.outer(a[:3], a[:3]), x[:3])
        chosen = jax.lax.cond(a[0] > 0, lambda y: y @ y, lambda y: 2 * y @ y, x)
        return (
            looped**2 + solved @ solved + chosen + jnp.sum(jnp.abs(jnp.fft.rfft(x - a)) ** 2) + jnp.sort(a * x)[2] ** 2
        )

    rows = RNG.normal(size=(20, 4))
    found = mescal.certify(mescal.Problem(E(many, over=rows)), np.array([0.3, -0.6, 0.9, 1.2]), tol=0.01)
    assert 0 < found.stationarity.upper - found.stationarity.lower < 1e-9 * found.stationarity.value
    assert np.isfinite(found.curvature.lower) and not found.warnings


LOSING = {
    "rows that cancel": lambda x, a: ((x[0] + 1e16 * a) - 1e16 * a) ** 2,
    "rows that cancel in a sum": lambda x, a: jnp.sum(jnp.stack([x[0], 1e16 * a, -1e16 * a])) ** 2,
    "an offset in a wave": lambda x, a: -jnp.cos(1e8 * (x[0] - 0.9 + 1e-16 + a) - 1e8 * a),
    "a power in a wave": lambda x, a: -jnp.cos(1e8 * jnp.exp(x[0] - 0.9 + 1e-16) - 1e8 * a),
}


@pytest.mark.parametrize("name", LOSING)
def test_digits_that_are_lost_inside_a_function_count(name):
    """At 0.9 the gradient as float64 has it may vanish, where the true one is at least 1; away from such numbers all is well."""
    problem = mescal.Problem(E(LOSING[name], over=np.ones(3)))
    found = mescal.certify(problem, np.array([0.9]), tol=0.01)
    assert not found.passes(0.01) and found.stationarity.upper >= 0.9


def test_a_constraint_that_loses_digits_is_met_by_no_point():
    """x + a - a = 0 at x = 0.9."""
    lost = {"c": E(lambda x, a: x[0] + 1e16 * a - 1e16 * a, over=np.ones(3)) == 0}
    found = mescal.certify(mescal.Problem(E(lambda x: x @ x), lost), np.array([0.9]), {"c": [-1.8]}, tol=0.01)
    assert not found.passes(0.01) and found.feasibility.upper >= 0.9


def looped(rows):
    """sum_i a_i x, one after the other."""
    return lambda x: jax.lax.scan(lambda s, a: (s + a * x[0], None), 0 * x[0], jnp.asarray(rows))[0]


INSIDE = {
    "a scan": looped(np.concatenate([LARGE, -REORDERED])),
    "two scans": lambda x: looped(LARGE)(x) - looped(REORDERED)(x),
    "a loop": lambda x: jax.lax.fori_loop(
        0, 400, lambda i, s: s + (jnp.asarray(LARGE)[i] - jnp.asarray(REORDERED)[i]) * x[0], 0 * x[0]
    ),
    "a checkpoint": jax.checkpoint(lambda x: jnp.sum(LARGE * x[0]) - jnp.sum(REORDERED * x[0])),
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_cancels_inside_a_loop_is_rounding_too(name):
    """A constraint that is zero as the sum of a loop: no multiplier makes x = 10 stationary, nor hides a saddle."""
    zero = {"zero": E(INSIDE[name]) == 0}
    problem = mescal.Problem(E(lambda x: (x[0] - 3) ** 2), zero)
    for multipliers in (None, {"zero": [1e10]}, {"zero": [-1e10]}):
        found = mescal.certify(problem, np.array([10.0]), multipliers, tol=0.01)
        assert found.stationarity.upper > 0.1 and not any("do not change as" in s for s in found.warnings)
    assert mescal.certify(problem, np.array([3.0]), tol=1e-2).passes(1e-2)
    saddle = mescal.Problem(E(lambda x: x[1] ** 2 - (x[0] - 0.3) ** 2), zero)
    found = mescal.certify(saddle, np.array([0.3, 0.0]), tol=0.01)
    assert found.curvature.value < -1 and not found.passes(0.01)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 1.0, 1e9])
def test_a_rough_bound_is_no_less_than_the_bound_and_decides_nothing(scale):
    """Half the price, both ends of it: it is taken where it is nothing beside the tolerance, and else the exact one is."""
    rows, x = RNG.normal(size=(50, 4)), scale * RNG.normal(size=4)
    problem = mescal.Problem(E(wave, over=rows) + E(lambda x: 0.1 * x @ x), {"c": E(form, over=rows) <= 1.0})
    judge, weight = evaluator_of(problem, problem.bind(x)[0]), np.array([0.7])
    exact, rough = judge.hessian_rounding(x, weight), judge.hessian_rounding(x, weight, rough=True)
    for larger, bound in zip(rough, exact, strict=True):
        assert (larger >= bound * (1 - 1e-12)).all()
    value = mescal.certify(problem, x, {"c": weight}, tol=1.0).stationarity.value
    loose, tight = (mescal.certify(problem, x, {"c": weight}, tol=tol).stationarity for tol in (1e6, 1e-12))
    assert value < loose.upper <= value + 1.0 and tight.upper <= loose.upper


def test_numbers_that_are_flushed_to_zero_are_not_taken_for_zero():
    """A saddle in units of 1e-310: compiled programs see no curvature and no gradient at all."""
    problem = mescal.Problem(E(lambda x: 1e-310 * (x[0] ** 2 - x[1] ** 2)))
    assert not mescal.certify(problem, np.array([0.0, 1.0]), tol=1e-312).passes(1e-312)

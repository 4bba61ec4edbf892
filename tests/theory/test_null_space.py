"""The single loop's formulas: by hand, by units, and against derivatives of the merit function on random problems.

Constants there are those at the point itself (or the largest near it), where every inequality must hold: no statistics.
"""

import dataclasses
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal.errors import InputError
from mescal.theory import ProblemConstants, merit, null_space
from mescal.theory.units import rescale

PLAIN = ProblemConstants(
    dimension=3, constraint_count=4,
    objective_bound=1.0, objective_gradient_bound=3.0, constraint_bound=0.5, jacobian_bound=4.0,
    constraint_hessian_bound=0.5, regularity=2.0,
    objective_gradient_lipschitz=6.0, objective_hessian_lipschitz=8.0,
    constraint_gradient_lipschitz=0.5, constraint_hessian_lipschitz=0.25,
    objective_gradient_noise=0.1, objective_hessian_noise=0.2,
    constraint_noise=0.3, jacobian_noise=0.4, constraint_hessian_noise=0.1,
)  # fmt: skip


class TestByHand:
    """h = sqrt(4) 0.5 = 1, h' = sqrt(4) 0.25 = 0.5, s = 2, k_g = 3, k_c = 0.5, k_J = 4, l = 6, l' = 8."""

    first = 6 / 2 + math.sqrt(2) * 3 / 4
    second = 2 * 3 / 8 + 2 * 0.5 * 3 / 4 + (2 + math.sqrt(2)) * first / 2 + 8 / 2

    def test_multipliers(self):
        assert merit.multiplier_slope(PLAIN) == pytest.approx(self.first)
        assert merit.multiplier_bend(PLAIN) == pytest.approx(self.second)

    def test_merit_function(self):
        beta = 2 * 10 / 2
        assert merit.merit_lipschitz(PLAIN, 10.0) == pytest.approx(
            2 * self.first + 0.5 * self.second + 4 * self.first + beta * (16 + 0.5)
        )
        assert merit.escape_lipschitz(PLAIN, 10.0) == pytest.approx(
            8 + 0.5 * 3 / 2 + beta * (3 * 4 + 0.5 * 0.5) + 3 * self.first
        )
        assert merit.merit_gap(PLAIN, 10.0) == pytest.approx(
            1 + 3 * 0.5 / 2 + 10 * 0.25 / 2 + 1 + 9 / (4 * 10 * 2)  # 9/80 is less than k_g k_c/s
        )
        assert merit.merit_gap(PLAIN, 10.0, start=0.5) == pytest.approx(0.5 + 1 + 9 / 80)

    def test_together(self):
        found = merit.merit_constants(PLAIN, 0.1, 0.001, sharp=True)
        weight = 0.1 / 0.001  # above L1 = 4.06
        of_jacobian = (3 + 2 * math.sqrt(2) * weight * 0.5) / 2
        assert found.weight == pytest.approx(weight) and found.penalty == pytest.approx(weight)
        assert found.jacobian_weight == pytest.approx(of_jacobian) and found.condition == 2
        assert found.gradient_noise == pytest.approx(
            math.sqrt(0.1**2 + (2 * weight * 0.3) ** 2 + (of_jacobian * 2 * 0.4) ** 2)
        )
        assert found.sample_lipschitz == pytest.approx(
            math.sqrt(6**2 + (2 * weight * 4.4) ** 2 + (of_jacobian * 2 * 0.5) ** 2)
        )
        assert found.hessian_noise == pytest.approx(0.2 + 2 * 0.1 * 3.1 / 2)
        assert merit.merit_constants(PLAIN, 0.1, 0.1).weight == pytest.approx(self.first)

    def test_parameters(self):
        c = dataclasses.replace(
            merit.merit_constants(PLAIN, 0.1, 0.1), condition=1.0, weight=1.0, multiplier_bend=2.0, singular_value=1.0,
            jacobian_lipschitz=1.0, gradient_lipschitz=4.0, escape_lipschitz=0.5, gap=0.01, gradient_noise=0.2,
            sample_lipschitz=3.0, jacobian_weight=100.0,
        )  # fmt: skip
        p = null_space.parameters(c, 1.0, 1.0, failure=0.1)
        spread, t = math.sqrt(10), 0.95
        eps = t / (20 + 18)
        assert p.tolerance == pytest.approx(eps) and p.search_tolerance == t
        assert p.stop_threshold == pytest.approx((1 - 1 / (5 * spread)) * eps)
        assert p.accuracy == pytest.approx(eps / (5 * math.sqrt(3) * spread))
        least = (1 - 2 / (5 * spread)) * eps
        assert p.step_length == pytest.approx(least / 20) and p.escape_length == pytest.approx(t)
        assert p.block_steps == math.ceil(t / (least / 20))
        per_escape = 48 * 0.25 / t**3
        reach = 2 * 0.01 / 0.1
        assert p.searches == math.floor(reach * per_escape) + 1 and p.search_failure == 0.1 / (4 * p.searches)
        assert p.steps == math.floor(reach * max(200 / least**2, per_escape * p.block_steps)) + p.block_steps + 1
        sure, moved = math.log(80 * p.steps), 3 * p.step_length / p.accuracy
        assert p.large_batch == math.ceil(4 * sure * (0.2 / p.accuracy) ** 2) and not p.exact_resets
        assert p.period == math.ceil(0.2 / (math.sqrt(8) * 3 * p.step_length))
        assert p.small_batch == math.ceil(16 * sure * moved**2 * p.period)
        exact = null_space.parameters(c, 1.0, 1.0, failure=0.1, population=3000)
        assert exact.exact_resets and exact.large_batch == 3000
        assert exact.period == math.ceil(math.sqrt(3000 / (16 * sure)) / moved)
        assert exact.small_batch == math.ceil(8 * sure * moved**2 * exact.period)

    def test_work_and_its_rate(self):
        p = null_space.parameters(merit.merit_constants(PLAIN, 0.1, 0.1), 0.1, 0.3)
        search = null_space.search(p, merit.merit_constants(PLAIN, 0.1, 0.1), 3).cost
        resets = math.ceil(p.steps / p.period)
        total = null_space.work(p, search).worst
        assert total.gradients == resets * p.large_batch + 2 * (p.steps - resets) * p.small_batch
        assert total.hessian_products == p.searches * search.hessian_products
        assert null_space.RATE.power(0.5) == 3 and null_space.RATE.power(1) == 5

    def test_wrong_numbers_are_refused(self):
        with pytest.raises(InputError, match="feasibility tolerance"):
            merit.merit_constants(PLAIN, 0.1, 0.0)
        with pytest.raises(InputError, match="failure"):
            null_space.parameters(merit.merit_constants(PLAIN, 0.1, 0.1), 0.1, 0.1, failure=1.0)


def test_slopes_of_the_work_are_those_of_the_statement():
    """eps_H = sqrt(eps_g): the worst case grows like eps^-3 but for logarithms, which 0.2 is left for (1e6 of range)."""
    works = []
    for eps in (1e-4, 1e-10):
        constants = merit.merit_constants(PLAIN, eps, eps)
        p = null_space.parameters(constants, eps, math.sqrt(eps))
        works.append(null_space.work(p, null_space.search(p, constants, 3).cost).worst.total)
    assert math.log10(works[1] / works[0]) / 6 == pytest.approx(3.0, abs=0.2)


@pytest.mark.parametrize(("s", "r", "t"), [(7.3, 0.19, 1.0), (1e-3, 1.0, 1.0), (1.0, 40.0, 1.0), (0.02, 3.1, 11.0)])
def test_independent_of_units(s, r, t):
    asked = 0.1, 0.02, 0.3
    scaled = asked[0] * s / r, asked[1] * t, asked[2] * s / r**2
    here = merit.merit_constants(PLAIN, *asked[:2])
    there = merit.merit_constants(rescale(PLAIN, s, r, t), *scaled[:2])
    for field in dataclasses.fields(here):
        wanted = getattr(rescale(here, s, r, t), field.name)
        assert getattr(there, field.name) == pytest.approx(wanted, rel=1e-9), field.name
    mine = rescale(null_space.parameters(here, asked[0], asked[2]), s, r, t)
    other = null_space.parameters(there, scaled[0], scaled[2])
    for field in dataclasses.fields(mine):
        assert getattr(other, field.name) == pytest.approx(getattr(mine, field.name), rel=1e-6), field.name


# ---- against derivatives

D, M = 4, 2


@jax.jit
def outputs(tensors, x):
    """(f, c) at x: polynomials of degree three."""
    zero, one, two, three = tensors
    return zero + one @ x + jnp.einsum("oij,i,j->o", two, x, x) / 2 + jnp.einsum("oijk,i,j,k->o", three, x, x, x) / 6


@jax.jit
def multipliers(tensors, x):
    """lam of least squares."""
    rows = jax.jacfwd(outputs, 1)(tensors, x)
    return -jnp.linalg.solve(rows[1:] @ rows[1:].T, rows[1:] @ rows[0])


@jax.jit
def phi(tensors, x, beta):
    """Fletcher's function."""
    values = outputs(tensors, x)
    return values[0] + multipliers(tensors, x) @ values[1:] + beta / 2 * values[1:] @ values[1:]


multiplier_jacobian = jax.jit(jax.jacfwd(multipliers, 1))
multiplier_hessian = jax.jit(jax.jacfwd(jax.jacfwd(multipliers, 1), 1))
merit_gradient = jax.jit(jax.grad(phi, 1))
merit_hessian = jax.jit(jax.hessian(phi, 1))


def case(seed):
    """Coefficients, symmetric, with a Jacobian that keeps away from singular ones."""
    rng = np.random.default_rng(seed)
    one, two, three = (rng.standard_normal((1 + M, *([D] * k))) for k in (1, 2, 3))
    one[1:] *= 2
    two = (two + two.swapaxes(1, 2)) / 2
    three = sum(three.transpose(0, *(1 + k for k in order)) for order in itertools.permutations(range(3))) / 6
    return np.arange(1.0 + M) / 10, one, two, three


def derivatives(tensors, x):
    """Of (f, c) at x, in closed form."""
    _, one, two, three = tensors
    return one + two @ x + np.einsum("oijk,j,k->oi", three, x, x) / 2, two + three @ x, three


def constants_at(tensors, points):
    """The largest (smallest for s) over the points."""
    first, second, third = zip(*(derivatives(tensors, x) for x in points), strict=True)
    size = lambda o: float(max(np.linalg.norm(t[o], 2) for t in second))
    bend = lambda o: float(max(np.linalg.norm(t[o].reshape(D, -1), 2) for t in third))  # no less than |D^3|
    over = range(1, 1 + M)
    return ProblemConstants(
        dimension=D, constraint_count=M, objective_bound=1.0,
        objective_gradient_bound=float(max(np.linalg.norm(t[0]) for t in first)),
        constraint_bound=max(float(np.linalg.norm(outputs(tensors, x)[1:])) for x in points),
        jacobian_bound=float(max(np.linalg.norm(t[1:], 2) for t in first)),
        constraint_hessian_bound=max(size(o) for o in over),
        regularity=min(np.linalg.svd(t[1:], compute_uv=False)[-1] for t in first),
        objective_gradient_lipschitz=size(0), objective_hessian_lipschitz=bend(0),
        constraint_gradient_lipschitz=max(size(o) for o in over),
        constraint_hessian_lipschitz=max(bend(o) for o in over),
    )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_of_the_multipliers_and_of_the_merit_function(seed):
    tensors, x = case(seed), np.random.default_rng(100 + seed).standard_normal(D) / 2
    known = constants_at(tensors, [x])
    weight = merit.merit_weight(known, 0.1, 0.1)
    slope = np.asarray(multiplier_jacobian(tensors, x))
    assert np.linalg.norm(slope, 2) <= merit.multiplier_slope(known) * (1 + 1e-9)
    bend = np.asarray(multiplier_hessian(tensors, x))
    for v in np.eye(D):
        assert np.linalg.norm(bend @ v, 2) <= merit.multiplier_bend(known) * (1 + 1e-9)
    hessian = np.asarray(merit_hessian(tensors, x, 2 * weight / known.regularity))
    assert np.linalg.norm(hessian, 2) <= merit.merit_lipschitz(known, weight) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_descent_and_what_errors_do_to_the_step(seed):
    """(grad phi)'p <= -M^2/2, |p| <= M, |grad phi| <= G M; and estimates of (g, c, J) with errors up to s/2."""
    tensors, rng = case(seed), np.random.default_rng(200 + seed)
    x = rng.standard_normal(D) / 2
    known = constants_at(tensors, [x])
    constants = merit.merit_constants(known, 0.1, 0.1)
    s, weight = known.regularity, constants.weight
    rows, c = derivatives(tensors, x)[0], np.asarray(outputs(tensors, x))[1:]

    def step(g, c, jacobian):
        lam = -np.linalg.lstsq(jacobian.T, g, rcond=None)[0]
        w, v = -(g + lam @ jacobian), -np.linalg.pinv(jacobian) @ c
        return w + weight * s * v, math.hypot(np.linalg.norm(w), weight * np.linalg.norm(c)), lam

    p, size, lam = step(rows[0], c, rows[1:])
    slope = np.asarray(merit_gradient(tensors, x, constants.penalty))
    assert slope @ p <= -(size**2) / 2 * (1 - 1e-9) and np.linalg.norm(p) <= size * (1 + 1e-9)
    assert np.linalg.norm(slope) <= math.hypot(1, 1 + 2 * constants.condition) * size * (1 + 1e-9)
    for scale in np.repeat((1e-3, 0.1, 0.5), 20):
        e_g, e_c, e_j = rng.standard_normal(D), rng.standard_normal(M), rng.standard_normal((M, D))
        e_g, e_c = scale * e_g, scale * e_c
        e_j *= scale * s / np.linalg.norm(e_j, 2)
        other, measured, changed = step(rows[0] + e_g, c + e_c, rows[1:] + e_j)
        allowed = np.linalg.norm(e_g) + 2 * weight * np.linalg.norm(e_c)
        allowed += constants.jacobian_weight * np.linalg.norm(e_j, 2)
        assert np.linalg.norm(other - p) <= allowed and abs(measured - size) <= allowed
        assert np.linalg.norm(changed - lam) <= 2 * math.sqrt(2) / s * allowed


@pytest.mark.parametrize("seed", range(8))
def test_an_escape_in_both_directions(seed):
    """The mean of phi at x + r u and x - r u, u in Null(J), against the third-order bound of the derivation."""
    tensors, rng = case(seed), np.random.default_rng(300 + seed)
    x = rng.standard_normal(D) / 4
    around = rng.standard_normal((12, D))
    near = [x, *(x + v / np.linalg.norm(v) * k / 12 for v in around for k in (1, 2, 3))]
    rows, second, _ = derivatives(tensors, x)
    lam, size = np.asarray(multipliers(tensors, x)), float(np.linalg.norm(outputs(tensors, x)[1:]))
    hessian = second[0] + np.tensordot(lam, second[1:], 1)
    for r, u in itertools.product((0.02, 0.1, 0.25), np.linalg.svd(rows[1:])[2][M:]):
        known = constants_at(tensors, [*near, x + r * u, x - r * u])
        weight = merit.merit_weight(known, 0.1, 0.1)
        beta, h = 2 * weight / known.regularity, math.sqrt(M) * known.constraint_hessian_bound
        ends = [float(phi(tensors, x + sign * r * u, beta)) for sign in (1, -1)]
        change = np.mean(ends) - float(phi(tensors, x, beta))
        bent = u @ hessian @ u + (beta * h + merit.multiplier_bend(known)) * size
        assert change <= r**2 / 2 * bent + merit.escape_lipschitz(known, weight) * r**3 / 6 + 1e-12

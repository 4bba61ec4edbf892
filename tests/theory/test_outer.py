"""Theorem 2.1 and Lemma 3.6: iteration bound, dual bounds, feasibility, gaps, probabilities."""

import dataclasses
import math

import numpy as np
import pytest

from mescal.errors import InputError
from mescal.theory import gap, outer
from mescal.theory.outer import Schedule


def test_iteration_bound_by_hand(problem, schedule):
    pull = 0.8 + 1.7 * 2.5
    for eps in (0.1, 0.01, 1e-4):
        exact = math.log((eps + pull) / (0.4 * 0.5 * eps)) / math.log(1.3)
        assert outer.iteration_bound(problem, schedule, eps) == math.ceil(exact)
        printed = math.log((1 + pull) / (0.4 * 0.5 * eps)) / math.log(1.3)
        assert outer.iteration_bound(problem, schedule, eps, residual=1.0) == math.ceil(printed)


@pytest.mark.parametrize("eps", [0.3, 0.03, 0.003])
def test_iteration_bound_is_the_first_feasible_iteration(problem, schedule, eps):
    k = outer.iteration_bound(problem, schedule, eps, feasibility_tolerance=0.2)
    assert outer.feasibility_bound(problem, schedule, schedule.penalty(k), eps) <= 0.2 * (1 + 1e-9)
    assert outer.feasibility_bound(problem, schedule, schedule.penalty(k - 1), eps) > 0.2


def test_iteration_bound_is_exact_where_the_logarithm_is_whole(problem):
    """Penalty needed = (1 + 0.8 + 1.7 * 2.5)/(0.4 * 0.05) = 302.5 = 302.5/8 * 2^3."""
    schedule = Schedule(initial_penalty=302.5 / 8, growth=2.0, multiplier_bound=2.5)
    assert outer.iteration_bound(problem, schedule, 0.05, residual=1.0) == 3


def test_iteration_bound_is_never_negative(problem, schedule):
    large = dataclasses.replace(schedule, initial_penalty=1e9)
    assert outer.iteration_bound(problem, large, 0.01) == 0
    free = dataclasses.replace(problem, constraint_count=0)
    assert outer.iteration_bound(free, schedule, 0.01) == 0


def test_iteration_bound_grows_like_the_logarithm(problem, schedule):
    steps = [outer.iteration_bound(problem, schedule, 10.0**-i) for i in range(1, 9)]
    assert np.diff(steps) == pytest.approx(math.log(10) / math.log(1.3), abs=1)


def test_dual_bounds_are_summable():
    assert outer.dual_bound(0, 0.7, 2.0) == pytest.approx(1.4)
    gammas = np.array([outer.dual_bound(k, 0.7, 2.0) for k in range(20_000)])
    assert (np.diff(gammas) < 0).all()
    total = outer.dual_bound_total(0.7, 2.0)
    k = np.arange(20_000, 2_000_000)
    rest = np.sum(1.4 * np.log(2) ** 2 / ((k + 1) * np.log(k + 2) ** 2)) + 1.4 * np.log(2) ** 2 / np.log(2e6 + 1.5)
    assert gammas.sum() + rest == pytest.approx(total, rel=1e-6)
    assert total == pytest.approx(1.4 * 1.62765, rel=1e-5)
    assert outer._dual_sum(1000) > outer._dual_sum(100_000)  # an upper bound for any number of terms


def test_multipliers_stay_bounded_for_any_noise():
    """Algorithm 1, (2.6), with constraint estimates of wild sizes; and gamma = inf is the plain update."""
    rng = np.random.default_rng(0)
    multiplier, start = np.array([1.0, -2.0]), np.hypot(1.0, 2.0)
    bound = outer.multiplier_bound(start, outer.dual_bound_total(0.3))
    for k in range(2000):
        residual = rng.standard_cauchy(2) * 10.0 ** rng.uniform(-3, 6)
        size = np.linalg.norm(residual)
        multiplier = multiplier + min(1.1 ** min(k, 500), outer.dual_bound(k, 0.3) / size) * residual
        assert np.linalg.norm(multiplier) <= bound


def test_dual_sample_size():
    assert outer.dual_sample_size(0.5, 0.01) == 2500
    assert outer.dual_sample_size(0.0, 0.01) == 1


def test_probabilities_for_each_claim():
    p, k = 0.9, 12
    point, work, both = (outer.success_probability(p, k, claim) for claim in ("point", "work", "both"))
    assert point == p
    assert math.prod([work] * k) == pytest.approx(p)  # gaps 1..K need subproblems 0..K-1
    assert math.prod([both] * (k + 1)) == pytest.approx(p)
    assert p <= work < both < 1
    assert outer.success_probability(p, 0, "work") == outer.success_probability(p, 0, "both") == p
    with pytest.raises(InputError, match="claim"):
        outer.success_probability(p, k, "luck")  # pyright: ignore


def test_the_last_probability_decides():
    """Erratum 16: a decreasing sequence that ends below the target, as the remark prints, does not reach it."""
    assert outer.reaches_target([0.99, 0.95, 0.9], 0.9)
    assert not outer.reaches_target([0.99, 0.95, 0.89], 0.9)
    assert not outer.reaches_target([], 0.9)


def test_gap_bounds_by_hand(problem, schedule):
    base = 2 * 1.3 + 2.5**2 / 0.5
    assert gap.deterministic_bound(problem, schedule, 4) == pytest.approx(base + 0.5 * 1.3**4 * 2.1**2)
    assert gap.uniform_bound(problem, schedule, 1.0) == pytest.approx(
        base + 2.1 * 1.3 * (1 + 0.8 + 2.5 * 1.7) / 0.4  # erratum 15: not 1 + 1.7 + 2.5 * 0.8
    )


def test_gap_after_success_is_below_both_others(problem, schedule):
    previous = math.inf
    for k in range(1, 60):
        sharp = gap.bound_after_success(problem, schedule, k, 0.1)
        assert sharp <= gap.uniform_bound(problem, schedule, 0.1) * (1 + 1e-12)
        assert sharp <= gap.deterministic_bound(problem, schedule, k) * (1 + 1e-12)
        if k > 25:  # once (2.9) is below kappa_c it falls
            assert sharp < previous
        previous = sharp


def test_gap_bound_holds_on_random_values(problem, schedule):
    """L(x) - L(x*) for any f, c, lambda within their bounds; the minimum over c is taken exactly."""
    rng = np.random.default_rng(1)
    for k in range(200):
        alpha, (f, lowest) = schedule.penalty(k % 9), rng.uniform(-1.3, 1.3, 2)
        multiplier, c = (
            scale * v / np.linalg.norm(v) for scale, v in zip((2.5, 2.1), rng.normal(size=(2, 3)), strict=True)
        )
        value = f + multiplier @ c + alpha / 2 * c @ c
        minimum = lowest - multiplier @ multiplier / (2 * alpha)
        assert value - minimum <= gap.deterministic_bound(problem, schedule, k % 9)
        assert gap.bound_from_values(value, lowest, 2.5, alpha) == pytest.approx(max(0, value - minimum))


@pytest.mark.parametrize("bad", [{"growth": 1.0}, {"initial_penalty": 0.0}, {"multiplier_bound": math.inf}])
def test_bad_schedules_are_refused(schedule, bad):
    with pytest.raises(InputError):
        dataclasses.replace(schedule, **bad)


def test_bad_tolerances_are_refused(problem, schedule):
    with pytest.raises(InputError, match="gradient tolerance is 0"):
        outer.iteration_bound(problem, schedule, 0.0)
    with pytest.raises(InputError, match="feasibility tolerance"):
        outer.iteration_bound(problem, schedule, 0.1, -1.0)

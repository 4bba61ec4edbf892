"""Boosting a fixed success probability, and Option I from Option II."""

import math

import numpy as np
import pytest

from mescal.errors import InputError
from mescal.theory import boosting


@pytest.mark.parametrize(
    ("target", "base", "number"),
    [(0.99, 0.5, 7), (0.95, 0.5, 5), (0.95, 5 / 8, 4), (0.95, 2 / 3, 3), (0.5, 0.5, 1), (0.75, 0.5, 2), (0.3, 0.5, 1)],
)
def test_copies(target, base, number):
    assert boosting.copies(target, base) == number
    assert 1 - (1 - base) ** number >= target - 1e-12
    assert number == 1 or 1 - (1 - base) ** (number - 1) < target


def test_seven_copies_of_a_coin_reach_99_per_cent():
    """A mock solver of success 1/2, a perfect verifier: 1 - 2^-7 = 0.9922 of 200 000 trials, s.e. 0.0002."""
    rng = np.random.default_rng(0)
    success = (rng.uniform(size=(200_000, boosting.copies(0.99, 0.5))) < 0.5).any(1).mean()
    assert success == pytest.approx(1 - 0.5**7, abs=0.001)
    assert success >= 0.99


def test_boost_accounts_for_its_verification(constants):
    plan = boosting.boost(constants, 0.1, 0.2, 0.95, 0.5)
    none_good = 0.5**plan.copies
    checks = 2 * plan.copies * plan.verification_failure
    assert none_good + checks <= 0.05 + 1e-12
    assert (plan.gradient_tolerance, plan.curvature_tolerance) == (0.05, 0.1)
    # A copy good to eps/2 passes and what passes is good to eps, with the margin eps/4 in between.
    assert plan.gradient_tolerance + 0.1 / 4 <= plan.accept
    assert plan.accept + 0.1 / 4 <= 0.1 + 1e-12
    assert plan.search_tolerance / 2 <= plan.curvature_tolerance  # no good copy has such a direction


def test_boosting_with_an_imperfect_verifier():
    """Copies good with probability 1/2, bad ones just above eps, verification with noise: 4000 trials."""
    from mescal.theory.constants import SubproblemConstants

    rng, trials, d = np.random.default_rng(1), 4000, 3
    c = SubproblemConstants(
        gradient_lipschitz=1.0, hessian_lipschitz=1.0, gradient_noise=0.3, hessian_noise=1.0, gap=1.0
    )
    plan = boosting.boost(c, 0.1, 0.1, 0.9, 0.5)
    good = rng.uniform(size=(trials, plan.copies)) < 0.5
    gradient = np.zeros((trials, plan.copies, d))
    gradient[..., 0] = np.where(good, plan.gradient_tolerance, 0.101)
    # Mean of n bounded vectors: as normal as n of hundreds makes it, with the variance s_g^2/n in all.
    noise = rng.normal(size=gradient.shape) * c.gradient_noise / math.sqrt(d * plan.verification_batch)
    passes = np.linalg.norm(gradient + noise, axis=-1) <= plan.accept
    first = passes.argmax(1)
    success = passes.any(1) & good[np.arange(trials), first]
    assert success.mean() >= 0.9


def test_verification_batch_is_pinelis(constants):
    n = boosting.verification_batch(0.7, 0.05, 0.01)
    assert 2 * math.exp(-n * 0.05**2 / (2 * 0.7**2)) <= 0.01
    assert 2 * math.exp(-(n - 1) * 0.05**2 / (2 * 0.7**2)) > 0.01
    assert boosting.verification_batch(0.0, 0.05, 0.01) == 1


def test_option_one_meets_expectations(constants, problem, schedule):
    bound = boosting.gradient_bound(problem, schedule, 4.0)
    assert bound == pytest.approx(0.8 + 1.7 * (2.5 + 4.0 * 2.1))
    plan = boosting.option_one(constants, 0.1, 0.2, bound, 0.5)
    assert plan.gradient_tolerance + plan.failure * bound <= 0.1 + 1e-12
    assert plan.curvature_tolerance + plan.failure * constants.gradient_lipschitz <= 0.2 + 1e-12
    assert 0.5**plan.copies <= plan.failure
    tight = boosting.option_one(constants, 1e-6, 0.2, bound, 0.5)
    assert tight.copies - plan.copies == pytest.approx(math.log2(1e5), abs=1)  # the price is a logarithm


def test_certainty_is_refused(constants):
    with pytest.raises(InputError, match="target"):
        boosting.copies(1.0, 0.5)
    with pytest.raises(InputError, match="base"):
        boosting.copies(0.9, 0.0)

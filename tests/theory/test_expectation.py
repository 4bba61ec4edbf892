"""Definition 1.1 on runs: bounds by hand, how often they fail, and what is refused."""

import math

import numpy as np
import pytest
from scipy import stats

from mescal import theory
from mescal.errors import InputError
from mescal.theory.expectation import upper_bound


def test_bounds_by_hand():
    values = [1.0, 2.0, 4.0, 5.0]
    variance = 10 / 3
    assert upper_bound(values, 0.05) == pytest.approx(3 + stats.t.ppf(0.95, 3) * math.sqrt(variance / 4))
    logarithm = math.log(2 / 0.05)
    assert upper_bound(values, 0.05, 6.0) == pytest.approx(
        3 + math.sqrt(2 * variance * logarithm / 4) + 14 * logarithm / 3
    )


def test_all_three_conditions_together():
    """A third of the failure each; a curvature above zero, or of an empty cone, counts as zero."""
    runs = [(0.04, 0.01, -0.02), (0.05, 0.02, math.inf), (0.06, 0.03, 5.0)]
    found = theory.expected_point(runs, 0.1, 0.1, confidence=0.94)
    assert found.stationarity.mean == pytest.approx(0.05) and found.curvature.mean == pytest.approx(-0.02 / 3)
    assert found.stationarity.bound == pytest.approx(upper_bound([0.04, 0.05, 0.06], 0.02))
    assert found.curvature.bound == pytest.approx(-upper_bound([0.02, 0.0, 0.0], 0.02))
    assert found.proved and found.runs == 3 and "Student's t" in str(found)
    strict = theory.expected_point(runs, 0.055, 0.1, confidence=0.94)
    assert not strict.proved and not strict.stationarity.proved and strict.feasibility.proved
    assert "stationarity: mean 0.05, at most" in str(strict) and "not proved" in str(strict)
    level = theory.expected_point([(0.0, 0.0, -0.05)] * 2, 0.1, 0.01)
    assert not level.curvature.proved  # no spread at all, and below what is asked for
    assert theory.expected_point([(0.0, 0.0, -0.05)] * 2, 0.1, 0.05).proved


def test_false_claims_are_as_rare_as_is_said():
    """An algorithm whose mean stationarity is the tolerance: a claim is false, and is made with probability 1/60 at 95 %.

    20,000 experiments of 8 normal runs: the number of claims is binomial; it leaves mean +- 5 standard deviations with probability
    below 1e-6. For the bounds that hold for every law, values at 0 or at the largest possible: claims are at most as many.
    """
    rng, share, trials = np.random.default_rng(3), 0.05 / 3, 20_000
    values = 1 + 0.3 * rng.normal(size=(trials, 8))
    quantile = float(stats.t.ppf(1 - share, 7))  # `upper_bound` for all experiments at once
    bounds = values.mean(axis=1) + quantile * np.sqrt(values.var(axis=1, ddof=1) / 8)
    assert bounds[0] == pytest.approx(upper_bound(list(values[0]), share))
    claims, expected = int(np.sum(bounds <= 1)), share * trials
    assert abs(claims - expected) <= 5 * math.sqrt(expected)
    rare = np.where(rng.random((2_000, 40)) < 0.1, 10.0, 0.0)  # mean 1, and often not a single one is seen
    claims = sum(upper_bound(list(row), share, 10.0) <= 1 for row in rare)
    assert claims <= 2_000 * share + 5 * math.sqrt(2_000 * share)
    student = sum(upper_bound(list(row), share) <= 1 for row in rare)
    assert student > 2_000 * share + 5 * math.sqrt(2_000 * share)  # why `largest` is there


def test_more_runs_prove_more():
    """Half of the tolerance in the mean: a few runs suffice by Student, and some hundred for every law."""
    rng = np.random.default_rng(0)
    runs = [(0.05 + 0.01 * float(s), 0.02, -0.01) for s in rng.normal(size=400)]
    assert theory.expected_point(runs[:4], 0.1, 0.1).proved
    everywhere = {n: theory.expected_point(runs[:n], 0.1, 0.1, largest=(1.0, 1.0, 1.0)).proved for n in (20, 400)}
    assert everywhere == {20: False, 400: True}


@pytest.mark.parametrize(
    ("runs", "largest"),
    [
        ([(0.1, 0.1, 0.0)], None),
        ([(0.1, 0.1)] * 3, None),
        ([(math.nan, 0.1, 0.0)] * 3, None),
        ([(-0.1, 0.1, 0.0)] * 3, None),
        ([(math.inf, 0.1, 0.0)] * 3, None),
        ([(0.1, 0.1, -math.inf)] * 3, None),
        ([(0.1, 0.1, 0.0)] * 3, (0.05, 1.0, 1.0)),
    ],
)
def test_what_it_refuses(runs, largest):
    with pytest.raises(InputError):
        theory.expected_point(runs, 0.1, 0.1, largest=largest)

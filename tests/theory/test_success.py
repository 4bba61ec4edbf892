"""Clopper-Pearson bounds on a success probability."""

import numpy as np
import pytest

from mescal.errors import InputError
from mescal.theory.success import lower_bound, runs_needed


@pytest.mark.parametrize(("probability", "runs"), [(1 / 2, 5), (5 / 8, 7), (2 / 3, 8), (0.9, 29), (0.95, 59)])
def test_runs_that_must_all_succeed(probability, runs):
    assert runs_needed(probability) == runs
    assert lower_bound(runs, runs) >= probability > lower_bound(runs - 1, runs - 1)


@pytest.mark.parametrize("runs", [1, 10, 200])
def test_bound_is_the_beta_quantile(runs):
    stats = pytest.importorskip("scipy.stats")
    for successes in {0, 1, runs // 2, runs - 1, runs}:
        for confidence in (0.5, 0.95, 0.999):
            wanted = stats.beta.ppf(1 - confidence, successes, runs - successes + 1) if successes else 0.0
            assert lower_bound(successes, runs, confidence) == pytest.approx(wanted, abs=1e-10)


def test_bound_is_below_the_truth_as_often_as_promised():
    """The true p = 0.7 lies below the bound of 25 runs in at most 5 % of cases, summed exactly over all outcomes."""
    from math import comb

    p, runs = 0.7, 25
    weights = [comb(runs, k) * p**k * (1 - p) ** (runs - k) for k in range(runs + 1)]
    missed = sum(w for k, w in enumerate(weights) if lower_bound(k, runs) > p)
    assert 0 < missed <= 0.05


def test_bound_grows_with_successes_and_pays_for_verification():
    bounds = [lower_bound(k, 30) for k in range(31)]
    assert (np.diff(bounds) > 0).all()
    assert lower_bound(20, 30, verification_error=0.05) == pytest.approx(bounds[20] - 0.05)
    assert lower_bound(1, 30, verification_error=0.5) == 0.0
    assert lower_bound(0, 30) == 0.0


@pytest.mark.parametrize("counts", [(3, 2), (-1, 5), (0, 0)])
def test_impossible_counts_are_refused(counts):
    with pytest.raises(InputError, match="runs"):
        lower_bound(*counts)

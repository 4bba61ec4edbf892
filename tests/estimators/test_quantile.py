"""The default threshold of the Neyman-Pearson classifier: all of alpha, no more, whatever the weights."""

import warnings

import numpy as np
import pytest
from scipy.special import expit

from mescal.estimators import NeymanPearsonClassifier
from mescal.estimators.thresholds import quantile_threshold, spent

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
def test_it_is_the_smallest_that_keeps_the_rate(alpha):
    rng = np.random.default_rng(0)
    scores, negatives = np.round(rng.normal(size=300), 1), np.where(rng.random(300) < 0.7, rng.integers(1, 4, 300), 0)
    share = negatives / negatives.sum()
    threshold = quantile_threshold(scores, share, alpha)
    assert spent(scores, share, threshold) <= alpha + 1e-12
    below = scores[(share > 0) & (scores < threshold)].max()  # one score lower and the rate is more than alpha
    assert spent(scores, share, np.nextafter(below, -np.inf)) > alpha
    assert np.abs(scores - threshold).min() > 0.04, "halfway between two scores"


def test_weights_are_rows_repeated():
    rng = np.random.default_rng(1)
    scores, counts = rng.normal(size=80), rng.integers(1, 4, 80)
    once = quantile_threshold(scores, counts / counts.sum(), 0.1)
    rows = np.repeat(scores, counts)
    assert once == pytest.approx(quantile_threshold(rows, np.full(len(rows), 1 / len(rows)), 0.1))


def test_the_default_spends_its_rate_and_a_threshold_that_does_not_warns(data):
    """At 2 % few rows are as likely as not, so that a threshold of 0.5 finds next to nobody."""
    negative, positive = data.y == 0, data.y == 1
    model = NeymanPearsonClassifier(0.02).fit(data.X, data.y)
    used = (model.predict(data.X[negative]) == 1).mean()
    assert 0.02 - 1 / negative.sum() < used <= 0.02
    with pytest.warns(UserWarning, match="threshold=0.5 gives a false-positive rate of .*'quantile' gives"):
        half = NeymanPearsonClassifier(0.02, threshold=0.5).fit(data.X, data.y)
    assert model.predict(data.X[positive]).mean() > half.predict(data.X[positive]).mean()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NeymanPearsonClassifier(0.02, threshold=float(expit(model.threshold_))).fit(data.X, data.y)


def test_every_group_keeps_the_rate_and_the_worst_one_spends_it(data):
    model = NeymanPearsonClassifier(0.1).fit(data.X, data.y, sensitive_features=data.groups)
    rates = {g: (model.predict(data.X[(data.groups == g) & (data.y == 0)]) == 1).mean() for g in "ab"}
    assert max(rates.values()) <= 0.1 and max(rates.values()) > 0.1 - 1 / 40
    report = model.constraint_report(data.X, data.y, sensitive_features=data.groups)
    assert report["value"].to_dict() == pytest.approx({f"false positives of {g}": rates[g] for g in "ab"})

"""The umbrella threshold: its rank, the promise, and what it says where data are too few."""

from math import comb

import numpy as np
import pytest

from mescal.errors import InputError
from mescal.estimators import NeymanPearsonClassifier, smallest_sample, umbrella_rank
from mescal.estimators.thresholds import umbrella_threshold, violation_probability


@pytest.mark.parametrize(
    ("n", "alpha", "delta"), [(59, 0.05, 0.05), (100, 0.1, 0.05), (333, 0.05, 0.1), (22, 0.1, 0.1)]
)
def test_rank_is_the_smallest_that_keeps_the_promise(n, alpha, delta):
    def tail(k):
        return sum(comb(n, j) * (1 - alpha) ** j * alpha ** (n - j) for j in range(k, n + 1))

    k = umbrella_rank(n, alpha, delta)
    assert tail(k) <= delta and (k == 1 or tail(k - 1) > delta)
    assert violation_probability(n, k, alpha) == pytest.approx(tail(k), rel=1e-10)


@pytest.mark.parametrize(("alpha", "delta", "needed"), [(0.05, 0.05, 59), (0.1, 0.1, 22), (0.01, 0.05, 299)])
def test_fewest_negatives(alpha, delta, needed):
    assert smallest_sample(alpha, delta) == needed
    assert umbrella_rank(needed, alpha, delta) == needed
    with pytest.raises(InputError, match=f"at least {needed}"):
        umbrella_rank(needed - 1, alpha, delta)


def test_promise_on_a_known_distribution():
    """Scores are uniform, so the rate above a threshold t is 1 - t exactly.

    The number of violations in 4000 samples is binomial with p = P(R_k > alpha), known exactly. The test fails where it is
    6 standard deviations off, by chance less than once in 10^8.
    """
    n, alpha, delta, repeats = 100, 0.1, 0.1, 4000
    scores = np.random.default_rng(1).random((repeats, n))
    violations = sum(1 - umbrella_threshold(row, alpha, delta) > alpha for row in scores)
    p = violation_probability(n, umbrella_rank(n, alpha, delta), alpha)
    assert p <= delta
    assert abs(violations - repeats * p) <= 6 * np.sqrt(repeats * p * (1 - p))


def test_ties_are_on_the_safe_side():
    scores = np.repeat([0.0, 1.0], 50)
    assert umbrella_threshold(scores, 0.3, 0.1) == 1.0  # nothing lies strictly above it


def test_estimator_holds_out_negatives_and_predicts_above_their_order_statistic(data):
    model = NeymanPearsonClassifier(0.1, threshold="umbrella", delta=0.1, random_state=3).fit(data.X, data.y)
    negatives = int((data.y == 0).sum())
    assert model.calibration_negatives_ == negatives // 2
    raw = model.decision_function(data.X) + model.threshold_
    assert np.isclose(raw[data.y == 0], model.threshold_).any()  # it is the score of a negative
    again = NeymanPearsonClassifier(0.1, threshold="umbrella", delta=0.1, random_state=3).fit(data.X, data.y)
    assert again.threshold_ == model.threshold_
    assert np.array_equal(model.predict(data.X) == 1, model.decision_function(data.X) > 0)


@pytest.mark.parametrize(
    ("settings", "weights", "expected"),
    [
        ({"max_false_positive_rate": 0.001}, None, "at least 2995 held out"),
        ({"calibration_size": 0.01}, None, "raise calibration_size"),
        ({}, np.linspace(1, 2, 400), "unequal sample weights"),
        ({"delta": 0.0}, None, "delta=0.0"),
        ({"calibration_size": 1.5}, None, "calibration_size=1.5"),
    ],
)
def test_what_the_umbrella_cannot_promise(data, settings, weights, expected):
    with pytest.raises(InputError, match=expected):
        NeymanPearsonClassifier(threshold="umbrella", **settings).fit(data.X, data.y, weights)


def test_every_group_has_its_share_of_delta(data):
    """Two groups: delta / 2 each, on negatives of their own, and the larger of two thresholds."""
    model = NeymanPearsonClassifier(0.2, threshold="umbrella", delta=0.1, random_state=0)
    model.fit(data.X, data.y, sensitive_features=data.groups)
    assert model.constraints_.keys() == {"false positives of a", "false positives of b"}
    raw = model.decision_function(data.X) + model.threshold_
    sizes, above = [], []
    for group in ("a", "b"):
        negatives = raw[(data.groups == group) & (data.y == 0)]
        sizes.append(len(negatives) // 2)
        above.append((negatives > model.threshold_).mean())
    assert model.calibration_negatives_ == sum(sizes)
    alone = [umbrella_rank(n, 0.2, 0.1) for n in sizes]
    assert all(umbrella_rank(n, 0.2, 0.05) >= rank for n, rank in zip(sizes, alone, strict=True))
    assert max(above) <= 0.2
    with pytest.raises(InputError, match=r"in the group 'a'.*(.|\n)*at least 74 held out.*in all groups at once"):
        model.set_params(max_false_positive_rate=0.04).fit(data.X, data.y, sensitive_features=data.groups)


def test_promise_in_all_groups_at_once():
    """Two groups of uniform scores, one moved up: the rate above t is 1 - t in one and 1.2 - t in the other.

    All 2000 samples are independent, and by the union bound fewer than delta break a promise: the count is binomial with at
    most that probability, and six standard deviations above it is exceeded by chance less than once in 10^8.
    """
    alpha, delta, repeats = 0.1, 0.1, 2000
    scores = np.random.default_rng(2).random((repeats, 2, 120)) + np.array([0.0, 0.2])[:, None]
    broken = 0
    for one in scores:
        threshold = max(umbrella_threshold(group, alpha, delta / 2) for group in one)
        broken += max(1 - threshold, 1.2 - threshold) > alpha
    assert broken <= repeats * delta + 6 * np.sqrt(repeats * delta * (1 - delta))

"""The algebra of rates: values, signs, text, and what it refuses."""

import copy
import pickle

import numpy as np
import pytest

from mescal.errors import InputError, InputTypeError
from mescal.estimators import ConstrainedClassifier, coverage, error, rate
from mescal.estimators.groups import check_groups
from mescal.estimators.rates import Rates, Subset, check_constraints
from mescal.estimators.statement import RATES, Labelled

VALUES = {Subset(): 0.5, Subset("negatives"): 0.1, Subset("all", "b"): 0.3}


@pytest.mark.parametrize(
    ("combination", "expected"),
    [
        (rate(), 0.5),
        (rate(of="negatives") + 0.2, 0.3),
        (0.2 - rate(of="negatives"), 0.1),
        (np.float64(0.8) * rate() - rate(group="b"), 0.1),
        (2 * (rate() - 0.25), 0.5),
        (-rate() + rate(), 0.0),
        (rate() / 2, 0.25),
    ],
)
def test_combinations_have_the_values_that_they_say(combination, expected):
    assert combination.value(VALUES.__getitem__) == pytest.approx(expected, abs=1e-15)


def test_constraints_are_at_most_zero_where_they_are_met():
    upper, lower = rate(of="negatives") <= 0.05, rate(group="b") >= 0.8 * rate()
    assert upper.body.value(VALUES.__getitem__) == pytest.approx(0.05)
    assert lower.body.value(VALUES.__getitem__) == pytest.approx(0.1)
    assert str(upper) == "rate(of='negatives') <= 0.05"
    assert str(lower) == "rate(group='b') >= 0.8 * rate()"
    assert str(rate(group="b") >= rate() - 0.05) == "rate(group='b') >= rate() - 0.05"


def test_constraints_are_values():
    constraint = rate(of="positives", group="b") >= rate(of="positives") - 0.05
    assert constraint == copy.deepcopy(constraint) == pickle.loads(pickle.dumps(constraint))
    assert constraint != (rate() <= 0.1)
    assert (error() <= 1.5).right.constant == 1.5 and (2 * rate() <= 1.5).right.constant == 1.5
    assert len({constraint, copy.deepcopy(constraint)}) == 1


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: rate(of="negative"), InputError),
        (lambda: 0.1 <= rate() <= 0.2, InputTypeError),
        (lambda: rate() <= np.nan, InputError),
        (lambda: rate(of="negatives") <= 5, InputError),
        (lambda: coverage() >= 90, InputError),
        (lambda: rate() / 0, InputError),
        (lambda: rate() <= "0.1", TypeError),
        (lambda: ConstrainedClassifier([rate() <= 0.1]).fit(np.eye(4), [0, 1, 0, 1]), InputTypeError),
        (lambda: ConstrainedClassifier({"a": rate()}).fit(np.eye(4), [0, 1, 0, 1]), InputTypeError),
    ],
)
def test_what_is_no_constraint_is_refused(make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: rate(group="a") / rate() >= 0.8, "rate(group='a') >= 0.8 * rate()"),
        (lambda: rate() * rate(), "bound each by itself"),
        (lambda: abs(rate(group="a") - rate()) <= 0.1, "from both sides"),
        (lambda: check_constraints({"same": rate() == 0.3}), "from both sides"),
    ],
)
def test_what_people_write_first_is_refused_with_advice(make, advice):
    with pytest.raises(InputTypeError) as raised:
        make()
    assert advice in str(raised.value)


def test_the_margin_is_that_of_rows_drawn_anew():
    """1.96 deviations of 4000 resamples, which know them to 1.1 per cent; of few rows that agree, what two more of a kind give."""
    rng = np.random.default_rng(0)
    groups, raw = np.where(rng.random(400) < 0.3, "b", "a").astype(object), rng.normal(size=400)
    labels = (rng.random(400) < 0.6).astype(int)
    body = (rate(of="positives", group="b") - 0.8 * rate(of="positives") + 0.1 * rate(group="a")).terms

    def value(rows):
        data = Labelled(raw[rows, None], labels[rows], np.ones(len(rows)), check_groups(groups[rows], len(rows)))
        return Rates(body), data, raw[rows]

    told = RATES.margin(*value(np.arange(400)))
    found = []
    for _ in range(4000):
        combined, data, scores = value(rng.integers(400, size=400))
        found.append(combined.value(lambda subset, data=data, scores=scores: RATES.hard(subset, data, scores)))
    assert told == pytest.approx(1.96 * np.std(found), rel=0.06)
    five = Labelled(np.zeros((5, 1)), np.zeros(5, int), np.ones(5))
    assert RATES.margin(rate(), five, -np.ones(5)) == pytest.approx(2 / 9 + 1.96 * np.sqrt(2 / 9 * 7 / 9 / 9))

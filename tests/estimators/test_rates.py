"""The algebra of rates: values, signs, text, and what it refuses."""

import copy
import pickle

import numpy as np
import pytest

from mescal.errors import InputError, InputTypeError
from mescal.estimators import ConstrainedClassifier, coverage, error, rate
from mescal.estimators.rates import Subset

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
        (lambda: rate() * rate(), TypeError),
        (lambda: rate() / 0, InputError),
        (lambda: rate() / rate(), TypeError),
        (lambda: rate() <= "0.1", TypeError),
        (lambda: ConstrainedClassifier([rate() <= 0.1]).fit(np.eye(4), [0, 1, 0, 1]), InputTypeError),
        (lambda: ConstrainedClassifier({"a": rate()}).fit(np.eye(4), [0, 1, 0, 1]), InputTypeError),
    ],
)
def test_what_is_no_constraint_is_refused(make, error):
    with pytest.raises(error):
        make()

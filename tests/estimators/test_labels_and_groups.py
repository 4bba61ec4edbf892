"""Which class is positive, groups in several columns, and what a fit says of its constraints apart from its certificate."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from mescal.errors import InputError
from mescal.estimators import ConstrainedClassifier, FairClassifier, NeymanPearsonClassifier, rate

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def words(data) -> np.ndarray:
    """Labels of which the one that matters sorts first."""
    return np.where(data.y == 1, "fraud", "ok")


def test_the_positive_class_is_the_one_that_is_named(data, words):
    alarms = NeymanPearsonClassifier(0.1, pos_label="fraud").fit(data.X, words)
    numbers = NeymanPearsonClassifier(0.1).fit(data.X, data.y)
    assert alarms.pos_label_ == "fraud" and list(alarms.classes_) == ["fraud", "ok"]
    np.testing.assert_array_equal(alarms.predict(data.X) == "fraud", numbers.predict(data.X) == 1)
    np.testing.assert_allclose(alarms.predict_proba(data.X)[:, 0], numbers.predict_proba(data.X)[:, 1], atol=1e-12)
    np.testing.assert_allclose(alarms.decision_function(data.X), -numbers.decision_function(data.X), atol=1e-9)
    np.testing.assert_allclose(alarms.coef_, -numbers.coef_, atol=1e-9)
    assert (alarms.predict(data.X[words == "ok"]) == "fraud").mean() <= 0.1
    report = alarms.constraint_report(data.X, words)
    assert report.loc["false positives", "smooth_value"] == pytest.approx(0.1, abs=1e-9)
    other = NeymanPearsonClassifier(0.1).fit(data.X, words)
    assert other.pos_label_ == "ok" and (other.predict(data.X[words == "fraud"]) == "ok").mean() <= 0.1


def test_a_positive_class_that_is_none_is_refused(data, words):
    with pytest.raises(InputError, match="pos_label='spam'"):
        ConstrainedClassifier(pos_label="spam").fit(data.X, words)


def test_groups_in_several_columns_are_combinations(data):
    ages = np.random.default_rng(0).choice(["old", "young"], size=400)
    people = pd.DataFrame({"kind": data.groups, "age": ages})
    joined = np.asarray([f"{kind}, {age}" for kind, age in zip(data.groups, ages, strict=True)])
    fair = FairClassifier(min_rate_ratio=0.9).fit(data.X, data.y, sensitive_features=people)
    peer = FairClassifier(min_rate_ratio=0.9).fit(data.X, data.y, sensitive_features=joined)
    assert fair.groups_.tolist() == [(kind, age) for kind in "ab" for age in ("old", "young")]
    assert fair.constraints_.keys() == peer.constraints_.keys() == {f"group {name}" for name in set(joined)}
    np.testing.assert_allclose(fair.coef_, peer.coef_, atol=1e-9)
    report = fair.constraint_report(data.X, data.y, sensitive_features=people)
    assert (report["smooth_value"] >= report["smooth_bound"] - 1e-9).all()


def test_none_stands_for_any_value_of_a_column(data):
    ages = np.random.default_rng(0).choice(["old", "young"], size=400)
    people = np.stack([data.groups, ages.astype(object)], axis=1)
    margin = FairClassifier(("b", None), min_rate_ratio=0.9).fit(data.X, data.y, sensitive_features=people)
    peer = FairClassifier("b", min_rate_ratio=0.9).fit(data.X, data.y, sensitive_features=data.groups)
    np.testing.assert_allclose(margin.coef_, peer.coef_, atol=1e-9)
    assert margin.constraints_.keys() == {"group b, any"}
    with pytest.raises(InputError, match=r"over no rows(.|\n)*\('a', 'old'\)"):
        FairClassifier("b").fit(data.X, data.y, sensitive_features=people)


def test_feasible_apart_from_certified(data):
    """A loose bound is met where stationarity is asked for below rounding; a tight one is not, after one outer iteration."""
    easy, hard = {"alarms": rate(of="negatives") <= 0.6}, {"alarms": rate(of="negatives") <= 0.1}
    with pytest.warns(ConvergenceWarning, match="not certified.*stationarity.*constraints are met to 1e-16"):
        loose = ConstrainedClassifier(easy, tol=1e-16, max_outer=2).fit(data.X, data.y)
    assert loose.feasible_ and not loose.certified_
    with pytest.warns(ConvergenceWarning, match="constraints are not met: 'alarms' at"):
        tight = ConstrainedClassifier(hard, max_outer=1).fit(data.X, data.y)
    assert not tight.feasible_ and not tight.certified_
    whole = ConstrainedClassifier(hard).fit(data.X, data.y)
    assert whole.feasible_ and whole.certified_

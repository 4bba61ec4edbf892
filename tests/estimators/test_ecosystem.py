"""With pandas, pipelines, searches, metadata routing, clone and pickle; and without scikit-learn."""

import pickle
import subprocess
import sys

import equinox
import jax
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mescal.estimators import ConstrainedClassifier, FairClassifier, NeymanPearsonClassifier, rate


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def frame(data):
    return pd.DataFrame(data.X, columns=["a", "b", "c", "d"]), pd.Series(np.where(data.y == 1, "yes", "no"))


def test_pandas_in_and_out(data):
    X, y = frame(data)
    model = FairClassifier("b").fit(X, y, sensitive_features=pd.Series(data.groups, dtype="category"))
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"] and list(model.classes_) == ["no", "yes"]
    assert set(model.predict(X)) == {"no", "yes"}
    np.testing.assert_array_equal(model.predict(X) == "yes", model.predict_proba(X)[:, 1] > 0.5)
    report = model.constraint_report(X, y, sensitive_features=data.groups)
    assert isinstance(report, pd.DataFrame) and list(report.index) == ["group b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={"a": "z"}))


def test_pipeline_and_grid_search(data):
    X, y = frame(data)
    pipeline = make_pipeline(StandardScaler(), NeymanPearsonClassifier())
    asked = [0.05, 0.2]
    search = GridSearchCV(pipeline, {"neymanpearsonclassifier__max_false_positive_rate": asked}, cv=2).fit(X, y)
    assert search.best_params_["neymanpearsonclassifier__max_false_positive_rate"] in asked
    assert search.score(X, y) > 0.6


def test_groups_travel_by_metadata_routing(data, routing):
    X, y, groups = data
    fair = FairClassifier("b", min_rate_ratio=0.9).set_fit_request(sensitive_features=True)
    pipeline = make_pipeline(StandardScaler(), fair).fit(X, y, sensitive_features=groups)
    direct = FairClassifier("b", min_rate_ratio=0.9).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(pipeline.decision_function(X), direct.decision_function(X), atol=1e-9)
    search = GridSearchCV(fair, {"min_rate_ratio": [0.5, 0.9]}, cv=2).fit(X, y, sensitive_features=groups)
    assert search.best_estimator_.constraints_.keys() == {"group b"}
    scores = cross_val_predict(fair, X, y, cv=2, method="decision_function", params={"sensitive_features": groups})
    assert scores.shape == (400,)


def test_clone_pickle_and_repr(data):
    model = ConstrainedClassifier({"alarms": rate(of="negatives") <= 0.1}, random_state=0)
    copy = clone(model)
    assert copy.get_params() == model.get_params() and "{'alarms': rate(of='negatives') <= 0.1}" in repr(model)
    model.fit(data.X, data.y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.decision_function(data.X), model.decision_function(data.X))
    assert loaded.certificate_.to_json() == model.certificate_.to_json()


def hidden(key, width):
    return equinox.nn.MLP(width, "scalar", 2, 1, activation=jax.nn.softplus, key=key)


@pytest.mark.slow
def test_a_model_that_pickle_knows_nothing_of(data):
    """equinox's MLP holds a function that cannot be pickled; its numbers can, and `model` makes the rest."""
    model = NeymanPearsonClassifier(0.2, model=hidden, ridge=1e-2, random_state=0).fit(data.X, data.y)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(model.model_)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.decision_function(data.X), model.decision_function(data.X))
    np.testing.assert_array_equal(loaded.result_.x.layers[0].weight, model.result_.x.layers[0].weight)


def test_certificates_have_the_names_of_the_constraints(data):
    bounds = {"alarms": rate(of="negatives") <= 0.1, "hits": rate(of="positives") >= 0.3}
    model = ConstrainedClassifier(bounds).fit(data.X, data.y)
    assert list(model.certificate_.constraints) == list(model.certificate_.multipliers) == ["alarms", "hits"]
    for name, value in model.multipliers_.items():
        assert float(model.certificate_.multipliers[name]) == pytest.approx(value)
    assert "alarms" in str(model.certificate_.to_json())


def test_both_sides_are_shown_as_they_were_stated(data):
    """Rates on both sides, of the other class, and a number beside a rate: in the result and in the table, at its point."""
    bounds = {
        "reach": rate(group="b") >= 0.8 * rate(),
        "no": rate(predicted=0) >= 0.3,
        "room": rate() - 0.1 <= 0.5,
    }
    model = ConstrainedClassifier(bounds).fit(data.X, data.y, sensitive_features=data.groups)
    report = model.constraint_report(data.X, data.y, sensitive_features=data.groups)
    assert list(report["constraint"]) == list(map(str, bounds.values()))
    p = model.predict_proba(data.X)[:, 1]
    sides = {
        "reach": (p[data.groups == "b"].mean(), 0.8 * p.mean()),
        "no": (1 - p.mean(), 0.3),
        "room": (p.mean() - 0.1, 0.5),
    }
    for row, _ in model.result_.held:  # the run ends at 1e-6, the finish goes on from there
        assert (row.value, row.bound) == pytest.approx(sides[row.name], abs=1e-4)
    for name, (left, right) in sides.items():
        assert tuple(report.loc[name, ["smooth_value", "smooth_bound"]]) == pytest.approx((left, right), abs=1e-9)


def test_the_rest_works_without_scikit_learn():
    code = """
import sys
sys.modules["sklearn"] = None
import mescal
try:
    mescal.estimators
except ImportError as error:
    assert "pip install 'mescal-opt[sklearn]'" in str(error) and "Expected:" in str(error), error
else:
    raise SystemExit("imported")
try:
    mescal.nothing
except AttributeError:
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

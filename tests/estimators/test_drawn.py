"""Drawn rows: regressors and more than two classes find as good a model as on all rows, a group of one in twenty among them."""

import numpy as np
import pytest
from sklearn.base import clone

from mescal.estimators import ConstrainedClassifier, ConstrainedRegressor, coverage, error, rate

ESTIMATORS = {
    "classes": ConstrainedClassifier({"taken": rate(true=0, predicted=1, group="b") <= 0.1}),
    "error": ConstrainedRegressor({"b": error(group="b") <= 1.5 * error()}),
    "coverage": ConstrainedRegressor({"b": coverage(group="b") >= 0.9}, quantile=0.9),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_as_good_a_model_is_found(name):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(10_000, 5)), rng.choice(["a", "b"], 10_000, p=[0.95, 0.05])
    target = X[:, 0] + (1 + (groups == "b")) * rng.normal(size=10_000)
    if name == "classes":
        target = (X[:, :3] + rng.gumbel(size=(10_000, 3))).argmax(axis=1)
    whole, drawn = (clone(ESTIMATORS[name]).set_params(solver=solver) for solver in ("auto", "spider"))
    for model in (whole, drawn):
        model.fit(X, target, sensitive_features=groups)
        assert model.certified_ and model.feasible_
    assert whole.result_.solver == "newton-cg" and drawn.result_.solver == "spider"
    assert all(multiplier > 0.1 for multiplier in whole.multipliers_.values())
    assert drawn.result_.objective == pytest.approx(whole.result_.objective, rel=1e-3)
    if name != "coverage":  # which is not convex, and has more than one certified minimiser here
        np.testing.assert_allclose(drawn.coef_, whole.coef_, atol=1e-6)  # of rows in float32

"""The regressor: least squares and quantiles, errors and coverage bounded in groups, in the units of the user."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import QuantileRegressor, Ridge

from mescal.errors import InputError, InputTypeError
from mescal.estimators import ConstrainedClassifier, ConstrainedRegressor, coverage, error, rate
from mescal.estimators.buckets import Scaling

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def target(data) -> np.ndarray:
    """Of a small group another slope and more noise, so that a line for everybody serves it badly."""
    rng = np.random.default_rng(5)
    b = data.groups == "b"
    return 50 + 10 * (
        data.X[:, 0] + np.where(b, -0.5, 1.0) * data.X[:, 1] + np.where(b, 1.0, 0.5) * rng.normal(size=400)
    )


def shares(model, X, y) -> np.ndarray:
    return (y - model.predict(X)) ** 2 / np.var(y)


def test_without_constraints_it_is_ridge_regression(data, target):
    X = Scaling.of(data.X, np.ones(400))(data.X)
    peer = Ridge(alpha=400 * 1e-2).fit(X, target)
    model = ConstrainedRegressor(ridge=1e-2).fit(data.X, target)
    np.testing.assert_allclose(model.predict(data.X), peer.predict(X), rtol=1e-9)
    np.testing.assert_allclose(data.X @ model.coef_ + model.intercept_, model.predict(data.X), rtol=1e-12)
    assert model.certified_ and model.feasible_ and model.score(data.X, target) > 0.4


def test_the_error_of_a_group_is_bounded_and_the_first_order_conditions_hold(data, target):
    """Against dense numpy: grad of the loss + lam grad of (error of b - 1.05 error) + ridge w = 0."""
    b = data.groups == "b"
    plain = ConstrainedRegressor().fit(data.X, target)
    before = shares(plain, data.X, target)
    assert before[b].mean() > 1.2 * before.mean()
    bound = {"b": error(group="b") <= 1.05 * error()}
    model = ConstrainedRegressor(bound).fit(data.X, target, sensitive_features=data.groups)
    after = shares(model, data.X, target)
    assert after[b].mean() == pytest.approx(1.05 * after.mean(), abs=1e-9) and after.mean() > before.mean()
    X, y = Scaling.of(data.X, np.ones(400))(data.X), (target - target.mean()) / target.std()
    over, lam = (model.predict(data.X) - target.mean()) / target.std() - y, model.multipliers_["b"]
    pull = over / 400 + lam * 2 * over * (b / b.sum() - 1.05 / 400)
    w = model.coef_ * data.X.std(axis=0) / target.std()
    assert lam > 0.01 and np.abs(pull @ X + 1e-4 * w).max() < 1e-10 and abs(pull.sum()) < 1e-10
    report = model.constraint_report(data.X, target, sensitive_features=data.groups)
    assert report.loc["b", "value"] == pytest.approx(after[b].mean())


def test_a_quantile_is_the_one_of_linear_programming_as_the_smoothing_vanishes(data, target):
    X = Scaling.of(data.X, np.ones(400))(data.X)
    peer = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X, target)
    errors = []
    for sharpness in (10.0, 100.0):
        model = ConstrainedRegressor(quantile=0.8, sharpness=sharpness, ridge=1e-8).fit(data.X, target)
        errors.append(np.abs(model.predict(data.X) - peer.predict(X)).mean() / target.std())
    assert errors[1] < 0.02 and errors[1] < errors[0] / 2


def test_coverage_in_every_group(data, target):
    """At q = 0.8 the line covers 80 per cent of all; asked for 0.8 in the noisier group, it covers them there."""
    bounds = {f"of {g}": coverage(group=g) >= 0.8 for g in "ab"}
    plain = ConstrainedRegressor(quantile=0.8).fit(data.X, target)
    model = ConstrainedRegressor(bounds, quantile=0.8).fit(data.X, target, sensitive_features=data.groups)
    held = {g: (target <= model.predict(data.X))[data.groups == g].mean() for g in "ab"}
    before = {g: (target <= plain.predict(data.X))[data.groups == g].mean() for g in "ab"}
    assert min(before.values()) < 0.78
    report = model.constraint_report(data.X, target, sensitive_features=data.groups)
    assert model.certified_ and (report["smooth_value"] >= 0.8 - 1e-8).all()
    assert report["value"].to_dict() == pytest.approx({f"of {g}": held[g] for g in "ab"})
    assert min(held.values()) > min(before.values())


def test_units_of_the_target_and_weights(data, target):
    bound = {"b": error(group="b") <= 1.1 * error()}
    model = ConstrainedRegressor(bound).fit(data.X, target, sensitive_features=data.groups)
    small = ConstrainedRegressor(bound).fit(data.X, 1e-6 * target, sensitive_features=data.groups)
    np.testing.assert_allclose(1e6 * small.predict(data.X), model.predict(data.X), rtol=1e-8)
    counts = np.random.default_rng(0).choice(3, size=400)
    rows = np.repeat(np.arange(400), counts)
    weighted = ConstrainedRegressor(bound).fit(data.X, target, counts, sensitive_features=data.groups)
    repeated = ConstrainedRegressor(bound).fit(data.X[rows], target[rows], sensitive_features=data.groups[rows])
    np.testing.assert_allclose(weighted.predict(data.X), repeated.predict(data.X), rtol=1e-9)


def test_what_is_refused(data, target):
    with pytest.raises(InputError, match=r"'r' is about rate\(\)"):
        ConstrainedRegressor({"r": rate() <= 0.5}).fit(data.X, target)
    with pytest.raises(InputError, match=r"'e' is about error\(\)"):
        ConstrainedClassifier({"e": error() <= 0.5}).fit(data.X, data.y)
    with pytest.raises(InputTypeError, match="a dict with, by name"):
        ConstrainedRegressor([error() <= 0.5]).fit(data.X, target)
    with pytest.raises(InputError, match=r"quantile=1\.5"):
        ConstrainedRegressor(quantile=1.5).fit(data.X, target)
    with pytest.raises(InputError, match="no model that meets the constraints"):
        ConstrainedRegressor({"e": error() <= 0.01}).fit(data.X, target)


def test_frames_in(data, target):
    frame = pd.DataFrame(data.X, columns=list("abcd"))
    model = ConstrainedRegressor().fit(frame, pd.Series(target))
    assert list(model.feature_names_in_) == list("abcd") and model.predict(frame).shape == (400,)

"""More than two classes: rates of every class, against numpy and scikit-learn's multinomial regression."""

import pickle

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from mescal.errors import InputError
from mescal.estimators import ConstrainedClassifier, FairClassifier, NeymanPearsonClassifier, rate
from mescal.estimators.buckets import Scaling

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def kinds(data) -> np.ndarray:
    """Three classes that overlap; "cat" is rarer in group "b"."""
    rng = np.random.default_rng(3)
    scores = np.stack([data.X[:, 0] - (data.groups == "b"), data.X[:, 1], 0.5 * data.X[:, 2]], axis=1)
    return np.array(["cat", "dog", "emu"])[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]


def test_without_constraints_it_is_multinomial_regression(data, kinds):
    """Against scikit-learn's, on which a constant added to all numbers of a row makes no difference, either."""
    X = Scaling.of(data.X, np.ones(400))(data.X)
    peer = LogisticRegression(C=1 / (400 * 1e-2), tol=1e-12, max_iter=10_000).fit(X, kinds)
    model = ConstrainedClassifier(ridge=1e-2).fit(data.X, kinds)
    np.testing.assert_allclose(model.predict_proba(data.X), peer.predict_proba(X), atol=1e-6)
    assert model.coef_.shape == (3, 4) and model.certified_ and model.certificate_.passes(1e-9)
    np.testing.assert_allclose(data.X @ model.coef_.T + model.intercept_, model.decision_function(data.X), rtol=1e-12)


def test_a_confusion_is_bounded_and_the_first_order_conditions_hold(data, kinds):
    """Cats that are taken for dogs; the conditions in dense numpy: sum of the pulls on every class's plane and its ridge is 0."""
    cats = kinds == "cat"
    plain = ConstrainedClassifier().fit(data.X, kinds)
    assert plain.predict_proba(data.X)[cats, 1].mean() > 0.15
    model = ConstrainedClassifier({"cats as dogs": rate(true="cat", predicted="dog") <= 0.12}).fit(data.X, kinds)
    p, lam = model.predict_proba(data.X), model.multipliers_["cats as dogs"]
    assert p[cats, 1].mean() == pytest.approx(0.12, abs=1e-9) and lam > 0
    own = (kinds[:, None] == model.classes_).astype(float)
    dog = np.array([0.0, 1.0, 0.0])
    pull = (p - own) / 400 + lam * (cats / cats.sum())[:, None] * p[:, [1]] * (dog - p)
    X = Scaling.of(data.X, np.ones(400))(data.X)
    assert np.abs(pull.T @ X + 1e-4 * model.coef_ * data.X.std(axis=0)).max() < 1e-11
    assert np.abs(pull.sum(axis=0)).max() < 1e-11
    report = model.constraint_report(data.X, kinds).loc["cats as dogs"]
    assert report["value"] == pytest.approx((model.predict(data.X)[cats] == "dog").mean())
    assert report["smooth_value"] == pytest.approx(0.12, abs=1e-9)


def test_every_class_reaches_every_group(data, kinds):
    fair = FairClassifier(min_rate_ratio=0.9, sharpness=1.0).fit(data.X, kinds, sensitive_features=data.groups)
    assert fair.constraints_.keys() == {f"group {g}, {kind}" for g in "ab" for kind in ("cat", "dog", "emu")}
    p, b = softmax(fair.decision_function(data.X), axis=1), data.groups == "b"
    for members in (b, ~b):
        assert (p[members].mean(axis=0) >= 0.9 * p.mean(axis=0) - 1e-9).all()
    assert fair.certified_ and fair.multipliers_["group b, cat"] > 0
    one = FairClassifier(min_rate_ratio=0.9, pos_label="cat").fit(data.X, kinds, sensitive_features=data.groups)
    assert one.constraints_.keys() == {"group a", "group b"}


def test_of_two_classes_either_can_be_counted(data):
    words = np.where(data.y == 1, "yes", "no")
    told = {"hits": rate(true="yes", predicted="yes") >= 0.8, "quiet": rate(predicted="no", true="no") >= 0.6}
    plain = {"hits": rate(of="positives") >= 0.8, "quiet": 1 - rate(of="negatives") >= 0.6}
    ours, peer = (ConstrainedClassifier(each).fit(data.X, words) for each in (told, plain))
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-9)


def test_what_is_refused(data, kinds):
    with pytest.raises(InputError, match=r"Only binary(.|\n)*'cat', 'dog', 'emu'(.|\n)*pos_label"):
        ConstrainedClassifier({"x": rate() <= 0.5}).fit(data.X, kinds)
    with pytest.raises(InputError, match="a rate of the class 'cow'"):
        ConstrainedClassifier({"x": rate(predicted="cow") <= 0.5}).fit(data.X, kinds)
    with pytest.raises(InputError, match=r"threshold=0\.4 with 3 classes"):
        ConstrainedClassifier(threshold=0.4).fit(data.X, kinds)
    with pytest.raises(InputError, match="OneVsRestClassifier"):
        NeymanPearsonClassifier().fit(data.X, kinds)
    with pytest.raises(InputError, match="3 numbers, one per class"):
        ConstrainedClassifier(model=lambda key, d: eqx.nn.MLP(d, "scalar", 2, 1, key=key)).fit(data.X, kinds)


def three(key, width):
    return eqx.nn.MLP(width, 3, 3, 1, activation=jax.nn.softplus, key=key)


@pytest.mark.slow
def test_a_network_with_a_number_per_class(data, kinds):
    bound = {"cats as dogs": rate(true="cat", predicted="dog") <= 0.12}
    model = ConstrainedClassifier(bound, model=three, ridge=1e-2, random_state=0).fit(data.X, kinds)
    assert model.feasible_ and model.predict_proba(data.X).shape == (400, 3)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_proba(data.X), model.predict_proba(data.X))

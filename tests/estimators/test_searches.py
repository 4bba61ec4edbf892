"""Searches: nothing compiled per fit, little time beside the solves, and Ctrl-C ends them."""

import os
import signal
import time

import equinox as eqx
import jax
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from mescal import minimize
from mescal.estimators import NeymanPearsonClassifier
from mescal.testing import count_compilations


def two_hidden(key, width):
    return eqx.nn.MLP(width, "scalar", 2, 1, activation=jax.nn.softplus, key=key)


@pytest.mark.parametrize("model", [None, two_hidden], ids=["linear", "network"])
def test_a_search_compiles_nothing_after_its_first_fit(data, model):
    made = NeymanPearsonClassifier(0.1, model=model, ridge=1e-2, random_state=0)
    made.fit(data.X[:267], data.y[:267]).predict(data.X[:133])
    with count_compilations() as compilations:
        GridSearchCV(made, {"max_false_positive_rate": [0.1, 0.15], "ridge": [1e-2, 3e-2]}, cv=3).fit(data.X, data.y)
    assert compilations.programs == []


def test_a_search_takes_little_beside_its_solves(data, monkeypatch):
    """Twenty fits: the search as a whole takes at most one and a half times what `minimize` reports for its runs."""
    solves = []
    original = NeymanPearsonClassifier.fit

    def counted(self, X, y):
        model = original(self, X, y)
        solves.append(model.result_.seconds.total)
        return model

    monkeypatch.setattr(NeymanPearsonClassifier, "fit", counted)
    grid = {"max_false_positive_rate": [0.05, 0.1, 0.2, 0.3]}
    GridSearchCV(NeymanPearsonClassifier(), grid, cv=2, refit=False).fit(data.X, data.y)
    solves.clear()
    started = time.perf_counter()
    GridSearchCV(NeymanPearsonClassifier(), grid, cv=5, refit=False).fit(data.X, data.y)
    spent = time.perf_counter() - started
    assert len(solves) == 20 and spent <= 1.5 * sum(solves)


def test_an_interruption_ends_the_search_and_leaves_no_fitted_model(data, monkeypatch):
    """Ctrl-C while the second fit runs."""
    runs = []

    def press(row):
        if row.outer == 0:
            os.kill(os.getpid(), signal.SIGINT)

    def interrupted(problem, start, **settings):
        runs.append(problem)
        second = len(runs) == 2
        return minimize(problem, start, callback=lambda row: press(row) if second else None, **settings)

    monkeypatch.setattr("mescal.estimators.fit.minimize", interrupted)
    search = GridSearchCV(NeymanPearsonClassifier(), {"ridge": [1e-2, 3e-2]}, cv=3)
    with pytest.raises(KeyboardInterrupt):
        search.fit(data.X, data.y)
    assert len(runs) == 2 and not hasattr(search, "best_estimator_")
    runs.clear()
    model = NeymanPearsonClassifier().fit(data.X, data.y)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data.X, data.y)
    with pytest.raises(NotFittedError):
        model.predict(data.X)

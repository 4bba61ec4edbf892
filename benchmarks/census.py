"""The classifiers on 32,000 people in ten groups from 30 to 20,000: certified or not, seconds, and ratios on people not seen.

The population is drawn (`_census.py`), another one per seed, twice as large: half of every group is fitted, the other half
judges. Ratios of at least 0.8 between the rate of positive predictions of every group and that of everybody (parity), or
between rates among those who have the label (opportunity). `worst` is the smallest ratio of any group on test people, where
the smallest groups have 30 people and few labels; `worst of large` that of groups of at least 300. `first` is the fit that
compiles, `again` the median of the others. `+-` is the half-width of the 95 per cent interval of a mean by Student's t over
populations.
"""

import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from mescal.estimators import ConstrainedClassifier, FairClassifier, rate
from mescal.estimators.buckets import Scaling

from ._census import Census, census
from ._measure import Report, clock
from ._rivals import Predict, equal_opportunity, exponentiated_gradient, unconstrained
from .estimators import half_width

TABLE = "fits on 32,000 people, judged on as many others; means over populations"
RIDGE, BOUND, LARGE = 1e-4, 0.8, 300
SHARP = 4.0  # the default of FairClassifier, for both


def parity(X: np.ndarray, y: np.ndarray, groups: np.ndarray, bound: float, ridge: float) -> Any:
    """Ours, with rates of all."""
    return FairClassifier(min_rate_ratio=bound, ridge=ridge, sharpness=SHARP).fit(X, y, sensitive_features=groups)


def opportunity(X: np.ndarray, y: np.ndarray, groups: np.ndarray, bound: float, ridge: float) -> Any:
    """Ours, with rates of those who have the label, in groups where somebody has."""
    everybody = rate(of="positives")
    bounds = {str(g): rate(of="positives", group=g) >= bound * everybody for g in np.unique(groups[y == 1])}
    return ConstrainedClassifier(bounds, ridge=ridge, sharpness=SHARP).fit(X, y, sensitive_features=groups)


METHODS: dict[str, dict[str, Callable[..., Any]]] = {
    "parity": {
        "mescal Fair": parity,
        "fairlearn ExponentiatedGradient": exponentiated_gradient,
        "logistic regression": unconstrained,
    },
    "opportunity": {
        "mescal Constrained": opportunity,
        "fairlearn ExponentiatedGradient": equal_opportunity,
        "logistic regression": unconstrained,
    },
}


def halves(people: Census) -> tuple[Census, Census]:
    """Every other row of every group (rows are in random order)."""
    place = np.empty(len(people.labels), int)
    for group in np.unique(people.groups):
        held = people.groups == group
        place[held] = np.arange(held.sum())
    first = place % 2 == 0
    one, other = (Census(*(part[held] for part in people)) for held in (first, ~first))
    return one, other


def ratios(kind: str, predicted: np.ndarray, people: Census) -> dict[str, float]:
    """Every group's rate over everybody's."""
    counted = np.ones(len(predicted), bool) if kind == "parity" else people.labels == 1
    overall = predicted[counted].mean()
    rows = {g: counted & (people.groups == g) for g in np.unique(people.groups)}
    return {g: float(predicted[held].mean() / overall) for g, held in rows.items() if held.any()}


def compare(report: Report, kind: str, method: str, train: Callable[..., Any], populations: int, share: float):
    """One method over all populations, as a row of the table."""
    seconds, certified, found = [], [], []
    for seed in range(populations):
        people, others = halves(census(seed, 2 * share))
        scaling = Scaling.of(people.features, np.ones(len(people.labels)))
        X, X_test = scaling(people.features), scaling(others.features)
        started = clock()
        model = train(X, people.labels, people.groups, BOUND, RIDGE)
        seconds.append(clock() - started)
        ours = hasattr(model, "certified_")
        if ours:
            certified.append(model.certified_)
        predict: Predict = (lambda X, groups, model=model: model.predict(X)) if ours else model
        predicted = predict(X_test, others.groups)
        told = ratios(kind, predicted, others)
        large = [value for g, value in told.items() if (others.groups == g).sum() >= LARGE]
        met = sum(value >= BOUND for value in told.values())
        found.append((np.mean(predicted == others.labels), min(told.values()), min(large), met))
    accuracy, worst, of_large, met = np.asarray(found).T
    report.add(
        TABLE,
        asked=f"{kind} >= {BOUND:g}",
        method=method,
        certified=f"{sum(certified)} of {populations}" if certified else None,
        first_seconds=seconds[0],
        again_seconds=float(np.median(seconds[1:])),
        accuracy=accuracy.mean(),
        accuracy_pm=half_width(accuracy),
        worst=worst.mean(),
        worst_pm=half_width(worst),
        worst_of_large=of_large.mean(),
        worst_of_large_pm=half_width(of_large),
        groups_that_meet_it=met.mean(),
    )
    if certified:
        report.hold(f"{kind}: fits without a certificate", populations - sum(certified), 0)


def run(quick: bool) -> Report:
    """All methods under both constraints."""
    populations, share = (2, 0.3) if quick else (5, 1.0)
    report = Report(
        {
            "populations": populations,
            "people": len(halves(census(0, 2 * share))[0].labels),
            "groups": 10,
            "ridge": RIDGE,
            "bound": BOUND,
            "sharpness": SHARP,
            "fairlearn": version("fairlearn"),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for kind, methods in METHODS.items():
            for method, train in methods.items():
                compare(report, kind, method, train, populations, share)
    return report

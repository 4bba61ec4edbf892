"""scikit-learn's own conformance checks, all of them, on every estimator."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from mescal.estimators import ConstrainedClassifier, ConstrainedRegressor, FairClassifier, NeymanPearsonClassifier, rate

ESTIMATORS = (
    NeymanPearsonClassifier(),
    ConstrainedClassifier(),
    FairClassifier(),
    ConstrainedRegressor(),
    ConstrainedRegressor(quantile=0.5),
)
# Some checks fit labels that are pure chance: these bounds can be met there, by a constant model.
WITH_BOUND = ConstrainedClassifier({"recall": rate(of="positives") >= 0.5, "alarms": rate(of="negatives") <= 0.6})


def failures(estimator) -> list[str]:
    """What did not pass. The one check that may be skipped needs an environment variable set before SciPy is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # FairClassifier without groups warns, as it should
        rows = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(rows) > 50
    allowed = {("skipped", "check_array_api_input")}
    return [
        f"{row['check_name']}: {row['status']}: {row['exception']}"
        for row in rows
        if row["status"] != "passed" and (row["status"], row["check_name"]) not in allowed
    ]


# One test, so that one process compiles the two programs that all checks share.
def test_check_estimator_passes():
    assert {repr(e): found for e in ESTIMATORS if (found := failures(e))} == {}


@pytest.mark.slow
def test_check_estimator_passes_with_two_constraints():
    assert failures(WITH_BOUND) == []

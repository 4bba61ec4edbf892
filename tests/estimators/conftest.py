"""Small data that all tests of the estimators share, so that they share two compiled programs."""

from typing import NamedTuple

import numpy as np
import pytest


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray


@pytest.fixture(scope="session")
def data() -> Data:
    """400 overlapping rows in which group "b" is predicted positive less often."""
    rng = np.random.default_rng(20240517)
    groups = np.where(rng.random(400) < 0.4, "b", "a").astype(object)
    X = rng.normal(size=(400, 4))
    X[:, 3] = (groups == "b") + 0.5 * rng.normal(size=400)
    y = (X[:, 0] + 0.5 * X[:, 1] - 1.2 * (groups == "b") + rng.normal(size=400) > 0).astype(int)
    return Data(X, y, groups)

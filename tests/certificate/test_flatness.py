"""A certificate that flatness cannot fool: far out on a ray a saturating loss meets any absolute gradient tolerance.

The gradient there falls like 1/|x|, so stationarity * max(1, |x|) does not; at a minimiser it does.
"""

import jax
import numpy as np
import pytest
import scipy.optimize
import scipy.special

import mescal
from mescal import E, Tolerance
from mescal.problems import get

TOLERANCE = Tolerance(0.01, 0.01)
RELATIVE = Tolerance(0.01, 0.01, relative=0.05)


def flat_warnings(certificate):
    return [sentence for sentence in certificate.warnings if "flat" in sentence]


@pytest.mark.parametrize(
    ("name", "size", "length", "objective"),
    [("fairness/bank", 81, -56.0, 0.518), ("fairness/loan", 250, 100.0, 0.87)],
)
def test_rays_of_the_fairness_problems(data_folder, name, size, length, objective):
    """Both pass (0.01, 0.01, -0.01) far above what is attainable (0.1676 and 0.34), and are flat."""
    x = np.full(size, length / np.sqrt(size))
    certificate = mescal.certify(get(name).problem, x, tol=TOLERANCE)
    assert certificate.objective.value == pytest.approx(objective, abs=0.002)
    assert certificate.passes(TOLERANCE) and certificate.passes(0.01)
    assert 0.2 < certificate.relative_stationarity.value < 1.2
    assert len(flat_warnings(certificate)) == 1
    assert f"{certificate.objective.value:.6g}" in flat_warnings(certificate)[0]
    assert not certificate.passes(RELATIVE)
    for cone in ("whole", "critical"):
        assert certificate.curvatures[cone].lower >= -0.01


# The same on data that are always there. ------------------------------------------------------------------------------

RNG = np.random.default_rng(7)
POSITIVES = (RNG.normal(size=(400, 3)) + np.array([0.7, 0.0, 0.4])).astype(np.float32)
NEGATIVES = (RNG.normal(size=(300, 3)) - np.array([0.7, 0.0, 0.4])).astype(np.float32)


def score(x, row):
    return jax.nn.sigmoid(row @ x)


def miss(x, row):
    return 1 - score(x, row)


PROBLEM = mescal.Problem(E(miss, over=POSITIVES), {"false positives": E(score, over=NEGATIVES) <= 0.9})


def mean_loss(x):
    """A loss with a minimiser: misses of both classes, which overlap, and a little ridge."""
    return (1 - scipy.special.expit(POSITIVES @ x)).mean() + scipy.special.expit(NEGATIVES @ x).mean() + 0.01 * x @ x


SMOOTH = mescal.Problem(E(miss, over=POSITIVES) + E(score, over=NEGATIVES) + E(lambda x: 0.01 * x @ x))


@pytest.mark.parametrize("length", [300.0, 3000.0])
@pytest.mark.parametrize("direction", [(-1.0, 0.3, 0.5), (-0.6, -1.0, 0.2)])
def test_rays_of_a_synthetic_problem(direction, length):
    x = length * np.array(direction) / np.linalg.norm(direction)
    certificate = mescal.certify(PROBLEM, x, tol=TOLERANCE)
    assert certificate.passes(TOLERANCE)
    assert certificate.objective.value > 0.4
    assert certificate.relative_stationarity.value > 0.1
    assert certificate.relative_stationarity.value == pytest.approx(certificate.stationarity.value * length)
    assert len(flat_warnings(certificate)) == 1
    assert not certificate.passes(RELATIVE)
    assert certificate.refuses(RELATIVE) and not certificate.refuses(TOLERANCE)


def test_minimisers_are_not_called_flat():
    found = scipy.optimize.minimize(mean_loss, np.array([0.5, 0.1, 0.3]), method="BFGS", options={"gtol": 1e-8})
    certificate = mescal.certify(SMOOTH, found.x, tol=TOLERANCE)
    assert np.linalg.norm(found.x) > 1
    assert certificate.relative_stationarity.value < 1e-4
    assert certificate.passes(RELATIVE)
    assert flat_warnings(certificate) == []


def test_steep_points_are_refused_and_not_called_flat():
    certificate = mescal.certify(PROBLEM, np.array([-1.0, 0.0, 0.0]), tol=TOLERANCE)
    assert not certificate.passes(TOLERANCE)
    assert flat_warnings(certificate) == []


@pytest.mark.parametrize(("size", "flat"), [(9.9, False), (10.1, True)])
def test_warning_starts_at_ten_tolerances(size, flat):
    """f = 0.01 x_1: stationarity 0.01, which passes, and relative stationarity 0.01 |x|, against 10 * 0.01."""
    problem = mescal.Problem(E(lambda x: 0.01 * x[0]))
    certificate = mescal.certify(problem, np.array([0.0, size]), tol=Tolerance(0.0100001, 0.01))
    assert bool(flat_warnings(certificate)) == flat
    assert flat_warnings(mescal.certify(problem, np.array([0.0, size]), tol=0.009)) == []


def test_relative_tolerance_is_asked_for():
    problem = mescal.Problem(E(lambda x: 0.01 * x[0]))
    certificate = mescal.certify(problem, np.array([0.0, 5.0]))
    assert certificate.passes(Tolerance(0.011, 0.01)) and certificate.passes(Tolerance(0.011, 0.01, relative=0.051))
    assert not certificate.passes(Tolerance(0.011, 0.01, relative=0.049))

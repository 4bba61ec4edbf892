"""Small examples with answers by hand: which cone decides, empty cones, and curved boundaries."""

import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.certificate import second_order
from mescal.sets import Ball, Box, Product, Reals

pytestmark = pytest.mark.quick


def verdicts(certificate, tol=1e-6):
    """What each cone would decide."""
    return {
        name: dataclasses.replace(certificate, curvature=measured).passes(tol)
        for name, measured in certificate.curvatures.items()
    }


def values(certificate):
    return {name: measured.value for name, measured in certificate.curvatures.items()}


def negative_square(x):
    return -(x[0] ** 2)


@pytest.mark.parametrize("cone", ["whole", "paper", "critical"])
def test_strict_minimiser_that_only_the_critical_cone_accepts(cone):
    """min -x^2, x <= 1, at x = 1: slack 0, multiplier 2, -1 along (-1, 1)/sqrt 2 in (x, s), an empty critical cone."""
    problem = mescal.Problem(E(negative_square), {"bound": E(lambda x: x[0]) <= 1})
    certificate = mescal.certify(problem, np.ones(1), cone=cone)
    assert certificate.multipliers["bound"] == pytest.approx(2)
    assert certificate.slack["bound"] == 0
    assert certificate.stationarity.value == pytest.approx(0, abs=1e-12)
    assert certificate.feasibility.value == 0
    whole = np.linalg.eigvalsh([[-2 + 1.1, 1.1], [1.1, 1.1]])[0]
    assert values(certificate) == pytest.approx({"whole": whole, "paper": -1, "critical": np.inf})
    assert certificate.cone == cone
    assert certificate.curvature == certificate.curvatures[cone]
    assert certificate.passes(1e-6) == (cone == "critical")
    assert verdicts(certificate) == {"whole": False, "paper": False, "critical": True}


def test_the_same_with_a_domain_in_place_of_a_constraint():
    certificate = mescal.certify(mescal.Problem(E(negative_square), {}, Box(-np.inf, 1.0)), np.ones(1))
    assert values(certificate) == pytest.approx({"whole": -2, "paper": -2, "critical": np.inf})
    assert verdicts(certificate) == {"whole": False, "paper": False, "critical": True}


def test_empty_cone_is_null_with_a_sentence_in_json():
    problem = mescal.Problem(E(negative_square), {"bound": E(lambda x: x[0]) <= 1})
    certificate = mescal.certify(problem, np.ones(1), cone="critical")
    read = json.loads(certificate.to_json())
    for entry in (read["curvature"], read["curvatures"]["critical"]):
        assert entry["value"] is entry["lower"] is entry["upper"] is None
        assert "{0}" in entry["how"]
    assert read["curvatures"]["paper"]["value"] == pytest.approx(-1)
    assert "none" in str(certificate) and "{0}" in str(certificate)


def concave(x):
    return -0.5 * (2 * x[0] ** 2 + x[1] ** 2)


@pytest.mark.parametrize("radius", [0.5, 1.0, 3.0])
def test_ball_adds_the_curvature_of_its_boundary(radius):
    """min -(2 x_1^2 + x_2^2)/2 on |x| <= R: the multiplier is 2R at R e_1, so that along e_2 the curvature is -1 + 2R/R."""
    problem = mescal.Problem(E(concave), {}, Ball(radius))
    minimiser = mescal.certify(problem, np.array([-radius, 0.0]), cone="critical", tol=1e-6)
    assert values(minimiser) == pytest.approx({"whole": -2, "paper": -2, "critical": 1})
    assert minimiser.passes(1e-6) and verdicts(minimiser)["paper"] is False

    saddle = mescal.certify(problem, np.array([0.0, radius]), cone="critical", tol=1e-6)
    assert saddle.stationarity.value == pytest.approx(0, abs=1e-12)
    assert values(saddle) == pytest.approx({"whole": -2, "paper": -2, "critical": -1})
    assert not any(verdicts(saddle, 0.5).values())

    centre = mescal.certify(problem, np.zeros(2), cone="critical", tol=1e-6)
    assert values(centre) == pytest.approx({"whole": -2, "paper": -2, "critical": -2})


def test_ball_in_a_product_bends_only_its_own_block():
    problem = mescal.Problem(E(lambda x: concave(x[0]) - 0.25 * x[1][0] ** 2), {}, Product(Ball(1.0), Reals()))
    certificate = mescal.certify(problem, (np.array([1.0, 0.0]), np.zeros(1)), cone="critical")
    assert values(certificate)["critical"] == pytest.approx(-0.5)
    problem = mescal.Problem(E(lambda x: concave(x[0]) + 0.25 * x[1][0] ** 2), {}, Product(Ball(1.0), Reals()))
    certificate = mescal.certify(problem, (np.array([1.0, 0.0]), np.zeros(1)), cone="critical")
    assert values(certificate)["critical"] == pytest.approx(0.5)
    assert certificate.passes(1e-6)


def test_a_weakly_active_ball_does_not_bend():
    """With the multiplier zero the boundary adds nothing, and directions into the ball count."""
    problem = mescal.Problem(E(lambda x: -0.5 * x[1] ** 2), {}, Ball(1.0))
    certificate = mescal.certify(problem, np.array([1.0, 0.0]), cone="critical")
    assert values(certificate) == pytest.approx({"whole": -1, "paper": -1, "critical": -1})


@pytest.mark.parametrize(("coupling", "expected"), [(2.0, 1.0), (-2.0, -1.0)])
def test_two_weakly_active_bounds_need_copositivity(coupling, expected):
    """x'[[1, b], [b, 1]]x/2 on the orthant, at 0: eigenvalues 1 -+ b; for b > 0 the smaller one points out of the orthant."""

    def objective(x):
        return 0.5 * (x[0] ** 2 + x[1] ** 2) + coupling * x[0] * x[1]

    certificate = mescal.certify(mescal.Problem(E(objective), {}, Box(0.0, np.inf)), np.zeros(2), cone="critical")
    assert values(certificate) == pytest.approx({"whole": -1, "paper": expected, "critical": expected})
    assert certificate.passes(0.01) == (coupling > 0)


def test_multipliers_below_the_tolerance_count_as_weak():
    """x/1000 - x^2 on x >= 0 at 0 is a strict minimiser, but no curvature test at 0.01 may rely on a multiplier of 0.001."""
    problem = mescal.Problem(E(lambda x: 1e-3 * x[0] - x[0] ** 2), {}, Box(0.0, np.inf))
    assert mescal.certify(problem, np.zeros(1), cone="critical").passes(1e-6)
    assert not mescal.certify(problem, np.zeros(1), cone="critical", tol=0.01).passes(0.01)


def test_greater_or_equal_has_multipliers_of_the_same_sign():
    """min x, x >= 1: stored as 1 - x <= 0, so the multiplier is +1; the slack of an inactive x >= 0 is 1."""
    constraints = {"one": E(lambda x: x[0]) >= 1, "zero": E(lambda x: x[0]) >= 0}
    certificate = mescal.certify(mescal.Problem(E(lambda x: x[0]), constraints), np.ones(1))
    assert certificate.multipliers == {"one": pytest.approx(1), "zero": pytest.approx(0)}
    assert certificate.slack == {"one": pytest.approx(0), "zero": pytest.approx(1)}
    assert certificate.passes(1e-6)


def test_infeasible_stationary_point_is_named():
    """x^2 + 1 = 0 at x = 0: the violation 1 cannot be reduced to first order."""
    problem = mescal.Problem(E(lambda x: x[0] ** 2), {"never": E(lambda x: x[0] ** 2 + 1) == 0})
    certificate = mescal.certify(problem, np.zeros(1))
    assert certificate.feasibility.value == 1
    assert certificate.regularity == 0
    assert any("infeasible stationary point" in sentence for sentence in certificate.warnings)
    assert not certificate.passes(0.5)
    away = mescal.certify(problem, np.ones(1))
    assert not any("infeasible stationary point" in sentence for sentence in away.warnings)


def test_gradient_that_cancels_to_rounding_is_no_gradient():
    """0.1 + 0.2 - 0.3 is not zero in floating point, but no multiplier of 1e16 may make use of it."""
    rows = np.array([[0.1], [0.2], [-0.3]])
    assert rows.mean() != 0
    problem = mescal.Problem(E(lambda x: x[0] - x[1] ** 2), {"flat": E(lambda x, row: row[0] * x[0], over=rows) == 0})
    certificate = mescal.certify(problem, np.zeros(2))
    assert certificate.stationarity.value == pytest.approx(1)
    assert values(certificate)["paper"] == pytest.approx(-2)
    assert certificate.jacobian_singular == 0


def test_set_of_which_only_the_projection_is_known():
    """The curvature is then bounded on all directions, and says so; stationarity is a difference quotient."""
    domain = mescal.sets.Projected(lambda x: jnp.clip(x, -1.0, 1.0))
    problem = mescal.Problem(E(lambda x: -x[0] + x[1] ** 2), {}, domain)
    certificate = mescal.certify(problem, np.array([1.0, 0.0]))
    assert certificate.stationarity.value == pytest.approx(0, abs=1e-8)
    assert certificate.curvatures["paper"].lower == pytest.approx(0, abs=1e-10)
    assert certificate.curvatures["paper"].upper == np.inf
    assert "not known" in certificate.curvatures["paper"].how
    assert certificate.passes(1e-6)
    assert not mescal.certify(mescal.Problem(E(negative_square), {}, domain), np.array([1.0])).passes(1e-6)


def test_many_parameters_are_measured_by_products_alone(monkeypatch):
    """Lanczos in the place of a dense eigenvalue: the same curvature within its interval, and the failure probability said."""
    rng = np.random.default_rng(0)
    rows = {"a": rng.normal(size=(30, 40)), "b": rng.normal(size=30)}

    def loss(x, row):
        return jnp.tanh(row["a"] @ x + row["b"]) ** 2

    problem = mescal.Problem(E(loss, over=rows), {"sum": E(jnp.sum) == 0}, Box(-1.0, 1.0))
    x = np.where(np.arange(40) == 3, 1.0, 0.1 * rng.normal(size=40))  # one bound is active
    dense = mescal.certify(problem, x, tol=0.01)
    monkeypatch.setattr(second_order, "DENSE_SIZE", 10)
    free = mescal.certify(problem, x, tol=0.01)
    assert free.stationarity == dense.stationarity
    for name, measured in free.curvatures.items():
        value = dense.curvatures[name].value
        assert measured.lower <= value + 1e-9 and measured.upper >= value - 1e-9
        assert measured.upper - measured.lower <= 0.01 / 8 + 1e-9
        assert "Lanczos" in measured.how


@pytest.mark.parametrize("forms", [2, 3])
def test_the_hessian_is_formed_where_that_costs_less(forms, monkeypatch):
    """Of few linear forms it is one Gram product. Of more it takes a product per parameter, and Lanczos, which takes fewer, comes
    first: it decides far from the tolerance, and leaves the decision to the dense eigenvalue where that is the tolerance.
    """
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, forms, 40))
    problem = mescal.Problem(E(lambda x, row: jnp.sum(jnp.tanh(row @ x) ** 2), over=rows))
    x = 0.3 * rng.normal(size=40)
    exact = mescal.certify(problem, x, tol=0.01)
    value = exact.curvature.value
    assert exact.curvature.how == "dense eigenvalue" and value < -0.1
    monkeypatch.setattr(second_order, "LANCZOS_STEPS", 39)
    ways = [mescal.certify(problem, x, tol=mescal.Tolerance(0.01, curvature)).curvature for curvature in (0.01, -value)]
    assert [way.how.split(",")[0] for way in ways] == (
        ["dense eigenvalue"] * 2 if forms == 2 else ["Lanczos", "dense eigenvalue"]
    )
    assert all(way.lower - 1e-9 <= value <= way.upper + 1e-9 for way in ways)

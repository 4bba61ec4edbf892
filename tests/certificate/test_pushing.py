"""Forces that nearly cancel: multipliers off within the tolerance hold nothing that the true ones leave free."""

import dataclasses

import numpy as np
import pytest

import mescal
from mescal import E, sets
from mescal.certificate.second_order import on_cone
from mescal.certificate.situation import Situation
from mescal.sets.convex_set import TangentCone

from ..fuzz.reference import LONG, smallest

TOLERANCE = 0.01
DRAWS = 1500


def passes(problem, x, multipliers):
    return mescal.certify(problem, np.asarray(x, float), multipliers, tol=TOLERANCE).passes(TOLERANCE)


def across(x, r):
    return 0.5 * x[1] ** 2 - r[0] * x[0] * x[1]


def beside(x, r):
    return r[0] * x[0] - r[1] * x[1]


def tilted(*coefficients):
    return E(beside, over=np.array([coefficients], float))


def test_a_bound_and_a_row_that_nearly_cancel_hide_no_maximum():
    """y^2/2 - b x y with 0 <= x <= y/20, at 0: along (1/20, 1) it falls for b = 100. The wall is a bound, a boundary, a row."""
    walls = {
        "bound": ({}, sets.Box([0.0, -np.inf], [np.inf, np.inf])),
        "boundary": ({}, sets.HalfSpace([-1.0, 0.0], 0.0)),
        "row": ({"wall": tilted(-1, 0) <= 0}, sets.Reals()),
    }
    for (rows, domain), push in ((wall, push) for wall in walls.values() for push in (0.0, 0.1, 0.19)):
        given = {"sloping": push} | dict.fromkeys(rows, push)
        for b in (100.0, 5.0):
            objective = E(across, over=np.array([[b]]))
            problem = mescal.Problem(objective, {"sloping": tilted(1, 0.05) <= 0} | rows, domain)
            assert passes(problem, [0, 0], given) == (b < 10), (domain, push, b)


@pytest.mark.parametrize("a", [-1.0, 1.0])
def test_a_bound_and_an_equality_that_nearly_cancel_hide_no_maximum(a):
    """a y^2 with x = y/20 and x >= 0: both held leave the cone {0}."""
    problem = mescal.Problem(
        a * E(lambda x: x[1] ** 2), {"line": tilted(1, 0.05) == 0}, sets.Box([0.0, -np.inf], [np.inf, np.inf])
    )
    for push in (0.0, 0.1, 0.15):
        assert passes(problem, [0, 0], {"line": push}) == (a > 0), push


def test_a_force_in_the_place_of_another_hides_no_maximum():
    """x >= y/20 pushes, and x >= 0 where 0 is handed over for it: along (1/20, 1) an objective falls that rises along y."""
    for b in (100.0, 5.0):
        objective = E(across, over=np.array([[b]])) + 0.15 * tilted(1, 0.05)
        problem = mescal.Problem(
            objective, {"sloping": tilted(-1, -0.05) <= 0}, sets.Box([0.0, -np.inf], [np.inf, np.inf])
        )
        for push in (0.15, 0.0):
            assert passes(problem, [0, 0], {"sloping": push}) == (b < 10), (push, b)


def test_a_bound_in_the_place_of_another_hides_no_maximum():
    """x = y - z/20 and x, y >= 0: x >= 0 pushes, and y >= 0 by the multiplier handed over; (0, 1/20, 1) falls for b = 100."""
    line = {"line": E(lambda x, r: x[0] - x[1] + r[0] * x[2], over=np.array([[0.05]])) == 0}
    for b in (100.0, 5.0):
        objective = E(lambda x, r: 0.15 * x[0] - r[0] * x[1] * x[2] + x[2] ** 2 / 2, over=np.array([[b]]))
        problem = mescal.Problem(objective, line, sets.Box([0.0, 0.0, -np.inf], np.inf))
        for push in (-0.15, 0.0):
            assert passes(problem, [0, 0, 0], {"line": push}) == (b < 10), (push, b)


def test_a_force_in_the_place_of_two_hides_no_maximum():
    """x <= y/20 pushes, and x <= 0 less x >= y/10 where these are handed over for it: -y^2 falls along (-1/20, -1)."""
    rows = {"pushing": tilted(1, 0.05) <= 0, "straight": tilted(1, 0) <= 0, "beyond": tilted(-1, -0.1) <= 0}
    for a in (-1.0, 1.0):
        problem = mescal.Problem(0.1 * tilted(-1, -0.05) + a * E(lambda x: x[1] ** 2), rows)
        for given in ([0.1, 0, 0], [0, 0.14, 0.04]):
            assert passes(problem, [0, 0], dict(zip(rows, given, strict=True))) == (a > 0), (a, given)


def situation(jacobian, multipliers, **more):
    size = jacobian.shape[1]
    given = {"gradient": np.zeros(size), "inequality": np.ones(len(jacobian), bool), "slack": np.zeros(len(jacobian))}
    given |= {"tangent": TangentCone.whole(size), "normal": np.zeros(size), "penalty": 1.1, "strong": TOLERANCE}
    return Situation(jacobian=jacobian, multipliers=multipliers, **given | more)


def test_what_is_stated_twice_is_held():
    """Forty bounds, and the same as constraints: one face, on which all are held."""
    size = 40
    bounds = dataclasses.replace(TangentCone.whole(size), lower=np.ones(size, bool))
    twice = situation(-np.eye(size), np.full(size, 1.0), tangent=bounds, normal=np.full(size, -1.0))
    (face,) = twice.faces
    assert face.rows.all() and face.bounds.all() and not face.loose


def test_more_forces_than_can_be_told_apart_leave_no_upper_end():
    """Twelve pairs that nearly cancel, each in a plane of its own: lower ends hold, upper ends do not."""
    size = 24
    rows = np.zeros((24, size))
    for k in range(12):
        rows[2 * k, 2 * k], rows[2 * k + 1, 2 * k : 2 * k + 2] = 1.0, (-1.0, 0.05)
    many = situation(rows, np.full(24, 0.15))
    found = on_cone("critical", many, -np.eye(size), lambda block: -block, 1e-3)
    assert any(face.loose for face in many.faces) and found.lower <= -1 and found.upper == np.inf


def drawn(rng):
    """A cone whose rows are nearly parallel, to each other or to a bound; true multipliers and some that are off within the
    tolerance; a Hessian with the least curvature that is wanted on the true cone. None where it is {0}, or they are too far off.
    """
    d, m = rng.integers(2, 4), rng.integers(2, 5)
    rows = rng.normal(size=(m, d))
    for i in range(1, m):
        if rng.random() < 0.75:
            apart = 10.0 ** rng.uniform(-4, -0.5) * rng.normal(size=d)
            rows[i] = rng.choice([-1, 1]) * rows[rng.integers(0, i)] * rng.uniform(0.5, 2) + apart
    inequality, lower = rng.random(m) < 0.8, np.zeros(d, bool)
    if rng.random() < 0.6:
        i = rng.integers(0, d)
        lower[i] = True
        if rng.random() < 0.7:
            rows[rng.integers(0, m)] = rng.choice([-1, 1]) * np.eye(d)[i] + 10.0 ** rng.uniform(-4, -0.5) * rng.normal(
                size=d
            )
    true = np.where(rng.random(m) < 0.4, 10.0 ** rng.uniform(-1.5, 1, m), 0) * np.where(
        inequality, 1, rng.choice([-1, 1], m)
    )
    of_bounds = np.where(lower & (rng.random(d) < 0.5), 10.0 ** rng.uniform(-1.5, 0, d), 0)
    left, values, _ = np.linalg.svd(np.concatenate([rows, -np.eye(d)[lower]]))
    lengths = np.zeros(len(left))
    lengths[: len(values)] = values
    wrong = left @ (rng.normal(size=len(left)) * np.minimum(1 / np.maximum(lengths, 1e-6), 100) * 0.6 * TOLERANCE)
    given = true + wrong[:m]
    given = np.where(inequality & (given < 0), 0, given)
    gradient = of_bounds - true @ rows + given @ rows
    moved = np.where(lower, np.maximum(-gradient, 0), -gradient)
    hessian = rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-1, 2)
    hessian = hessian + hessian.T
    walls = -np.eye(d)
    held = np.concatenate([rows[~inequality], rows[inequality & (true > 0)], walls[lower & (of_bounds > 0)]])
    sides = np.concatenate([rows[inequality & (true <= 0)], walls[lower & (of_bounds <= 0)]])
    least = float(smallest(hessian.astype(LONG), held.astype(LONG), sides.astype(LONG)))
    if np.linalg.norm(moved) > TOLERANCE or not np.isfinite(least):
        return None
    wanted = rng.choice([-1.0, -5 * TOLERANCE, 0.5])
    tangent = dataclasses.replace(TangentCone.whole(d), lower=lower)
    point = situation(rows, given, gradient=gradient, inequality=inequality, tangent=tangent, normal=-gradient - moved)
    return point, hessian + (wanted - least) * np.eye(d), wanted


def test_multipliers_within_the_tolerance_hide_no_maximum():
    maxima, minima, refused = 0, 0, 0
    for draw in range(DRAWS):
        case = drawn(np.random.default_rng([1, draw]))
        if case is None:
            continue
        point, hessian, wanted = case
        found = on_cone("critical", point, hessian, lambda block, hessian=hessian: hessian @ block, 1e-3)
        assert wanted > 0 or found.lower < -TOLERANCE, (draw, found)
        maxima += wanted < 0
        minima += wanted > 0
        refused += wanted > 0 and found.lower < -TOLERANCE
    assert maxima > 100 and minima > 50
    assert refused < minima / 5  # what nearly cancels is refused at times, not as a rule


def test_a_row_of_length_zero_holds_nothing():
    """Its errors may make it push; nothing is said of a product of infinity and zero."""
    empty = situation(np.zeros((1, 2)), np.array([10.0]), errors=np.array([1e-3]), spread=1e-9)
    found = on_cone("critical", empty, np.diag([3.0, 2.0]), lambda block: np.diag([3.0, 2.0]) @ block, 1e-3)
    assert found.lower == pytest.approx(2)

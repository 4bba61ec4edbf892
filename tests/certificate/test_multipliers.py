"""Best multipliers and slacks: against bounded least squares, and by the optimality conditions of a convex problem."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import mescal
from mescal.certificate import slacks
from mescal.certificate.multipliers import admissible, best_multipliers, minimise, stationarity_of
from mescal.certificate.slacks import choose_slack
from mescal.errors import InputError


def identity(v):
    return v


def box(lower, upper):
    """Tangent cone of a box, and generators of its polar cone, one per column."""

    def project(v):
        v = np.where(lower, np.maximum(v, 0), v)
        return np.where(upper, np.minimum(v, 0), v)

    axes = np.eye(len(lower))
    return project, np.concatenate([-axes[lower], axes[upper]]).T


def half_space(normal):
    def project(v):
        return v - max(0.0, float(normal @ v)) * normal

    return project, normal[:, None]


def wedge(first, second):
    """{d : first d <= 0, second d <= 0} for unit vectors: the four cases written out."""
    cosine = float(first @ second)

    def project(v):
        candidates = [v, v - max(0.0, first @ v) * first, v - max(0.0, second @ v) * second]
        for point in candidates:
            if first @ point <= 1e-12 * np.linalg.norm(v) and second @ point <= 1e-12 * np.linalg.norm(v):
                return point
        a, b = np.linalg.solve([[1, cosine], [cosine, 1]], [first @ v, second @ v])
        return v - a * first - b * second

    return project, np.stack([first, second], axis=1)


def reference(g, J, inequality, slack, polar):
    """``min |g + J'lam + polar mu|`` over mu >= 0 and lam, lam_j >= 0 where s_j = 0 and lam_j = 0 where s_j > 0.

    |P_T(v)| is the distance of v from the polar cone.
    """
    counted = ~(inequality & (slack > 0))
    matrix = np.concatenate([J[counted].T, polar], axis=1)
    if matrix.shape[1] == 0:
        return float(np.linalg.norm(g))
    lengths = np.linalg.norm(matrix, axis=0)
    lengths[lengths == 0] = 1
    least = np.concatenate([np.where(inequality[counted], 0.0, -np.inf), np.zeros(polar.shape[1])])
    bounds = least, np.full(len(least), np.inf)
    x = scipy.optimize.lsq_linear(matrix / lengths, -g, bounds=bounds, method="bvls", tol=1e-15, max_iter=1000).x
    return float(np.linalg.norm(matrix @ (x / lengths) + g))


def random_problem(rng, trial):
    d, m = int(rng.integers(1, 12)), int(rng.integers(0, 8))
    J = rng.standard_normal((m, d)) if trial % 3 else rng.integers(-1, 2, (m, d)).astype(float)
    if m > 2 and trial % 4 == 0:
        J[2] = J[0] - J[1]
    if m > 1 and trial % 5 == 0:
        J = J * 10.0 ** rng.integers(-3, 4, (m, 1))
    g = rng.standard_normal(d) if trial % 2 else rng.integers(-1, 2, d).astype(float)
    if trial % 7 == 0:
        g = -rng.standard_normal(m) @ J
    inequality = rng.random(m) < 0.6
    slack = np.where(inequality & (rng.random(m) < 0.5), 1.0, 0.0)
    cones = trial % 4
    if cones == 0:
        cone = identity, np.zeros((d, 0))
    elif cones == 1:
        cone = box(rng.random(d) < 0.4, rng.random(d) < 0.3)
    else:
        normals = rng.standard_normal((2, d)) if d > 1 else np.ones((2, 1))
        normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
        cone = half_space(normals[0]) if cones == 2 or d < 3 else wedge(*normals)
    return g, J, inequality, slack, *cone


def check_optimal(g, J, inequality, slack, project, lam, tolerance=1e-7):
    """lam is admissible, and the slope of |P_T(-(g + J'lam))|^2 is zero, or not negative at lam_j = 0: it is convex."""
    np.testing.assert_array_equal(lam, admissible(lam, inequality, slack))
    slope = -J @ project(-(g + lam @ J))
    slope = np.where(inequality & (slack > 0), 0.0, np.where(inequality & (lam == 0), np.minimum(slope, 0.0), slope))
    units = np.where((J != 0).any(axis=1), np.linalg.norm(J, axis=1), 1.0)
    assert np.abs(slope / units).max(initial=0.0) <= tolerance * max(np.linalg.norm(g), 1e-300)


def test_best_multipliers_equal_bounded_least_squares():
    rng = np.random.default_rng(1)
    for trial in range(400):
        g, J, inequality, slack, project, polar = random_problem(rng, trial)
        lam = best_multipliers(g, J, inequality, slack, project)
        chi = stationarity_of(lam, g, J, project)
        assert chi <= reference(g, J, inequality, slack, polar) + 1e-7 * np.linalg.norm(g)
        check_optimal(g, J, inequality, slack, project, lam)


def test_curved_tangent_cones():
    """The second-order cone {d : |d_1..| <= d_0} has no pieces; the optimality conditions still hold."""

    def project(v):
        length = np.linalg.norm(v[1:])
        if length <= v[0]:
            return v
        if length <= -v[0]:
            return np.zeros_like(v)
        return 0.5 * (1 + v[0] / length) * np.concatenate([[length], v[1:]])

    rng = np.random.default_rng(3)
    for _ in range(30):
        d, m = 6, 3
        g, J = rng.standard_normal(d), rng.standard_normal((m, d))
        inequality, slack = np.array([True, False, True]), np.array([0.5, 0, 0])
        lam = best_multipliers(g, J, inequality, slack, project)
        check_optimal(g, J, inequality, slack, project, lam, tolerance=1e-8)


def test_noisy_projection():
    """A projection with an error of 1e-10, as a difference quotient of the projection onto X has."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        d, m = 8, 3
        lower = rng.random(d) < 0.5
        exact, polar = box(lower, np.zeros(d, dtype=bool))
        noise = np.random.default_rng(0)

        def project(v, exact=exact, noise=noise):
            return exact(v) + 1e-10 * np.linalg.norm(v) * noise.uniform(-1, 1, len(v))

        g, J = rng.standard_normal(d), rng.standard_normal((m, d))
        inequality, slack = np.array([True, False, True]), np.array([0.5, 0, 0])
        lam = best_multipliers(g, J, inequality, slack, project)
        chi = stationarity_of(lam, g, J, exact)
        assert chi == pytest.approx(reference(g, J, inequality, slack, polar), abs=1e-6)


def test_dependent_rows_get_the_shortest_multipliers():
    rng = np.random.default_rng(5)
    for _ in range(20):
        J = rng.standard_normal((3, 7))
        J = np.concatenate([J, J[:1] + J[1:2], 1e3 * J[:1], np.zeros((1, 7))])
        g = rng.standard_normal(7)
        nothing = np.zeros(6)
        lam = best_multipliers(g, J, nothing > 0, nothing, identity)
        np.testing.assert_allclose(lam, np.linalg.lstsq(J.T, -g, rcond=1e-12)[0], atol=1e-9)


def test_edges():
    no_rows = best_multipliers(np.ones(3), np.zeros((0, 3)), np.zeros(0, bool), np.zeros(0), identity)
    assert no_rows.shape == (0,)
    nothing = np.zeros(2)
    at_minimum = best_multipliers(np.zeros(3), np.ones((2, 3)), nothing > 0, nothing, identity)
    np.testing.assert_array_equal(at_minimum, nothing)
    fixed = best_multipliers(np.ones(3), np.eye(3)[:2], nothing > 0, nothing, lambda v: 0 * v)
    assert stationarity_of(fixed, np.ones(3), np.eye(3)[:2], lambda v: 0 * v) == 0
    with pytest.raises(InputError, match="shapes"):
        best_multipliers(np.ones(3), np.ones((2, 4)), nothing > 0, nothing, identity)
    with pytest.raises(InputError, match="not finite"):
        best_multipliers(np.array([np.nan]), np.ones((2, 1)), nothing > 0, nothing, identity)
    with pytest.raises(InputError, match="slack"):
        best_multipliers(np.ones(1), np.ones((2, 1)), nothing > 0, np.zeros(3), identity)


def test_hundreds_of_rows():
    rng = np.random.default_rng(6)
    for d, m in ((250, 100), (50, 120)):
        lower = rng.random(d) < 0.4
        project, _ = box(lower, np.zeros(d, dtype=bool))
        g, J = rng.standard_normal(d), rng.standard_normal((m, d))
        inequality = rng.random(m) < 0.6
        slack = np.where(inequality & (rng.random(m) < 0.5), 1.0, 0.0)
        lam = best_multipliers(g, J, inequality, slack, project)
        check_optimal(g, J, inequality, slack, project, lam)


def all_choices(g, J, c, inequality, project, polar, multipliers=None):
    """Every choice of slacks with its stationarity and feasibility."""
    open_rows = np.flatnonzero(inequality & (c < 0))
    for zeros in itertools.product([False, True], repeat=len(open_rows)):
        slack = np.where(inequality, np.maximum(0, -c), 0.0)
        slack[open_rows[list(zeros)]] = 0.0
        if multipliers is None:
            chi = reference(g, J, inequality, slack, polar)
        else:
            chi = stationarity_of(admissible(multipliers, inequality, slack), g, J, project)
        yield chi, float(np.linalg.norm(c + slack)), slack


def random_choice(rng, trial):
    d, m = int(rng.integers(2, 8)), int(rng.integers(1, 6))
    project, polar = box(rng.random(d) < 0.3, np.zeros(d, bool)) if trial % 2 else (identity, np.zeros((d, 0)))
    c = rng.choice([-1.0, -0.1, -1e-3, 0.0, 0.05], m) * rng.uniform(0.5, 1.5, m)
    return rng.standard_normal(d), rng.standard_normal((m, d)), c, rng.random(m) < 0.7, project, polar


@pytest.mark.parametrize("given", [False, True])
def test_slack_is_the_best_of_all_choices(given):
    rng = np.random.default_rng([7, given])
    for trial in range(60):
        g, J, c, inequality, project, polar = random_choice(rng, trial)
        lam = rng.choice([-0.1, 0.0, 0.5], len(c)) if given else None
        found = choose_slack(g, J, c, inequality, project, lam)
        best = min(
            max(chi, feasibility) for chi, feasibility, _ in all_choices(g, J, c, inequality, project, polar, lam)
        )
        assert max(found.stationarity, found.feasibility) == pytest.approx(best, abs=1e-7)
        assert found.feasibility == pytest.approx(np.linalg.norm(c + found.slack), abs=1e-15)
        assert found.stationarity == pytest.approx(stationarity_of(found.multipliers, g, J, project), abs=1e-14)
        assert np.all((found.slack == 0) | (found.slack == -c))
        assert np.all(found.slack[~inequality] == 0)
        if given:
            np.testing.assert_array_equal(found.multipliers, admissible(lam, inequality, found.slack))


def test_ties_prefer_stationarity_then_slack():
    project = identity
    g, J = np.array([0.0, 0.0]), np.zeros((2, 2))
    both = np.array([True, True])
    found = choose_slack(g, J, np.array([-1.0, -2.0]), both, project)
    np.testing.assert_array_equal(found.slack, [1.0, 2.0])
    assert (found.stationarity, found.feasibility) == (0.0, 0.0)
    equality = np.array([False, True])
    found = choose_slack(
        np.array([1.0, 0.0]), np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([5.0, -1e-3]), equality, project
    )
    np.testing.assert_array_equal(found.slack, [0.0, 1e-3])
    found = choose_slack(
        np.array([-1.0, 0.0]), np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([5.0, 0.0]), equality, project
    )
    np.testing.assert_allclose(found.multipliers, [0.0, 1.0], atol=1e-12)


def test_stationarity_decides_between_equally_feasible_choices():
    """Feasibility 5 from the equality hides both choices; the slack at zero lets the multiplier cancel the gradient."""
    J = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = choose_slack(np.array([-1.0, 0.0]), J, np.array([5.0, -1e-20]), np.array([False, True]), identity)
    assert found.stationarity == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(found.slack, [0.0, 0.0])


def test_many_inequalities_are_a_local_best():
    rng = np.random.default_rng(8)
    gaps = []
    for trial in range(6):
        d, m = 6, 8
        project, polar = box(rng.random(d) < 0.3, np.zeros(d, bool)) if trial % 2 else (identity, np.zeros((d, 0)))
        g, J, c = rng.standard_normal(d), rng.standard_normal((m, d)), -(10.0 ** rng.uniform(-3, 0, m))
        inequality = np.ones(m, dtype=bool)
        found = choose_slack(g, J, c, inequality, project)
        value = max(found.stationarity, found.feasibility)
        for j in range(m):
            slack = found.slack.copy()
            slack[j] = 0.0 if slack[j] > 0 else -c[j]
            lam = best_multipliers(g, J, inequality, slack, project)
            chi = stationarity_of(lam, g, J, project)
            assert value <= max(chi, float(np.linalg.norm(c + slack))) + 1e-7
        best = min(max(a, b) for a, b, _ in itertools.islice(all_choices(g, J, c, inequality, project, polar), 256))
        gaps.append(value / best - 1)
    assert np.median(gaps) < 0.05


def test_inequalities_that_are_far_from_active_cost_next_to_nothing(monkeypatch):
    """300 rows, five of which are nearly active and push: the others are out by bisection, and none has a problem of its own."""
    solved, rng = [], np.random.default_rng(2)
    monkeypatch.setattr(slacks, "minimise", lambda *given: solved.append(given[0].rows) or minimise(*given))
    J, lam, c = rng.normal(size=(300, 20)), np.zeros(300), -rng.uniform(1, 3, 300)
    lam[:5], c[:5] = rng.uniform(0.5, 2, 5), -1e-6
    found = choose_slack(-lam @ J, J, c, np.ones(300, bool), lambda v: v)
    np.testing.assert_allclose(found.multipliers, lam, atol=1e-9)
    np.testing.assert_array_equal(found.slack, np.where(lam > 0, 0, -c))
    assert len(solved) <= 60 and np.mean(solved) < 60


def test_the_judge_takes_the_best_of_the_readings_that_it_may():
    """min sum (x_j + 1)^2 with 40 constraints -x_j <= 0, all active: tiny slacks beside multipliers of 2 are read as zero."""
    size = 40
    rows = np.random.default_rng(0).normal(size=(20, size))
    rows -= rows.mean(0)
    problem = mescal.Problem(
        mescal.E(lambda x, a: jnp.sum((x + 1 + a) ** 2), over=rows), {"c": mescal.E(lambda x: -x) <= 0}
    )
    tiny = np.full(size, 1e-8)
    for multipliers in (None, np.full(size, 2.0)):
        found = mescal.certify(problem, np.zeros(size), multipliers, slack=tiny, tol=1e-6, cone="critical")
        assert found.passes(1e-6) and not found.slack["c"].any()
    # slacks that are no rounding stay what they are, and so do multipliers
    held = mescal.certify(problem, np.zeros(size), np.full(size, 2.0), slack=np.full(size, 3.0), tol=1e-6)
    assert held.slack["c"] == pytest.approx(3.0) and not held.passes(1e-6)
    wrong = mescal.certify(problem, np.zeros(size), np.full(size, 1.0), slack=tiny, tol=1e-6)
    assert not wrong.passes(1e-6)

"""Smallest curvature on a cone: against all faces and all eigenvectors of each, and on cases with a known answer."""

import itertools
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from mescal.certificate.cones import Cone, smallest_on_cone, smallest_on_cone_matrix_free
from mescal.errors import InputError


def null_space(rows, n):
    return scipy.linalg.null_space(rows, rcond=1e-9) if len(rows) and np.abs(rows).max() > 0 else np.eye(n)


def meets_cone(G, vectors):
    """Whether the span of `vectors` has a nonzero point with G d <= 0: by sign, or by linear programs in its coordinates."""
    inner = G @ vectors
    inner[np.abs(inner) < 1e-9] = 0.0
    if vectors.shape[1] == 1:
        return bool(np.all(inner <= 0) or np.all(inner >= 0))
    k = vectors.shape[1]
    for objective in np.concatenate([np.eye(k), -np.eye(k)]):
        found = scipy.optimize.linprog(objective, A_ub=inner, b_ub=np.zeros(len(G)), bounds=[(-1, 1)] * k)
        if found.status == 0 and found.fun < -1e-5:
            return True
    return False


def brute_force(H, cone):
    """The least of all eigenvalues of all faces whose eigenspace meets the cone: every critical point is among these.

    Uses no criterion: a minimiser is a critical point on the span of its face, so an eigenvector there, smallest or not.
    """
    n = len(H)
    identity = np.eye(n)
    E = np.concatenate([identity[cone.zero], cone.equalities])
    G = np.concatenate([-identity[cone.lower], identity[cone.upper], cone.inequalities])
    best, seen = math.inf, set()
    for size in range(len(G) + 1):
        for chosen in itertools.combinations(range(len(G)), size):
            basis = null_space(np.concatenate([E, G[list(chosen)]]), n)
            key = np.round(basis @ basis.T, 7).tobytes()
            if basis.shape[1] == 0 or key in seen:
                continue
            seen.add(key)
            values, vectors = np.linalg.eigh(basis.T @ H @ basis)
            i = 0
            while i < len(values) and values[i] < best - 1e-9:
                same = np.flatnonzero(np.abs(values - values[i]) <= 1e-9 * (1 + np.abs(values).max()))
                if meets_cone(G, basis @ vectors[:, same]):
                    best = values[i]
                i = same[-1] + 1
    return best


def random_matrix(rng, n, kind):
    if kind == "integer":
        A = rng.integers(-2, 3, (n, n)).astype(float)
        return A + A.T
    if kind == "multiple":
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        return Q @ np.diag(rng.integers(-1, 2, n).astype(float)) @ Q.T
    if kind == "diagonal":
        return np.diag(rng.integers(-1, 2, n).astype(float))
    A = rng.standard_normal((n, n))
    return A + A.T


def random_cone(rng, n):
    def rows(count):
        if rng.random() < 0.5:
            return rng.integers(-1, 2, (count, n)).astype(float)
        return rng.standard_normal((count, n))

    E, A = rows(rng.integers(0, 3)), rows(rng.integers(0, 4))
    if len(E) == 2 and rng.random() < 0.4:
        E[1] = 3 * E[0]
    if len(A) >= 2 and rng.random() < 0.2:
        A[1] = -2 * A[0]
    if len(A) >= 3 and rng.random() < 0.3:
        A[2] = A[0] if rng.random() < 0.5 else A[0] + A[1]
    return Cone(rng.random(n) < 0.1, rng.random(n) < 0.3, rng.random(n) < 0.2, E, A)


def check_direction(H, cone, found, tolerance=1e-12):
    d = found.direction
    assert d is not None
    assert abs(np.linalg.norm(d) - 1) < 1e-12
    assert cone.violation(d) <= tolerance
    assert abs(d @ H @ d - found.value) <= 1e-11 * (1 + np.abs(H).sum())


@pytest.mark.parametrize("kind", ["normal", "integer", "multiple", "diagonal"])
def test_dense_equals_brute_force(kind):
    rng = np.random.default_rng([1, len(kind)])
    empty = branched = 0
    for trial in range(75):
        n = int(rng.integers(1, 7))
        H, cone = random_matrix(rng, n, kind), random_cone(rng, n)
        true = brute_force(H, cone)
        found = smallest_on_cone(H, cone, seed=trial)
        assert found.lower <= found.value <= found.upper
        if math.isinf(true):
            empty += 1
            assert found.value == found.lower == found.upper == math.inf
            assert found.how == "the cone is {0}"
            assert found.direction is None
            continue
        branched += "branch" in found.how
        assert found.lower - 1e-12 <= true <= found.upper + 1e-12
        assert found.upper - found.lower <= 1e-10
        check_direction(H, cone, found)
    assert empty > 3
    assert branched > 10


def test_interval_holds_at_the_cap():
    rng = np.random.default_rng(2)
    lengths = []
    for trial in range(8):
        n = 7
        H = random_matrix(rng, n, "multiple" if trial % 3 == 0 else "normal")
        cone = Cone.of(n, lower=np.arange(n) < 6, equalities=rng.standard_normal((trial % 2, n)))
        true = brute_force(H, cone)
        for cap in (1, 3, 10):
            found = smallest_on_cone(H, cone, max_faces=cap)
            assert found.lower - 1e-12 <= true <= found.upper + 1e-12
            check_direction(H, cone, found)
            lengths.append(found.upper - found.lower)
    assert np.median(lengths) < 1e-6


def test_many_sign_conditions_are_enclosed():
    """No point of the cone lies below the lower end: 2000 random ones and local searches from 30 of them."""
    rng = np.random.default_rng(3)
    n, signs = 40, 20
    H = random_matrix(rng, n, "normal")
    cone = Cone.of(n, lower=np.arange(n) < signs)
    found = smallest_on_cone(H, cone, max_faces=60)
    check_direction(H, cone, found)
    span = np.linalg.eigvalsh(H)
    assert found.lower > span[0] + 0.1

    def clip(d):
        d = np.concatenate([np.maximum(d[:signs], 0), d[signs:]])
        return d / np.linalg.norm(d, axis=0)

    points = clip(rng.standard_normal((n, 2000)))
    assert np.einsum("ij,ij->j", points, H @ points).min() >= found.lower
    points = points[:, :30]
    for _ in range(1000):
        points = clip(span[-1] * points - H @ points)
    best = np.einsum("ij,ij->j", points, H @ points).min()
    assert found.lower <= best
    assert found.upper <= best + 1e-6
    assert found.upper - found.lower <= 1e-5 * abs(found.value)


def test_one_sign_condition_is_void():
    rng = np.random.default_rng(4)
    for _ in range(20):
        n = int(rng.integers(2, 9))
        H = random_matrix(rng, n, "normal")
        rows = rng.standard_normal((1, n))
        span = smallest_on_cone(H, Cone.of(n, equalities=rows))
        basis = null_space(rows, n)
        assert span.value == pytest.approx(np.linalg.eigvalsh(basis.T @ H @ basis)[0], abs=1e-12)
        one = np.arange(n) == 0
        for cone in (
            Cone.of(n, equalities=rows, lower=one),
            Cone.of(n, equalities=rows, upper=one),
            Cone.of(n, equalities=rows, inequalities=rng.standard_normal((1, n))),
            Cone.of(n, equalities=rows, lower=one, inequalities=-7.0 * np.eye(n)[:1]),
        ):
            found = smallest_on_cone(H, cone)
            assert found.value == pytest.approx(span.value, abs=1e-12)
            assert found.how == "dense eigenvalue, the one sign condition is void"
            check_direction(H, cone, found)


def test_local_maximum_at_an_active_bound():
    """min -x^2 subject to x <= 1 at x = 1, in (x, s): the critical cone is {0}."""
    H = np.array([[-2.0, 0.0], [0.0, 0.0]])
    row = np.array([[1.0, 1.0]])
    slack = np.array([False, True])
    paper = smallest_on_cone(H, Cone.of(2, equalities=row, lower=slack))
    assert paper.value == pytest.approx(-1.0, abs=1e-15)
    assert paper.lower <= -1 <= paper.upper
    np.testing.assert_allclose(paper.direction, np.array([-1.0, 1.0]) / math.sqrt(2), atol=1e-15)
    critical = smallest_on_cone(H, Cone.of(2, equalities=row, lower=slack, zero=slack))
    assert (critical.value, critical.how) == (math.inf, "the cone is {0}")


def test_hidden_equalities():
    H = np.diag([-3.0, -1.0, 2.0])
    both_ways = Cone.of(3, inequalities=np.array([[1.0, 0, 0], [-5.0, 0, 0], [0, 0, 0], [1e-3, 0, 0]]))
    assert smallest_on_cone(H, both_ways).value == pytest.approx(-1.0, abs=1e-14)
    assert smallest_on_cone(H, both_ways).how == "dense eigenvalue"
    star = np.array([[math.cos(a), math.sin(a), 0.0] for a in (0.0, 2 * math.pi / 3, 4 * math.pi / 3)])
    assert smallest_on_cone(H, Cone.of(3, inequalities=star)).value == pytest.approx(2.0, abs=1e-14)
    closed = Cone.of(3, inequalities=star, lower=np.array([0, 0, 1]) > 0, upper=np.array([0, 0, 1]) > 0)
    assert smallest_on_cone(H, closed).value == math.inf
    through_equality = Cone.of(3, lower=np.array([True, True, False]), equalities=np.array([[1.0, 1.0, 0.0]]))
    assert smallest_on_cone(H, through_equality).value == pytest.approx(2.0, abs=1e-14)
    simplex = Cone.of(3, lower=np.ones(3, dtype=bool), equalities=np.ones((1, 3)))
    assert smallest_on_cone(H, simplex).value == math.inf


def test_thin_cone_is_neither_flat_nor_open():
    """|d_0| <= t d_1 with H = diag(-1, 1): the minimum (1 - t^2) / (1 + t^2) is on the boundary."""
    H = np.diag([-1.0, 1.0])
    for t in (1e-1, 1e-4, 1e-7):
        cone = Cone.of(2, inequalities=np.array([[1.0, -t], [-1.0, -t]]))
        found = smallest_on_cone(H, cone)
        assert found.value == pytest.approx((1 - t * t) / (1 + t * t), abs=1e-13)
        assert found.lower <= (1 - t * t) / (1 + t * t) <= found.upper


def test_scaling_and_dependence_of_rows_do_not_matter():
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = 6
        H = random_matrix(rng, n, "normal")
        E, A = rng.standard_normal((2, n)), rng.standard_normal((3, n))
        plain = smallest_on_cone(H, Cone.of(n, equalities=E, inequalities=A))
        messy_E = np.concatenate([E * 1e7, E * 1e-7, E.sum(axis=0, keepdims=True), np.zeros((1, n))])
        messy_A = np.concatenate([A * 1e-6, A * 1e6, A[:1] + A[1:2] + 5 * E[:1]])
        messy = smallest_on_cone(H, Cone.of(n, equalities=messy_E, inequalities=messy_A))
        if math.isinf(plain.value):
            assert math.isinf(messy.value)
        else:
            assert messy.value == pytest.approx(plain.value, abs=1e-9)


def test_a_matrix_that_is_not_finite_decides_nothing_where_it_acts():
    """Where its rows and columns are held at zero, it does not act."""
    H = np.diag([np.nan, 1.0, 2.0])
    found = smallest_on_cone(H, Cone.of(3))
    assert found.lower == -np.inf and found.upper == np.inf and np.isnan(found.value)
    held = smallest_on_cone(H, Cone.of(3, zero=np.array([True, False, False])))
    assert held.lower <= 1.0 <= held.upper and np.isclose(held.value, 1.0)


def test_inputs_are_checked():
    with pytest.raises(InputError, match="shape"):
        smallest_on_cone(np.eye(3), Cone.of(2))
    with pytest.raises(InputError, match="mask"):
        Cone.of(2, lower=np.zeros(3, dtype=bool))
    with pytest.raises(InputError, match="rows"):
        Cone.of(2, equalities=np.array([[1.0, np.inf]]))
    with pytest.raises(InputError, match="failure"):
        smallest_on_cone_matrix_free(lambda v: v, 2, Cone.of(2), failure=0.0, resolution=0.1)
    assert smallest_on_cone(np.zeros((0, 0)), Cone.of(0)).value == math.inf


@pytest.mark.parametrize("kind", ["normal", "integer", "multiple", "diagonal"])
def test_matrix_free_encloses_the_dense_value(kind):
    """40 intervals per kind with failure probability 1e-6 each: a false failure in 6000 runs of the four tests."""
    rng = np.random.default_rng([7, len(kind)])
    closed = []
    for trial in range(40):
        n = int(rng.choice([1, 2, 5, 20]))
        H, cone = random_matrix(rng, n, kind), random_cone(rng, n)
        exact = smallest_on_cone(H, cone)
        found = smallest_on_cone_matrix_free(lambda v, H=H: H @ v, n, cone, resolution=1e-3, starts=4, seed=trial)
        if math.isinf(exact.value):
            assert (found.value, found.how) == (math.inf, "the cone is {0}")
            continue
        assert found.lower <= exact.upper
        assert found.upper >= exact.lower
        check_direction(H, cone, found, tolerance=1e-10)
        closed.append(found.upper - found.lower <= 3e-3)
    assert np.mean(closed) > 0.9


def test_matrix_free_says_what_it_rests_on():
    rng = np.random.default_rng(8)
    n = 80
    A = rng.standard_normal((n, n))
    H = A + A.T
    two = np.arange(n) < 2
    plain = smallest_on_cone_matrix_free(lambda v: H @ v, n, Cone.of(n), resolution=0.1)
    assert "failure probability 1e-06" in plain.how
    exact = smallest_on_cone_matrix_free(lambda v: H[:6, :6] @ v, 6, Cone.of(6), resolution=1e-13)
    assert exact.how == "Lanczos, 6 steps, the whole space, exact"
    assert exact.value == pytest.approx(np.linalg.eigvalsh(H[:6, :6])[0], abs=1e-12)
    one = smallest_on_cone_matrix_free(lambda v: H @ v, n, Cone.of(n, lower=two & (np.arange(n) == 0)), resolution=0.1)
    assert one.how.endswith("the one sign condition is void")
    tight = smallest_on_cone(H, Cone.of(n, lower=two))
    many = smallest_on_cone_matrix_free(lambda v: H @ v, n, Cone.of(n, lower=two), resolution=0.05, starts=4)
    assert "sign conditions" in many.how
    assert many.lower <= tight.value <= many.upper + 1e-9


def test_matrix_free_with_bounds_and_rows_beyond_a_basis():
    """A large curvature along a fixed row must not blur the curvature on its null space."""
    rng = np.random.default_rng(9)
    n = 400
    spectrum = np.linspace(-0.3, 2.0, n)
    row = rng.standard_normal((1, n)) / math.sqrt(n)
    lower = np.arange(n) < 150

    def hvp(v):
        block = v.reshape(n, -1)
        return (spectrum[:, None] * block + 1e3 * row.T @ (row @ block)).reshape(v.shape)

    cone = Cone.of(n, equalities=row, lower=lower)
    found = smallest_on_cone_matrix_free(hvp, n, cone, resolution=1e-2, starts=4)
    assert cone.violation(found.direction) <= 1e-10
    assert found.lower <= found.direction @ hvp(found.direction) <= found.upper
    assert -0.35 < found.lower <= found.upper < -0.25


def test_a_larger_cone_that_is_known_can_save_the_lanczos_run():
    """One product where its direction stays inside; a run of its own where the larger cone bounds too loosely."""
    rng = np.random.default_rng(12)
    n = 300
    basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
    spectrum = np.concatenate([[-0.5, -0.2], np.linspace(0, 2, n - 2)])
    H = (basis * spectrum) @ basis.T
    products = []

    def hvp(v):
        products.append(v.ndim)
        return H @ v

    whole = smallest_on_cone_matrix_free(hvp, n, Cone.of(n), resolution=0.01)
    for row, least, few in ((basis[:, 7], -0.5, True), (basis[:, 0], -0.2, False)):
        products.clear()
        cone = Cone.of(n, equalities=row[None])
        found = smallest_on_cone_matrix_free(hvp, n, cone, resolution=0.01, enclosing=whole)
        assert found.lower - 1e-9 <= least <= found.upper + 1e-9 and found.upper - found.lower <= 0.0125 + 1e-9
        assert (len(products) == 1) == few
        assert found.how.startswith("lower end from the whole space") == few
        check_direction(H, cone, found, tolerance=1e-10)

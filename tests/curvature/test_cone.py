"""ConeSearch on random cones, beside the judge's branch and bound: exact eigenvectors, and an adversary within the contract."""

import numpy as np
import pytest

from mescal.certificate.cones import Cone, smallest_on_cone
from mescal.curvature import ConeSearch, CriticalCone
from mescal.curvature.cone_search import Eigenpair
from mescal.sets.convex_set import TangentCone

LEVELS = (-3.0, -1.5, -1.1, -1.001, -1.001, -0.95, -0.7, -0.49, -0.2, 0.5)  # of the tolerance: the minimum on the cone


def random_cone(rng, most=6):
    """A cone in R^d with k weak bounds and rows, sometimes a held bound, an equality or a held curved row."""
    d, k = int(rng.integers(3, 9)), int(rng.integers(0, most + 1))
    bounds = int(rng.integers(0, min(k, d - 2) + 1))
    lower, upper, normal = np.zeros(d, bool), np.zeros(d, bool), np.zeros(d)
    for i in range(bounds):
        (lower if rng.random() < 0.5 else upper)[i] = True
    if rng.random() < 0.3:
        lower[d - 1], normal[d - 1] = True, -1.0
    rows = rng.standard_normal((k - bounds + 1, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    equal, weak = np.zeros((0, d)), rows[1:]
    if rng.random() < 0.3:
        equal = rows[:1]
    tangent = TangentCone(lower, upper, equal, weak, np.zeros(len(weak)))
    cone = CriticalCone.of(tangent, normal, 0.01, np.zeros(0, bool), np.zeros(0, bool))
    held = np.abs(normal) > 0.01
    return cone, Cone.of(d, zero=held, lower=lower, upper=upper, equalities=equal, inequalities=weak)


def random_matrix(rng, judged, level):
    """Symmetric, with few distinct low eigenvalues, and the given minimum on the cone; None where the cone is {0}."""
    d = judged.size
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = np.sort(rng.choice([0.0, 0.01, 0.5, 2.0], d) + 1e-3 * rng.random(d))
    H = (basis * values) @ basis.T
    least = smallest_on_cone(H, judged)
    return None if not np.isfinite(least.value) else H + (level - least.value) * np.eye(d)


def exactly(H):
    def eigen(space, gap, failure, node):
        values, vectors = np.linalg.eigh(space.basis().T @ H @ space.basis())
        return Eigenpair(space.basis() @ vectors[:, 0], float(values[0]))

    return eigen


def adversary(H, cone, tolerance, rng):
    """tau-optimal vectors, infeasible in both signs where such are found, measured wrong by t/16 in the worse direction."""

    def eigen(space, gap, failure, node):
        basis = space.basis()
        values, vectors = np.linalg.eigh(basis.T @ H @ basis)
        best = basis @ vectors[:, 0]
        for _ in range(20):
            mixed = vectors @ (rng.standard_normal(len(values)) * (values <= values[0] + 3 * gap))
            u = basis @ (mixed / np.linalg.norm(mixed))
            if u @ H @ u <= values[0] + gap and not cone.contains(u) and not cone.contains(-u):
                best = u
                break
        return Eigenpair(best, float(best @ H @ best) + tolerance / 16 * rng.choice([-1.0, 1.0]))

    return eigen


@pytest.mark.parametrize("trials", [200, pytest.param(1100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("solver", ["exact", "adversary"])
def test_nothing_is_never_wrong_and_directions_are_feasible(solver, trials):
    """The lemma with failure 0: not one miss. At most 2^k - 1 eigenproblems (a last sign condition is void), far fewer on average.

    Six in a hundred trials make the cone {0}: 1,100 make more than 1,000 cones.
    """
    rng, nodes, most, cones = np.random.default_rng(5), 0, 0, 0
    for trial in range(trials):
        cone, judged = random_cone(rng)
        t = float(rng.choice([0.01, 0.3]))
        H = random_matrix(rng, judged, LEVELS[trial % len(LEVELS)] * t)
        if H is None:
            continue
        eigen = exactly(H) if solver == "exact" else adversary(H, cone, t, rng)
        found = ConeSearch(nodes=200)(eigen, cone, t)
        assert found.proved and found.nodes <= max(1, 2**cone.weak - 1)
        nodes, most, cones = nodes + found.nodes, most + 2**cone.weak, cones + 1
        if found.direction is None:
            assert LEVELS[trial % len(LEVELS)] >= -1, f"trial {trial}: {cone.weak} rows, {found}"
        else:
            u = found.direction
            assert judged.violation(u) <= 1e-8 and np.linalg.norm(u) == pytest.approx(1)
            assert u @ H @ u <= -t / 2
    assert nodes < most / 2 and cones > 0.91 * trials


def test_pruning_at_the_tolerance_itself_would_lose_directions(monkeypatch):
    """The obvious mistake fails, so the test above can."""
    from mescal.curvature import cone_search as module

    monkeypatch.setattr(module, "PRUNED", 1.0)
    rng, missed = np.random.default_rng(5), 0
    for _ in range(200):
        cone, judged = random_cone(rng)
        H = random_matrix(rng, judged, -1.001)
        if H is not None:
            missed += ConeSearch(nodes=200)(adversary(H, cone, 1.0, rng), cone, 1.0).direction is None
    assert missed > 0


def test_many_weak_rows_end_at_the_cap_and_say_so():
    """Past the cap nothing is proved; the projected power iteration still finds the direction (1, ..., 1) of -(sum x)^2."""
    d = 40
    tangent = TangentCone(np.ones(d, bool), np.zeros(d, bool), np.zeros((0, d)), np.zeros((0, d)), np.zeros(0))
    cone = CriticalCone.of(tangent, np.zeros(d), 0.01, np.zeros(0, bool), np.zeros(0, bool))
    rng = np.random.default_rng(0)
    u = rng.choice([-1.0, 1.0], d) / d**0.5  # infeasible in both signs, and lower than what is feasible
    H = -np.ones((d, d)) / d - 1.5 * np.outer(u, u) + 0.05 * np.diag(rng.random(d))
    found = ConeSearch()(exactly(H), cone, 0.5, lambda v: H @ v)
    assert found.direction is not None and cone.contains(found.direction) and found.curvature <= -0.375
    copositive = np.ones((d, d)) + 0.1 * np.outer(u, u) - 0.6 * np.eye(d)
    nothing = ConeSearch(nodes=5)(exactly(copositive), cone, 0.5, lambda v: copositive @ v)
    assert nothing.nodes == 5 and not nothing.proved


def test_projection_onto_the_cone():
    """P_K(v) is in K, and v - P_K(v) is normal to it: orthogonal to P_K(v), and nowhere acute to directions of K."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        cone, judged = random_cone(rng)
        v = rng.standard_normal(judged.size)
        p = cone.project(v)
        assert judged.violation(p) <= 1e-9 * max(1.0, np.linalg.norm(v))
        assert (v - p) @ p == pytest.approx(0, abs=1e-9)
        for w in rng.standard_normal((10, judged.size)):
            assert (v - p) @ cone.project(w) <= 1e-9

"""Points that are no approximate minimisers, by construction and with a margin, get no certificate; minimisers do.

All problems are quadratic with coefficients in the rows of their populations, so that three compiled programs serve them all.
Every wrong point is wrong by at least three times the tolerance, in whichever measure shows it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.sets import Ball, Box, Reals, Simplex

SIZE = 3
TOLERANCE = 0.01  # wrong points must fail it
TIGHT = 1e-6  # minimisers must pass it


def quadratic(x, row):
    return row["q"] @ x + 0.5 * x @ row["H"] @ x


def quadratics(x, row):
    return row["c"] + row["J"] @ x + 0.5 * jnp.einsum("mij,i,j->m", row["K"], x, x)


def spread(rng, mean):
    """Three rows with the given mean."""
    noise = rng.normal(size=(3, *np.shape(mean)))
    return mean + noise - noise.mean(0)


def build(rng, x, gradient, hessian, domain=None, equal=None, at_most=None):
    """The problem with these derivatives of f at x; `equal` and `at_most` are (c, J, K) at x."""
    objective = {"q": spread(rng, gradient - hessian @ x), "H": spread(rng, hessian)}
    constraints = {}
    for name, given in (("equal", equal), ("at most", at_most)):
        if given is not None:
            c, J, K = (np.asarray(part, float) for part in given)
            slope = J - K @ x
            value = c - slope @ x - 0.5 * np.einsum("mij,i,j->m", K, x, x)
            body = E(quadratics, over={"c": spread(rng, value), "J": spread(rng, slope), "K": spread(rng, K)})
            constraints[name] = body == 0 if name == "equal" else body <= 0
    return mescal.Problem(E(quadratic, over=objective), constraints, domain or Reals())


def rotation(rng):
    return np.linalg.qr(rng.normal(size=(SIZE, SIZE)))[0]


def matrix(rng, spectrum):
    Q = rotation(rng)
    return (Q * np.asarray(spectrum)) @ Q.T


def unit(v):
    return v / np.linalg.norm(v)


def symmetric(rng, *shape):
    noise = rng.normal(size=(*shape, SIZE, SIZE))
    return 0.5 * (noise + np.swapaxes(noise, -1, -2))


@dataclass
class Case:
    problem: mescal.Problem
    x: np.ndarray
    minimiser: bool = False
    arguments: dict = field(default_factory=dict)
    sentence: str = ""


# Families: each takes a generator and yields a few cases. ---------------------------------------------------------------


def free_saddles(rng) -> Iterator[Case]:
    x = rng.normal(size=SIZE)
    spectrum = np.array([-rng.uniform(0.05, 2), *rng.uniform(-2, 2, SIZE - 1)])
    yield Case(build(rng, x, np.zeros(SIZE), matrix(rng, spectrum)), x)
    yield Case(build(rng, x, np.zeros(SIZE), matrix(rng, -np.abs(spectrum))), x)  # a maximiser


def points_off_a_minimiser(rng) -> Iterator[Case]:
    x, H = rng.normal(size=SIZE), matrix(rng, rng.uniform(0.05, 3, SIZE))
    problem = build(rng, x, np.zeros(SIZE), H)
    yield Case(problem, x, minimiser=True)
    for size in (3, 30):
        u = rng.normal(size=SIZE)
        yield Case(problem, x + size * TOLERANCE * u / np.linalg.norm(H @ u))


def sphere(rng) -> Iterator[Case]:
    """min -x'Ax/2 on |x|^2 = 1: the leading eigenvector is the minimiser, the others are saddles and the maximiser."""
    values = np.cumsum(rng.uniform(0.4, 1, SIZE)) - rng.uniform(0, 2)
    Q = rotation(rng)
    A = (Q * values) @ Q.T
    origin = np.zeros(SIZE)
    equal = ([-0.5], np.zeros((1, SIZE)), np.eye(SIZE)[None])
    problem = build(rng, origin, origin, -A, equal=equal)
    leading, second, last = Q[:, 2], Q[:, 1], Q[:, 0]
    yield Case(problem, leading, minimiser=True)
    yield Case(problem, leading, minimiser=True, arguments={"multipliers": {"equal": [values[2]]}})
    yield Case(problem, second)
    yield Case(problem, last)
    yield Case(problem, -second, arguments={"multipliers": {"equal": [values[1]]}})
    yield Case(problem, np.cos(0.3) * leading + np.sin(0.3) * second)  # feasible, gradient at least 0.4 sin(0.6)/2
    yield Case(problem, 1.05 * leading)  # infeasible by 0.05
    yield Case(problem, leading, arguments={"multipliers": {"equal": [values[2] + 0.1 * rng.choice([-1, 1])]}})


def regular_rows(rng):
    """Two rows with singular values between 0.5 and 2."""
    left = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    return left @ np.diag(rng.uniform(0.5, 2, 2)) @ rotation(rng)[:2]


def curvature_on(J, K, lam, wanted):
    """The Hessian of f that gives the Lagrangian the Hessian `wanted`."""
    return wanted - np.einsum("m,mij->ij", lam, K)


def inequalities(rng) -> Iterator[Case]:
    """A strict minimiser at which the first inequality is active and the second is or is not; then all that can be wrong."""
    x, J, K = rng.normal(size=SIZE), regular_rows(rng), symmetric(rng, 2)
    both = rng.random() < 0.5
    lam = np.array([rng.uniform(0.3, 2), rng.uniform(0.3, 2) if both else 0.0])
    c = np.array([0.0, 0.0 if both else -rng.uniform(0.3, 1)])
    H = curvature_on(J, K, lam, matrix(rng, rng.uniform(0.2, 2, SIZE)))
    problem = build(rng, x, -J.T @ lam, H, at_most=(c, J, K))
    right = {"multipliers": {"at most": lam}, "slack": {"at most": -c}}
    yield Case(problem, x, minimiser=True)
    yield Case(problem, x, minimiser=True, arguments=right)
    yield Case(problem, x, arguments={"multipliers": {"at most": lam + 0.1 * unit(rng.normal(size=2) * (lam > 0))}})
    yield Case(problem, x, arguments={"multipliers": {"at most": -lam}})
    yield Case(problem, x, arguments={"multipliers": {"at most": np.zeros(2)}})
    yield Case(problem, x, arguments=right | {"slack": {"at most": -c + [0.1, 0.0]}})
    yield Case(problem, x, arguments={"slack": {"at most": -c + [0.0, 0.1]}})
    if not both:
        yield Case(problem, x, arguments={"slack": {"at most": np.zeros(2)}})
    infeasible = c + rng.uniform(0.05, 1, 2) * [1, both]
    yield Case(build(rng, x, -J.T @ lam, H, at_most=(infeasible, J, K)), x)
    yield Case(
        build(rng, x, J.T @ lam, curvature_on(J, K, -lam, np.eye(SIZE)), at_most=(c, J, K)), x
    )  # inwards improves


def inequalities_with_negative_curvature(rng) -> Iterator[Case]:
    x, J, K = rng.normal(size=SIZE), regular_rows(rng), symmetric(rng, 2)
    lam = rng.uniform(0.3, 2, 2)
    Q = np.linalg.qr(np.concatenate([J, rng.normal(size=(1, SIZE))]).T)[0]  # the last column spans the null space of J
    bent = (Q * [1.0, 1.0, -rng.uniform(0.1, 1)]) @ Q.T
    yield Case(build(rng, x, -J.T @ lam, curvature_on(J, K, lam, bent), at_most=([0, 0], J, K)), x)
    # The first inequality weakly active, negative curvature along the direction that enters it.
    lam = np.array([0.0, rng.uniform(0.3, 2)])
    inward = -unit(np.linalg.pinv(J)[:, 0])
    bent = np.eye(SIZE) - (1 + rng.uniform(0.3, 1)) * np.outer(inward, inward)
    weak = build(rng, x, -J.T @ lam, curvature_on(J, K, lam, bent), at_most=([0, 0], J, K))
    yield Case(weak, x)
    yield Case(weak, x, arguments={"slack": [0.0, 0.0], "multipliers": lam})
    # The first inequality inactive: negative curvature on its side counts both ways.
    far = build(rng, x, -J.T @ lam, curvature_on(J, K, lam, bent), at_most=([-0.4, 0], J, K))
    yield Case(far, x)


def equality_with_wrong_multipliers(rng) -> Iterator[Case]:
    x, J, K = rng.normal(size=SIZE), regular_rows(rng)[:1], symmetric(rng, 1)
    lam = rng.normal(size=1)
    problem = build(
        rng,
        x,
        -J.T @ lam,
        curvature_on(J, K, lam, matrix(rng, rng.uniform(0.2, 2, SIZE))),
        equal=([0.0], J, K),
    )
    yield Case(problem, x, minimiser=True)
    yield Case(problem, x, arguments={"multipliers": lam + rng.choice([-0.1, 0.1])})
    yield Case(problem, x + 0.2 * J[0] / (J[0] @ J[0]) * min(1.0, 1 / np.linalg.norm(K)))
    saddle = curvature_on(J, K, lam, matrix(rng, [-1.0, -1.0, 3.0]))  # negative on a plane: on every tangent line, too
    yield Case(build(rng, x, -J.T @ lam, saddle, equal=([0.0], J, K)), x)


def infeasible(rng, name, rows) -> Iterator[Case]:
    """(x - a)'K(x - a)/2 + r = 0 or <= 0 at x = a, K > 0, r > 0: nothing to first order reduces the violation."""
    x, violation = rng.normal(size=SIZE), rng.uniform(0.05, 2, rows)
    K = np.stack([matrix(rng, rng.uniform(0.2, 2, SIZE)) for _ in range(rows)])
    H, given = matrix(rng, rng.uniform(0.2, 2, SIZE)), (violation, np.zeros((rows, SIZE)), K)
    problem = build(rng, x, np.zeros(SIZE), H, **{name: given})
    yield Case(problem, x, sentence="infeasible stationary point")


def infeasible_equalities(rng) -> Iterator[Case]:
    return infeasible(rng, "equal", 1)


def infeasible_inequalities(rng) -> Iterator[Case]:
    return infeasible(rng, "at_most", 2)


def box_corners(rng) -> Iterator[Case]:
    """Two or three coordinates on bounds, the gradient of one of them with the wrong sign; curvature anything."""
    x = rng.uniform(-0.5, 0.5, SIZE)
    side = rng.choice([-1, 1], SIZE)
    free = rng.integers(SIZE) if rng.random() < 0.5 else SIZE
    held = np.arange(SIZE) != free
    low, high = np.where(held & (side < 0), x, -1.0), np.where(held & (side > 0), x, 1.0)
    H = symmetric(rng) + 3 * np.diag(~held)
    gradient = -side * rng.uniform(0.05, 2, SIZE) * held
    box = Box(low, high)
    yield Case(build(rng, x, gradient, H, box), x, minimiser=True)
    wrong = gradient * np.where(np.arange(SIZE) == rng.choice(np.flatnonzero(held)), -1, 1)
    yield Case(build(rng, x, wrong, H, box), x)
    yield Case(build(rng, x, -gradient, H, box), x)


def box_saddles(rng) -> Iterator[Case]:
    """One coordinate strongly active, negative curvature on the others; then two weakly active ones, not copositive."""
    x, side = rng.uniform(-0.5, 0.5, SIZE), rng.choice([-1, 1])
    box = Box([x[0] if side < 0 else -1, -1, -1], [x[0] if side > 0 else 1, 1, 1])
    H = symmetric(rng)
    Q = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    H[1:, 1:] = (Q * [-rng.uniform(0.05, 1), rng.uniform(-1, 1)]) @ Q.T
    yield Case(build(rng, x, np.array([-side * rng.uniform(0.05, 1), 0, 0]), H, box), x)
    signs = rng.choice([-1, 1], 2)
    low, high = np.where(signs > 0, x[:2], -1), np.where(signs > 0, 1, x[:2])
    corner, coupling = Box([*low, -1], [*high, 1]), signs[0] * signs[1] * rng.uniform(1.2, 2)
    for sign in (1, -1):
        H = np.eye(SIZE)
        H[0, 1] = H[1, 0] = sign * coupling
        yield Case(build(rng, x, np.zeros(SIZE), H, corner), x, minimiser=sign > 0)


def ball_boundaries(rng) -> Iterator[Case]:
    """min -(x - a)'A(x - a)/2 on |x - a| <= R: eigenvectors of the boundary; and linear functions at both ends."""
    radius, center = rng.uniform(0.5, 2), rng.normal(size=SIZE)
    values = np.cumsum(rng.uniform(0.2, 1, SIZE))
    Q = rotation(rng)
    A, domain = (Q * values) @ Q.T, Ball(radius, center)
    problem = build(rng, center, np.zeros(SIZE), -A, domain)
    yield Case(problem, center + radius * Q[:, 2], minimiser=True)
    yield Case(problem, center - radius * Q[:, 1])
    yield Case(problem, center + radius * Q[:, 0])
    yield Case(problem, center)
    q = rng.normal(size=SIZE)
    linear = build(rng, center, q, 0.01 * symmetric(rng), domain)
    yield Case(linear, center + radius * unit(q))
    inside = build(rng, center, np.zeros(SIZE), matrix(rng, [-0.5, 1, 1]), domain)
    yield Case(inside, center)


def simplex_faces(rng) -> Iterator[Case]:
    x = np.roll([1.0, 0.0, 0.0], rng.integers(SIZE))
    gradient = rng.normal() + np.where(x > 0, 0.0, rng.uniform(0.1, 1, SIZE))
    yield Case(build(rng, x, gradient, symmetric(rng), Simplex()), x, minimiser=True)
    yield Case(build(rng, x, -gradient, symmetric(rng), Simplex()), x)
    middle, edge = np.array([0.3, 0.7, 0.0]), np.array([1.0, -1.0, 0.0])
    H = np.eye(SIZE) - rng.uniform(1.2, 2) * np.outer(edge, edge) / 2
    yield Case(build(rng, middle, np.array([1.0, 1.0, 1.5]), H, Simplex()), middle)  # concave along the edge


# Groups share a compiled program. For each family: repetitions, wrong points and minimisers per repetition; `inequalities`
# has one wrong point more where one of them is inactive.
GROUPS = {
    "free": {
        free_saddles: (50, 2, 0),
        points_off_a_minimiser: (40, 2, 1),
        box_corners: (40, 2, 1),
        box_saddles: (30, 2, 1),
        ball_boundaries: (25, 5, 1),
        simplex_faces: (30, 2, 1),
    },
    "equalities": {
        sphere: (25, 6, 2),
        equality_with_wrong_multipliers: (30, 3, 1),
        infeasible_equalities: (30, 1, 0),
    },
    "inequalities": {
        inequalities: (30, 7, 2),
        inequalities_with_negative_curvature: (30, 4, 0),
        infeasible_inequalities: (30, 1, 0),
    },
}


def test_there_are_enough_points():
    counts = [count for families in GROUPS.values() for count in families.values()]
    assert sum(repetitions * wrong for repetitions, wrong, _ in counts) >= 1000
    assert sum(repetitions * right for repetitions, _, right in counts) >= 200


def accepted_by(certificate, tol):
    """The cones on which the certificate would pass."""
    curvatures = certificate.curvatures.items()
    return [name for name, measured in curvatures if replace(certificate, curvature=measured).passes(tol)]


@pytest.mark.parametrize("group", GROUPS)
def test_no_false_certificate_and_no_missed_minimiser(group):
    for family, (repetitions, wrong, right) in GROUPS[group].items():
        counts = [0, 0]
        for seed in range(repetitions):
            for case in family(np.random.default_rng([seed, len(family.__name__)])):
                tol = TIGHT if case.minimiser else TOLERANCE
                certificate = mescal.certify(case.problem, case.x, tol=tol, **case.arguments)
                counts[case.minimiser] += 1
                whole, paper, critical = (measured.value for measured in certificate.curvatures.values())
                # per length of x and slacks, so that it is nearer to zero than per length of x where it is negative
                assert whole <= paper + 1e-9 and paper <= max(critical, 0.0) + 1e-9
                assert certificate.passes(tol) == case.minimiser, (family, seed, str(certificate), case)
                if not case.minimiser:
                    assert accepted_by(certificate, tol) == [], (family, seed, str(certificate), case)
                if case.sentence:
                    assert any(case.sentence in warning for warning in certificate.warnings), (seed, certificate)
        assert counts[0] >= repetitions * wrong and counts[1] == repetitions * right


@pytest.mark.parametrize("group", GROUPS)
def test_float32_points(group):
    """The same points rounded to float32: bounds stay active, minimisers pass at a tolerance that the rounding allows."""
    for family in GROUPS[group]:
        for seed in range(4):
            for case in family(np.random.default_rng([seed, 32])):
                tol = 1e-4 if case.minimiser else TOLERANCE
                x = case.x.astype(np.float32)
                certificate = mescal.certify(case.problem, x, tol=tol, **case.arguments)
                assert certificate.passes(tol) == case.minimiser, (family, seed, str(certificate), case)

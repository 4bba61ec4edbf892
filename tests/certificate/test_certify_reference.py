"""Certificates against a plain numpy reference, written from the definitions alone: no code of the package is used in it.

The reference is exact for small problems because it enumerates: all faces of the tangent cone for the projection, all active
sets for the least-squares multipliers, all slack choices, and all faces of the three cones for the curvature. One pair of
functions with coefficients in the rows serves every problem, so that what is compiled is compiled once.
"""

import itertools
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import mescal
from mescal import E
from mescal.sets import Affine, Ball, Box, HalfSpace, NonNegative, Product, Reals, Simplex

from ..fuzz.reference import LONG, faces

pytestmark = pytest.mark.quick

AGREEMENT = 1e-8
SIZE = 4
PENALTY = 1.7


def objective_function(x, row):
    x = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(x)])
    return row["q"] @ x + 0.5 * x @ row["H"] @ x + (row["t"] @ x) ** 3 / 6


def constraint_function(x, row):
    x = jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(x)])
    return row["c"] + row["J"] @ x + 0.5 * jnp.einsum("mij,i,j->m", row["K"], x, x)


# The reference ----------------------------------------------------------------------------------------------------------


@dataclass
class Cone:
    """{d : rows d <= 0, equalities d = 0}; `bend` is what each row adds to the Hessian per unit of its multiplier."""

    rows: np.ndarray
    equalities: np.ndarray
    bend: list[np.ndarray] = field(default_factory=list)

    @classmethod
    def of(cls, rows=(), equalities=(), bend=None, size=SIZE):
        rows = np.asarray(rows, float).reshape(-1, size)
        zero = [np.zeros((size, size)) for _ in rows]
        return cls(rows, np.asarray(equalities, float).reshape(-1, size), zero if bend is None else bend)


def null_space(rows: np.ndarray) -> np.ndarray:
    return scipy.linalg.null_space(rows, rcond=1e-10) if len(rows) else np.eye(rows.shape[1])


def subsets(count: int):
    for size in range(count + 1):
        yield from (list(chosen) for chosen in itertools.combinations(range(count), size))


def project(cone: Cone, v: np.ndarray) -> np.ndarray:
    """The nearest point of the cone: of all orthogonal projections onto spans of faces, the nearest that lies in the cone."""
    best, distance = np.zeros_like(v), np.linalg.norm(v)
    for chosen in subsets(len(cone.rows)):
        basis = null_space(np.concatenate([cone.equalities, cone.rows[chosen]]))
        d = basis @ (basis.T @ v)
        if (cone.rows @ d <= 1e-13).all() and np.linalg.norm(v - d) < distance:
            best, distance = d, np.linalg.norm(v - d)
    return best


def normal_multipliers(cone: Cone, normal: np.ndarray) -> np.ndarray:
    """mu >= 0 with rows' mu + equalities' nu = normal; the rows of the domains below are independent."""
    both = np.concatenate([cone.rows, cone.equalities])
    return np.linalg.lstsq(both.T, normal, rcond=None)[0][: len(cone.rows)] if len(both) else np.zeros(0)


def admissible(lam, inequality, slack):
    return np.where(inequality, np.where(slack > 0, 0, np.maximum(lam, 0)), lam)


def stationarity(cone, gradient, jacobian, inequality, lam, slack) -> float:
    return float(np.linalg.norm(project(cone, -(gradient + jacobian.T @ admissible(lam, inequality, slack)))))


def least_squares(cone, gradient, jacobian, inequality, slack) -> tuple[float, np.ndarray, bool]:
    """min over lam of the stationarity, a minimiser, and whether it is the only one.

    |g + J'lam + E'nu + A'mu| over nu, mu >= 0 and lam, lam_j >= 0 for active inequalities and 0 for others, since
    |P_T(v)| = dist(v, N). A minimiser is found by trying which of what may not be negative are zero.
    """
    m, k = len(jacobian), len(cone.equalities)
    free, signed = np.flatnonzero(~inequality), np.flatnonzero(inequality & (slack <= 0))
    matrix = np.concatenate([jacobian[free].T, cone.equalities.T, jacobian[signed].T, cone.rows.T], axis=1)
    total, first = matrix.shape[1], len(free) + k
    best, solution = np.inf, np.zeros(total)
    for chosen in subsets(total - first):
        columns = [*range(first), *(first + i for i in chosen)]
        part = np.linalg.lstsq(matrix[:, columns], -gradient, rcond=1e-11)[0] if columns else np.zeros(0)
        if (part[first:] < -1e-10).any():
            continue
        full = np.zeros(total)
        full[columns] = part
        full[first:] = np.maximum(full[first:], 0)
        value = float(np.linalg.norm(matrix @ full + gradient))
        if value < best:
            best, solution = value, full
    lam = np.zeros(m)
    lam[free], lam[signed] = solution[: len(free)], solution[first : first + len(signed)]
    unique = bool(total == 0 or np.linalg.matrix_rank(matrix, tol=1e-9) == total)
    return best, lam, unique


def slack_choices(c, inequality):
    per_row = [(0.0,) if not flag or value >= 0 else (0.0, -value) for value, flag in zip(c, inequality, strict=True)]
    return [np.array(choice) for choice in itertools.product(*per_row)]


def smallest_on(matrix: np.ndarray, cone: Cone) -> float:
    """min d'Md over unit d in the cone, inf for {0}: a minimiser is an eigenvector of M on the span of the face it lies in.

    So all faces, all their eigenvalues, and for each whether its eigenspace meets the cone: by signs, or, for
    multiple eigenvalues, by linear programmes.
    """
    best = np.inf
    for chosen in subsets(len(cone.rows)):
        basis = null_space(np.concatenate([cone.equalities, cone.rows[chosen]]))
        if basis.shape[1] == 0:
            continue
        values, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
        others = cone.rows @ basis @ vectors
        start = 0
        while start < len(values) and values[start] < best:
            stop = start + int(np.sum(values[start:] <= values[start] + 1e-9))
            if meets(others[:, start:stop]):
                best = float(values[start])
            start = stop
    return best


def meets(rows: np.ndarray) -> bool:
    """Whether {y : rows y <= 0} holds more than zero."""
    if rows.shape[1] == 1:
        return bool((rows <= 1e-9).all() or (rows >= -1e-9).all())
    if not len(rows):
        return True
    for i, sign in itertools.product(range(rows.shape[1]), (1, -1)):
        cost = np.zeros(rows.shape[1])
        cost[i] = -sign
        found = scipy.optimize.linprog(cost, rows, np.full(len(rows), 1e-10), bounds=(-1, 1))
        if -found.fun > 1e-6:
            return True
    return False


@dataclass
class Reference:
    """f, c and their derivatives at x from closed forms, then every measure of a certificate."""

    cone: Cone
    inequality: np.ndarray
    f: float
    c: np.ndarray
    gradient: np.ndarray
    jacobian: np.ndarray
    objective_hessian: np.ndarray
    constraint_hessians: np.ndarray

    def stationarity(self, lam, slack):
        return stationarity(self.cone, self.gradient, self.jacobian, self.inequality, lam, slack)

    def feasibility(self, slack):
        return float(np.linalg.norm(self.c + slack))

    def best(self, slack):
        return least_squares(self.cone, self.gradient, self.jacobian, self.inequality, slack)

    def hessian(self, lam):
        return self.objective_hessian + np.einsum("m,mij->ij", lam, self.constraint_hessians)

    def curvatures(self, lam, slack, strong, penalty) -> dict[str, float]:
        d, slacks = len(self.gradient), int(self.inequality.sum())
        rows = np.concatenate([self.jacobian, np.eye(len(self.c))[:, self.inequality]], axis=1)
        matrix = np.zeros((d + slacks, d + slacks))
        matrix[:d, :d] = self.hessian(lam)
        whole = np.linalg.eigvalsh(matrix + penalty * rows.T @ rows)[0]

        at_zero = np.flatnonzero(slack[self.inequality] <= 0)
        of_slacks = np.zeros((len(at_zero), d + slacks))
        of_slacks[np.arange(len(at_zero)), d + at_zero] = -1
        widen = ((0, 0), (0, slacks))
        signs = np.concatenate([np.pad(self.cone.rows, widen), of_slacks])
        equalities = np.concatenate([rows, np.pad(self.cone.equalities, widen)])
        paper = smallest_on(matrix, Cone.of(signs, equalities, size=d + slacks))

        v = -(self.gradient + self.jacobian.T @ lam)
        mu = normal_multipliers(self.cone, v - project(self.cone, v))
        active, sides = self.inequality & (slack <= 0), len(mu)
        always = np.concatenate([self.jacobian[~self.inequality], self.cone.equalities])
        rows = np.concatenate([self.cone.rows, self.jacobian[active]])
        pushes = np.concatenate([mu, lam[active]]).astype(LONG)
        critical, bends = np.inf, np.array(self.cone.bend).reshape(-1, d, d)
        for held in faces(rows.astype(LONG), pushes, always.astype(LONG), strong, sides):
            hessian = self.hessian(lam) + np.einsum("k,kij->ij", mu[held[:sides]], bends[held[:sides]])
            face = Cone.of(rows[~held], np.concatenate([always, rows[held]]), size=d)
            critical = min(critical, smallest_on(hessian, face))
        return {"whole": float(whole), "paper": paper, "critical": float(critical)}


# The problems -----------------------------------------------------------------------------------------------------------


def reals(rng):
    return Reals(), rng.normal(size=SIZE), Cone.of()


def box(rng):
    low, high = -1 - rng.random(SIZE), 1 + rng.random(SIZE)
    where = rng.integers(0, 4, SIZE)  # inside, at the lower bound, at the upper bound, inside
    fixed = rng.random(SIZE) < 0.1
    x = np.select([where == 1, where == 2], [low, high], rng.uniform(-0.9, 0.9, SIZE))
    low, high = np.where(fixed, x, low), np.where(fixed, x, high)
    eye = np.eye(SIZE)
    rows = np.concatenate([-eye[(where == 1) & ~fixed], eye[(where == 2) & ~fixed]])
    return Box(low, high), x, Cone.of(rows, eye[fixed])


def non_negative(rng):
    zero = rng.random(SIZE) < 0.5
    return NonNegative(), np.where(zero, 0.0, 0.2 + rng.random(SIZE)), Cone.of(-np.eye(SIZE)[zero])


def ball(rng, size=SIZE):
    center, radius, n = 0.3 * rng.normal(size=size), 0.5 + rng.random(), rng.normal(size=size)
    n /= np.linalg.norm(n)
    if rng.random() < 0.25:
        return Ball(radius, center), center + 0.5 * radius * n, Cone.of(size=size)
    return Ball(radius, center), center + radius * n, Cone.of([n], bend=[np.eye(size) / radius], size=size)


def simplex(rng, size=SIZE):
    zero = rng.random(size) < 0.5
    zero[rng.integers(size)] = False
    x = np.where(zero, 0.0, 0.2 + rng.random(size))
    total = 1 + rng.random()
    x = x * (total / x.sum())
    return Simplex(total), x, Cone.of(-np.eye(size)[zero], [np.ones(size)], size=size)


def half_space(rng, size=SIZE):
    normal, x = rng.normal(size=size), rng.normal(size=size)
    active = rng.random() < 0.75
    rows = [normal / np.linalg.norm(normal)] if active else []
    return HalfSpace(normal, normal @ x + (0.0 if active else 1.0)), x, Cone.of(rows, size=size)


def affine(rng):
    x, matrix = rng.normal(size=SIZE), rng.normal(size=(1 + rng.integers(2), SIZE))
    equalities = np.linalg.qr(matrix.T)[0].T
    if rng.random() < 0.3:
        matrix = np.concatenate([matrix, matrix.sum(0, keepdims=True)])
    return Affine(matrix, matrix @ x), x, Cone.of(equalities=equalities)


def join(first, second):
    """The product of two sets of two coordinates each."""
    (one, x, a), (two, y, b) = first, second
    block = scipy.linalg.block_diag
    bend = [block(part, np.zeros((2, 2))) for part in a.bend] + [block(np.zeros((2, 2)), part) for part in b.bend]
    rows, equalities = block(a.rows, b.rows), block(a.equalities, b.equalities)
    return Product(one, two), np.concatenate([x, y]), Cone.of(rows, equalities, bend)


DOMAINS = {
    "reals": reals,
    "box": box,
    "non-negative": non_negative,
    "ball": ball,
    "simplex": simplex,
    "half-space": half_space,
    "affine": affine,
}
PRODUCTS = {
    "ball x simplex": lambda rng: join(ball(rng, 2), simplex(rng, 2)),
    "half-space x ball": lambda rng: join(half_space(rng, 2), ball(rng, 2)),
}
SHAPES = {"free": (0, 0), "equalities": (2, 0), "inequalities": (0, 3), "both": (1, 2)}
PER_GROUP = 8


@dataclass
class Instance:
    problem: mescal.Problem
    x: object
    reference: Reference
    arguments: dict


def centred(rows: np.ndarray, mean: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The rows, shifted to a given weighted mean."""
    return rows + (mean - np.tensordot(weights, rows, 1) / weights.sum())


def symmetric(rng, *shape):
    matrix = rng.normal(size=(*shape, SIZE, SIZE))
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2


def make(shape: str, domain, seed: int, tree: bool) -> Instance:
    """A problem with a point built to be interesting: multipliers first, then the linear terms that go with them."""
    rng = np.random.default_rng([seed, *shape.encode()])
    equal, unequal = SHAPES[shape]
    m = equal + unequal
    inequality = np.arange(m) >= equal
    X, x, cone = domain(rng)
    kind = ("stationary", "weak", "stationary", "near", "weak", "stationary", "random", "weak")[seed % 8]

    K = symmetric(rng, m)
    J = rng.normal(size=(m, SIZE))  # the Jacobian at x
    if m >= 2 and seed % 8 in (1, 2, 5, 6):
        J[-1] = (0.0 if seed % 8 in (1, 6) else -1.5) * J[-2]  # rank-deficient
    H = symmetric(rng)
    if seed % 8 == 5:
        H = np.round(H)  # may have multiple eigenvalues
    lam = np.where(inequality, np.abs(rng.normal(size=m)) + 0.1, rng.normal(size=m))
    mu = np.abs(rng.normal(size=len(cone.rows))) + 0.1
    active = ~inequality | (rng.random(m) < 0.6)
    if kind == "weak":
        lam[inequality & (rng.random(m) < 0.5)] = 0.0
        mu[rng.random(len(mu)) < 0.5] = 0.0
    lam[~active] = 0.0
    c = np.where(active, 0.0, -0.5 - rng.random(m))  # at x
    gradient = -(J.T @ lam + cone.rows.T @ mu + cone.equalities.T @ rng.normal(size=len(cone.equalities)))
    if kind == "near":
        gradient, c = gradient + 1e-3 * rng.normal(size=SIZE), c + 1e-3 * rng.normal(size=m)
    if kind == "random":
        gradient, c = rng.normal(size=SIZE), rng.normal(size=m)

    # Rows of the populations, shifted so that the (weighted) means at x are the ones above.
    n, k = 5, 3
    weights = rng.random(n) + 0.2 if shape == "both" else np.ones(n)
    t = rng.normal(size=(n, SIZE))
    mean = lambda rows: np.tensordot(weights, rows, 1) / weights.sum()
    cubic_gradient = mean((t @ x)[:, None] ** 2 * t / 2)
    cubic_hessian = mean((t @ x)[:, None, None] * t[:, :, None] * t[:, None, :])
    H0 = H - cubic_hessian
    q0 = gradient - H0 @ x - cubic_gradient
    objective_rows = {
        "q": centred(rng.normal(size=(n, SIZE)), q0, weights),
        "H": centred(symmetric(rng, n), H0, weights),
        "t": t,
    }
    sign = np.where(inequality & (seed % 2 == 1), -1.0, 1.0)  # every other problem states its inequalities with >=
    even = np.ones(k)
    J0 = J - K @ x
    c0 = c - J0 @ x - 0.5 * np.einsum("mij,i,j->m", K, x, x)
    constraint_rows = {
        "c": centred(rng.normal(size=(k, m)), sign * c0, even),
        "J": centred(rng.normal(size=(k, m, SIZE)), sign[:, None] * J0, even),
        "K": centred(symmetric(rng, k, m), sign[:, None, None] * K, even),
    }

    def cut(rows):
        return {name: array[:, rows] for name, array in constraint_rows.items()}

    constraints = {}
    if equal:
        constraints["equal"] = E(constraint_function, over=cut(slice(0, equal))) == 0
    if unequal:
        expectation = E(constraint_function, over=cut(slice(equal, m)))
        constraints["at most"] = expectation >= 0.0 if seed % 2 else 2.0 * expectation <= np.zeros(unequal)
    scale = np.where(inequality & (seed % 2 == 0), 2.0, 1.0)
    objective = E(objective_function, over=objective_rows, weights=weights if shape == "both" else None)
    reference = Reference(
        cone=cone,
        inequality=inequality,
        f=float(q0 @ x + 0.5 * x @ H0 @ x + mean((t @ x) ** 3 / 6)),
        c=scale * c,
        gradient=gradient,
        jacobian=scale[:, None] * J,
        objective_hessian=H,
        constraint_hessians=scale[:, None, None] * K,
    )

    given = ("", "", "", "multipliers", "slack", "both", "", "both")[seed % 8]
    arguments = {"penalty": PENALTY, "tol": None if seed % 3 else 0.05}
    if given in ("multipliers", "both"):
        arguments["multipliers"] = lam / scale + (0.1 * rng.normal(size=m) if seed % 16 > 7 else 0.0)
    if given in ("slack", "both"):
        arguments["slack"] = np.where(active, 0.0, -scale * c)[inequality] * (seed % 16 < 8) + 0.1 * (seed % 16 > 7)
    point = (x[:2], x[2:]) if tree else x
    return Instance(mescal.Problem(objective, constraints, X), point, reference, arguments)


def close(found, expected) -> bool:
    return bool(np.isclose(found, expected, rtol=AGREEMENT / 2, atol=AGREEMENT / 2).all())


def check(instance: Instance):
    reference, arguments = instance.reference, instance.arguments
    certificate = mescal.certify(instance.problem, instance.x, **arguments)
    flat = lambda by_name: np.concatenate([np.zeros(0), *(np.ravel(by_name[n]) for n in instance.problem.constraints)])
    inequality = reference.inequality
    lam, slack = flat(certificate.multipliers), np.zeros(len(inequality))
    slack[inequality] = np.concatenate([np.zeros(0), *(np.ravel(part) for part in certificate.slack.values())])

    # First order, at the multipliers and slacks of the certificate.
    assert close(certificate.objective.value, reference.f)
    assert close(flat(certificate.constraints), reference.c)
    assert close(certificate.stationarity.value, reference.stationarity(lam, slack))
    assert close(certificate.feasibility.value, reference.feasibility(slack))
    x = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(instance.x)])
    assert close(certificate.relative_stationarity.value, certificate.stationarity.value * max(1.0, np.linalg.norm(x)))
    violated = np.where(inequality, np.maximum(reference.c, 0), reference.c)
    assert close(certificate.violation.value, np.linalg.norm(violated))
    assert close(certificate.complementarity.value, np.linalg.norm(reference.c + slack - violated))
    signed = np.asarray(lam if arguments.get("multipliers") is None else arguments["multipliers"])[inequality]
    assert close(certificate.dual_sign, np.min(signed, initial=np.inf))
    singular = np.linalg.svd(reference.jacobian, compute_uv=False)
    assert close(certificate.jacobian_singular, singular.min(initial=np.inf))
    assert close(certificate.multiplier_norm, np.linalg.norm(lam))

    # The choice of multipliers and slacks.
    given = arguments.get("multipliers")
    choices = slack_choices(reference.c, inequality)
    if arguments.get("slack") is not None:
        choices = [np.zeros(len(inequality))]
        choices[0][inequality] = arguments["slack"]
        assert close(slack, choices[0])
    if given is not None:
        assert close(lam, admissible(given, inequality, slack))
        worst = [max(reference.stationarity(given, s), reference.feasibility(s)) for s in choices]
    else:
        worst = [max(reference.best(s)[0], reference.feasibility(s)) for s in choices]
        value, best, unique = reference.best(slack)
        assert close(certificate.stationarity.value, value)
        if unique:
            assert np.allclose(lam, best, atol=1e-6)
    assert any(close(slack, choice) for choice in choices)
    assert close(max(certificate.stationarity.value, certificate.feasibility.value), min(worst))

    # Second order.
    strong = 1e-6 if arguments["tol"] is None else arguments["tol"]
    expected = reference.curvatures(lam, slack, strong, PENALTY)
    for name, measured in certificate.curvatures.items():
        assert close(measured.value, expected[name]), (name, measured, expected[name])
        if np.isfinite(measured.value):
            assert measured.lower <= expected[name] + AGREEMENT and measured.upper >= expected[name] - AGREEMENT
            upper = measured.value if "no upper end" in measured.how else measured.upper
            assert upper - measured.lower <= 10 * AGREEMENT * max(1, abs(expected[name]))
    return certificate, expected


@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_reference(shape):
    for domain, seed in itertools.product(DOMAINS, range(PER_GROUP)):
        try:
            check(make(shape, DOMAINS[domain], seed, tree=False))
        except AssertionError as error:
            error.add_note(f"domain {domain}, seed {seed}")
            raise


def test_agrees_with_reference_on_products():
    for domain, seed in itertools.product(PRODUCTS, range(2 * PER_GROUP)):
        try:
            check(make("both", PRODUCTS[domain], seed, tree=True))
        except AssertionError as error:
            error.add_note(f"domain {domain}, seed {seed}")
            raise


def test_there_are_enough_problems_of_every_kind():
    """At least 200, with and without active, weakly active and strongly active bounds, and with every argument given."""
    makers = [(shape, domain, False) for shape in SHAPES for domain in DOMAINS.values()]
    assert len(makers) * PER_GROUP + len(PRODUCTS) * 2 * PER_GROUP >= 200
    active = [len(make("both", box, seed, False).reference.cone.rows) for seed in range(PER_GROUP)]
    assert min(active) == 0 and max(active) >= 2
    given = [frozenset(make("both", reals, seed, False).arguments) for seed in range(PER_GROUP)]
    assert len(set(given)) == 4

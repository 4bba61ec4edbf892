"""Error bounds from samples hold as often as they say, for truths known in closed form; and say how they were found.

Thresholds. At confidence 0.95 each of the three measures has the failure probability 0.05/3, and all three together 0.05. If
the bounds were exactly that tight, fewer than 930 of 1,000 repetitions would hold jointly with probability 0.23 % (binomial
with 0.95) and fewer than 180 of 200 with probability 0.12 %; a single measure (0.983) would hold in fewer than 930 of 1,000 with
probability 1e-23 and in fewer than 93 of 100 with probability 0.03 %. The bounds are conservative and the seeds are fixed, so
these tests do not flicker.

Functions are shared between problems, and numbers that differ are coefficients: what is compiled is compiled once.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

import mescal
from mescal import E, Sampler
from mescal.certificate import confidence, sampled
from mescal.certificate.scalars import Frame
from mescal.oracle.evaluator import evaluator_of
from mescal.sets import Ball, Box, NonNegative

SAMPLES = 512
HESSIAN = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, -0.5]])
ROWS = np.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.4], [0.5, 0.5, 1.0]])  # the Jacobian at X
BENDS = np.array([0.4, -0.3, 0.2])  # the Hessians of the constraints, times the identity
VALUES = np.array([0.1, 0.05, -1.0])  # the constraints at X: an equality, an active and an inactive inequality
X = np.array([0.6, -0.4, 0.5])
GRADIENT = -ROWS.T @ [0.7, 1.0, 0.0] + [0.1, 0.0, -0.2]


def skewed(key):
    """Independent, mean zero, variance one, and far from Gaussian."""
    return jax.random.exponential(key, (3,)) - 1


def objective(x, u):
    y = x - X
    return GRADIENT @ y + 0.5 * y @ HESSIAN @ y + 0.5 * u @ y + 0.25 * jnp.sum(u * y**2) + u[0]


def constraints(x, z):
    y = x - X
    return VALUES + (ROWS + 0.3 * jnp.outer(jnp.ones(3), z)) @ y + 0.5 * BENDS * (y @ y) + 0.3 * z


def equality(x, z):
    return constraints(x, z)[0]


def inequalities(x, z):
    return constraints(x, z)[1:]


FIRST, SECOND = Sampler(skewed), Sampler(skewed)
STREAM = mescal.Problem(
    E(objective, over=FIRST), {"equal": E(equality, over=SECOND) == 0, "at most": E(inequalities, over=SECOND) <= 0}
)


def truth(certificate) -> dict[str, float]:
    """The measures at the multipliers that were chosen: the first inequality has slack 0, the second one a slack."""
    lam = np.array([certificate.multipliers["equal"], *certificate.multipliers["at most"]])
    gradient = GRADIENT + ROWS.T @ lam
    rows = np.concatenate([ROWS, [[0, 0], [1, 0], [0, 1]]], axis=1)
    H = scipy.linalg.block_diag(HESSIAN + BENDS @ lam * np.eye(3), np.zeros((2, 2)))
    held = np.concatenate([rows, [[0, 0, 0, 1, 0]]])
    smallest = lambda basis: float(np.linalg.eigvalsh(basis.T @ H @ basis)[0])
    return {
        "stationarity": float(np.linalg.norm(gradient)),
        "feasibility": float(np.linalg.norm(VALUES[:2])),
        "whole": float(np.linalg.eigvalsh(H + 1.1 * rows.T @ rows)[0]),
        "paper": smallest(scipy.linalg.null_space(rows)),  # one sign condition: void
        "critical": smallest(scipy.linalg.null_space(held)),
        "objective": 0.0,
    }


def measures(certificate) -> dict[str, mescal.Measured]:
    first = {name: getattr(certificate, name) for name in ("stationarity", "feasibility", "objective")}
    return first | certificate.curvatures


def widths(certificate) -> np.ndarray:
    return np.array([measured.upper - measured.lower for measured in measures(certificate).values()])


@pytest.mark.parametrize(
    ("repetitions", "least"), [(200, 0.9), pytest.param(1000, 0.93, marks=pytest.mark.slow)], ids=["200", "1000"]
)
def test_bounds_cover_separately_and_together(repetitions, least):
    found, covered = [], []
    for seed in range(repetitions):
        certificate = mescal.certify(STREAM, X, samples=SAMPLES, seed=seed)
        expected = truth(certificate)
        covered.append({n: m.lower <= expected[n] <= m.upper for n, m in measures(certificate).items()})
        found.append(certificate)
    for name in ("stationarity", "feasibility", "whole", "paper", "critical"):
        assert np.mean([holds[name] for holds in covered]) >= least, name
    for cone in ("whole", "paper", "critical"):
        together = ("stationarity", "feasibility", cone)
        assert np.mean([all(holds[name] for name in together) for holds in covered]) >= least, cone
    # The objective has an ordinary interval of its own: within 4 standard errors of 95 %.
    error = np.sqrt(0.05 * 0.95 / repetitions)
    assert np.mean([holds["objective"] for holds in covered]) == pytest.approx(0.95, abs=4 * error)

    # The bounds are not vacuous: radii of a few standard errors of the gradient and of the constraints.
    lam = np.array([[c.multipliers["equal"], *c.multipliers["at most"]] for c in found[:20]])
    errors = {
        "stationarity": np.mean(np.sqrt(3 * (0.25 + (0.3 * lam.sum(1)) ** 2) / SAMPLES)),
        "feasibility": np.sqrt(3 * 0.09 / SAMPLES),
    }
    for name, error in errors.items():
        radius = np.mean([getattr(c, name).upper - getattr(c, name).value for c in found[:20]])
        assert error <= radius <= 3.5 * error
    assert all(m.lower > m.value - 2 for c in found for m in c.curvatures.values())

    # Equal seeds, equal samples; other seeds, other samples.
    again = mescal.certify(STREAM, X, samples=SAMPLES, seed=0)
    assert measures(again) == measures(found[0])
    assert len({c.stationarity.value for c in found}) == len({c.feasibility.value for c in found}) == repetitions

    # Four times the samples, half the radius.
    more = np.mean([widths(mescal.certify(STREAM, X, samples=4 * SAMPLES, seed=seed)) for seed in range(10)], axis=0)
    ratio = np.mean([widths(c) for c in found[:10]], axis=0) / more
    assert (ratio > 1.7).all() and ratio[:3] == pytest.approx(2, rel=0.15)

    # More confidence, wider bounds.
    low, high = (mescal.certify(STREAM, X, samples=SAMPLES, confidence=p) for p in (0.8, 0.999))
    for name, narrow in measures(low).items():
        wide = measures(high)[name]
        assert narrow.value == wide.value and wide.upper > narrow.upper
        assert wide.lower < narrow.lower or narrow.lower == 0
    assert low.confidence == 0.8 and "confidence 0.8" in low.stationarity.how

    # A bound on Hessians says nothing of Jacobians.
    given = mescal.certify(STREAM, X, samples=SAMPLES, bounds={"hessian": 5.0}).curvature
    assert "by the given bound, the Jacobian by the CLT" in given.how


# Problems in three coordinates that differ in coefficients only. --------------------------------------------------------

NORMAL = Sampler(lambda key: jax.random.normal(key, (3,)))


def noise(x, u):
    return u @ x


def square_noise(x, u):
    return 0.5 * u @ x**2


def last_noise(x, u):
    return u[0] * x[2]


def first_coordinate(x):
    return x[0]


def second_coordinate(x):
    return x[1]


def first_square(x):
    return 0.5 * x[0] ** 2


def second_square(x):
    return 0.5 * x[1] ** 2


def third_square(x):
    return 0.5 * x[2] ** 2


def simple(spectrum=(1.0, 1.0, 1.0), slope=0.0, spread=1.0, bend=0.0, domain=None, row=None):
    """slope x_1 + x'diag(spectrum + bend u)x/2 + spread u'x, and x_1 + row x_2 + u_1 x_3 = 0 if a row is given."""
    squares = (first_square, second_square, third_square)
    body = spread * E(noise, over=NORMAL) + bend * E(square_noise, over=NORMAL) + slope * E(first_coordinate)
    body = sum((a * E(square) for a, square in zip(spectrum, squares, strict=True)), start=body)
    given = {}
    if row is not None:
        given["row"] = E(first_coordinate) + row * E(second_coordinate) + E(last_noise, over=NORMAL) == 0
    return mescal.Problem(body, given, domain)


def test_uncertain_cones_are_covered():
    """The cone itself has an error. What is wrong without it, in about half of all repetitions:

    - a bound of multiplier zero is taken for a strong one because its estimate is positive;
    - what a curved boundary adds to the curvature has the error of its multiplier;
    - next to a strong bound the Jacobian turns the cone by its error over what is left of it there, 0.1 and not 1;
    - {x >= 0, x_1 + 0 x_3 = 0} has two rays, but only one with any positive number for 0.
    """
    cases = {
        "weak bound": (simple((-2, 2, 2), domain=NonNegative()), np.zeros(3), -2.0),
        "curved boundary": (simple((0, -1, 1), slope=1, domain=Ball(0.2)), np.array([-0.2, 0, 0]), -1 + 1 / 0.2),
        "turned cone": (
            simple((0, -1, 1), slope=1, spread=0.0, row=0.1, domain=Box(np.array([0.0, -9, -9]), 9.0)),
            np.zeros(3),
            1.0,
        ),
        "missing ray": (simple((-1, 1, -1), spread=0.0, row=0.0, domain=NonNegative()), np.zeros(3), -1.0),
    }
    for name, (problem, x, expected) in cases.items():
        holds = []
        for seed in range(100):
            curvature = mescal.certify(problem, x, samples=SAMPLES, seed=seed, cone="critical").curvature
            holds.append(curvature.lower <= expected <= curvature.upper)
        assert np.mean(holds) >= 0.93, name


def test_noisy_hessians_are_covered():
    """Far from the other eigenvalues the smallest one has the error of its own entry, 1/sqrt n: neither end may ignore it."""
    problem, estimates = simple((0.0, 2.0, 3.0), bend=1.0), []
    for seed in range(100):
        estimates.append(mescal.certify(problem, np.zeros(3), samples=SAMPLES, seed=seed).curvature)
    assert np.mean([m.lower <= 0 <= m.upper for m in estimates]) >= 0.93
    assert np.std([m.value for m in estimates]) == pytest.approx(1 / np.sqrt(SAMPLES), rel=0.3)
    assert all(m.upper - m.lower < 10 / np.sqrt(SAMPLES) for m in estimates)


def test_an_empty_cone_that_is_certain_passes():
    """Strongly active bounds, far above the noise: the critical cone is {0}, with confidence."""
    domain = Box(np.zeros(3), np.array([9.0, 0.0, 0.0]))
    certificate = mescal.certify(
        simple((-1, 1, 1), slope=1, spread=0.1, domain=domain), np.zeros(3), samples=SAMPLES, cone="critical", tol=0.2
    )
    assert certificate.curvature.lower == np.inf
    assert certificate.passes(0.2)
    faint = simple((-1, 1, 1), slope=0.2, spread=0.1, domain=domain)
    certificate = mescal.certify(faint, np.zeros(3), samples=SAMPLES, cone="critical", tol=0.2)
    assert certificate.curvature.lower < -0.9
    assert not certificate.passes(0.2)


@pytest.mark.parametrize(("last", "slope"), [(0.5, 0.0), (-0.5, 0.0), (0.5, 0.5), (-0.5, 0.5)])
def test_streams_are_decided_at_a_tolerance(last, slope):
    certificate = mescal.certify(simple((1, 1, last), slope, spread=0.1), np.zeros(3), tol=0.05)
    assert certificate.passes(0.05) == (last > 0 and slope == 0)
    assert certificate.refuses(0.05) == (last < 0 or slope > 0)


def test_samples_grow_until_the_tolerance_is_decided():
    """A wrong point is refused at the first look; a minimiser needs more; what neither decides is no certificate."""
    problem = simple()
    wrong = mescal.certify(problem, np.array([0.3, 0.0, 0.0]), tol=0.1)
    assert wrong.refuses(0.1) and not wrong.passes(0.1)
    right = mescal.certify(problem, np.zeros(3), tol=0.018)
    assert right.passes(0.018)
    assert right.work.total > wrong.work.total
    few = mescal.certify(problem, np.zeros(3), tol=0.018, samples=SAMPLES)
    assert not few.passes(0.018) and not few.refuses(0.018)


def test_a_curvature_that_is_decided_is_not_measured_again():
    """Later looks cost a gradient for the point and one for the spread of it; all looks are counted."""
    looks = [mescal.certify(simple(), np.zeros(3), tol=tol) for tol in (0.3, 0.04, 0.018)]
    once, *_ = [look.work.counts for look in looks]
    for look, size, extra in zip(looks, sampled.LOOKS[:3], (0, 4, 20), strict=True):
        assert f"{size} samples" in look.stationarity.how and f"{sampled.LOOKS[0]} samples" in look.curvature.how
        assert look.work.counts["hvp_samples"] == once["hvp_samples"] > 0
        assert look.work.counts["gradient_samples"] - once["gradient_samples"] == 2 * extra * sampled.LOOKS[0]
    # Slacks that each look chooses from its samples may make another cone of it: there, it is measured again.
    chosen = mescal.certify(STREAM, X, np.array([0.7, 1.0, 0.0]), tol=mescal.Tolerance(gradient=0.235, curvature=0.3))
    assert chosen.stationarity.how.split()[0] in chosen.curvature.how
    assert chosen.work.counts["hvp_samples"] > once["hvp_samples"]


def test_points_just_beyond_the_tolerance_rarely_pass():
    """Stationarity or curvature 5 % beyond: at most 5 % may pass; more than 8 of 100 would have probability 6 %, none is seen."""
    first, second = simple(spread=0.1), simple((1.0, 1.0, -0.105), spread=0.1)
    passed = np.zeros(2)
    for seed in range(100):
        passed += [
            mescal.certify(first, np.array([0.105, 0, 0]), samples=SAMPLES, seed=seed).passes(0.1),
            mescal.certify(second, np.zeros(3), samples=SAMPLES, seed=seed).passes(0.1),
        ]
    assert (passed <= 8).all()
    assert mescal.certify(first, np.array([0.05, 0, 0]), samples=SAMPLES).passes(0.1)


def test_batches_are_independent():
    """Multipliers come from other draws than measures: with the same noise in both, stationarity would be zero."""
    problem = mescal.Problem(E(last_noise, over=NORMAL), {"level": E(lambda x: x[2]) == 0})
    for seed in range(5):
        certificate = mescal.certify(problem, np.zeros(3), samples=SAMPLES, seed=seed)
        assert certificate.stationarity.value > 1e-6
        distance = abs(certificate.multipliers["level"])  # the true gradient is zero
        assert certificate.stationarity.lower <= distance <= certificate.stationarity.upper


# Finite data as a sample, given bounds, mixtures ------------------------------------------------------------------------


def slope_of(x, row):
    return row[0] * x[0]


def level_of(x, row):
    return row[0] * x[0] - 1


@pytest.mark.parametrize("weighted", [False, True])
def test_finite_data_as_a_sample(weighted):
    """Rows 1 or 3 with equal chances, weights 1/row: a mean of 2, or of 1.5 with weights, which are part of the error."""
    rng, holds = np.random.default_rng(0), []
    expected = 1.5 if weighted else 2.0
    for seed in range(100):
        rows = rng.choice([1.0, 3.0], size=(400, 1))
        over = {"over": rows, "weights": 1 / rows[:, 0] if weighted else None}
        problem = mescal.Problem(E(slope_of, **over), {"level": E(level_of, **over) == 0})
        certificate = mescal.certify(problem, np.ones(1), [0.0], as_sample=True, seed=seed)
        pairs = (certificate.stationarity, expected), (certificate.feasibility, expected - 1)
        holds.append([m.lower <= value <= m.upper for m, value in pairs])
        assert all(0.01 < m.upper - m.lower < 0.8 for m, _ in pairs)
    assert (np.mean(holds, axis=0) >= 0.93).all()
    assert "200 samples, confidence 0.95" in certificate.stationarity.how
    exact = mescal.certify(problem, np.ones(1), [0.0])
    weights = 1 / rows if weighted else np.ones_like(rows)
    assert exact.stationarity.value == pytest.approx((rows * weights).sum() / weights.sum())
    assert exact.stationarity.upper - exact.stationarity.lower < 1e-11  # what rounding may do to 400 rows
    assert "exact over 400 rows" in exact.stationarity.how and exact.confidence is None


def weighted_square(x, row):
    return 0.5 * (row[:2] * x) @ x + row[2] * x[0]


def test_spreads_of_weighted_rows_match_numpy():
    """V = S/n for S the covariance of w (v - v'), v' the weighted mean; the Hessian's spread carries its margin of 1.2."""
    rng = np.random.default_rng(2)
    rows, weights = rng.normal(size=(60, 3)), rng.uniform(0.1, 3, 60)
    problem, x = mescal.Problem(E(weighted_square, over=rows, weights=weights)), np.array([0.7, -0.4])
    program, _ = problem.bind(x)
    judge, sources = evaluator_of(problem, program), problem.sources
    w = weights / weights.mean()
    centred = lambda values: w[:, None] * (values - np.average(values, axis=0, weights=weights))
    gradients = rows[:, :2] * x + rows[:, 2:] * [1, 0]
    found = confidence.moments(judge, sources, (True,), x, np.zeros(0), Frame.none(x.size))
    expected = np.linalg.eigvalsh(centred(gradients).T @ centred(gradients) / 60 / 59)
    assert found.gradient.trace == pytest.approx(expected.sum())
    assert found.gradient.norm == pytest.approx(expected.max())
    values = 0.5 * rows[:, :2] @ x**2 + rows[:, 2] * x[0]
    assert found.objective == pytest.approx(np.mean(centred(values[:, None]) ** 2) / 59)
    spread = np.mean(centred(rows[:, :2]) ** 2, axis=0).max() / 60  # Hessians are diagonal
    found, reach = confidence.hessian_spread(judge, (True,), x, np.zeros(0), Frame.none(x.size), 0)
    assert found == pytest.approx(1.2 * spread, rel=0.03)
    assert np.abs(centred(rows[:, :2])).max() / 60 * 0.5 <= reach <= 60**0.25 * np.abs(centred(rows[:, :2])).max() / 60
    u = np.array([0.6, 0.8])
    along = np.mean(centred(rows[:, :2] @ u[:, None] ** 2) ** 2) / 59
    assert confidence.directional(judge, (True,), x, np.zeros(0), Frame.none(x.size), u) == pytest.approx(along)


def rate(x, row):
    return jnp.tanh(row @ x)


def test_spreads_of_groups_with_one_function_match_numpy():
    """Groups are joined, their errors are independent: every row of c has that of its own group, the gradient those of all."""
    rng = np.random.default_rng(4)
    groups, x, weight = (
        [rng.normal(size=(n, 2)) for n in (20, 31, 25)],
        np.array([0.7, -0.4]),
        np.array([0.5, -1.0, 2.0]),
    )
    problem = mescal.Problem(E(first_coordinate), {f"{g}": E(rate, over=rows) <= 0 for g, rows in enumerate(groups)})
    program, _ = problem.bind(x)
    assert len(program.families) == 1
    judge, sources, noisy = evaluator_of(problem, program), problem.sources, (True, True, True)
    found = confidence.moments(judge, sources, noisy, x, weight, Frame.none(x.size))
    slopes = [(1 - np.tanh(rows @ x) ** 2)[:, None] * rows for rows in groups]
    variances = [np.var(np.tanh(rows @ x)) / (len(rows) - 1) for rows in groups]
    np.testing.assert_allclose(found.constraint, np.diag(variances), rtol=1e-12, atol=1e-16)
    covariance = sum(w**2 * np.cov(j.T, ddof=0) / (len(j) - 1) for w, j in zip(weight, slopes, strict=True))
    assert found.gradient.trace == pytest.approx(np.trace(covariance))
    assert found.gradient.norm == pytest.approx(np.linalg.eigvalsh(covariance)[-1])
    assert found.jacobian == pytest.approx(sum(np.var(j, axis=0).sum() / (len(j) - 1) for j in slopes))
    assert found.objective == 0
    u, along = np.array([0.6, 0.8]), 0.0
    for w, rows in zip(weight, groups, strict=True):
        t = np.tanh(rows @ x)
        along += w**2 * np.var(-2 * t * (1 - t**2) * (rows @ u) ** 2) / (len(rows) - 1)
    assert confidence.directional(judge, noisy, x, weight, Frame.none(x.size), u) == pytest.approx(along)
    one = confidence.moments(judge, sources, (False, True, False), x, weight, Frame.none(x.size))
    np.testing.assert_allclose(one.constraint, np.diag([0, variances[1], 0]), rtol=1e-12, atol=1e-16)


def test_large_problems_are_measured_without_matrices(monkeypatch):
    """Covariances by trace and a few rows, curvature by Lanczos: close to what the matrices give, and never tighter by much."""
    dense = mescal.certify(STREAM, X, samples=SAMPLES, seed=1)
    monkeypatch.setattr(confidence, "FULL_COVARIANCE", 2)
    monkeypatch.setattr(sampled, "DENSE_SIZE", 2)
    found = mescal.certify(STREAM, X, samples=SAMPLES, seed=1)
    for name, measured in measures(found).items():
        before = measures(dense)[name]
        assert measured.value == pytest.approx(before.value, abs=1e-6)
        assert 0.9 * (before.upper - before.lower) <= measured.upper - measured.lower
        assert measured.upper - measured.lower <= 3 * (before.upper - before.lower)
    assert "Lanczos" in found.curvature.how


def test_given_bounds_are_wider_and_named():
    """|u_i| <= 1: the gradient deviates by at most sqrt 2 * 1.3, the constraint by 1, and the Hessian by 1."""
    bounded = Sampler(lambda key: jax.random.uniform(key, (2,), minval=-1.0, maxval=1.0))
    problem = mescal.Problem(
        E(lambda x, u: u @ x + 0.5 * jnp.sum((1 + u) * x**2), over=bounded),
        {"level": E(lambda x, u: u[0], over=bounded) + E(first_coordinate) == 0.3},
    )
    x = np.array([0.3, 0.0])
    deviations = {"gradient": np.sqrt(2) * 1.3, "constraint": 1.0, "hessian": 1.0}
    free = mescal.certify(problem, x, [0.0], samples=SAMPLES)
    given = mescal.certify(problem, x, [0.0], samples=SAMPLES, bounds=deviations)
    for name, kind in (("stationarity", "gradient"), ("feasibility", "constraint"), ("curvature", "hessian")):
        one, two = getattr(free, name), getattr(given, name)
        assert one.value == two.value
        assert two.lower <= one.lower and two.upper > one.upper
        assert "by the CLT" in one.how and "by the given bound" in two.how
        partly = mescal.certify(problem, x, [0.0], samples=SAMPLES, bounds={kind: deviations[kind]})
        assert getattr(partly, name) == two
    # Pinelis, at a third of 0.05.
    radius = given.feasibility.upper - given.feasibility.value
    assert radius == pytest.approx(np.sqrt(2 * np.log(2 / (0.05 / 3)) / SAMPLES))


def test_only_streams_are_noisy_beside_populations():
    """The objective over rows, the constraint over a stream: with multipliers zero, stationarity is exact."""
    rows = np.random.default_rng(0).normal(size=(50, 3))
    problem = mescal.Problem(
        E(lambda x, r: 0.5 * jnp.sum((x - r) ** 2), over=rows), {"level": E(lambda x, u: x[0] + u[0], over=NORMAL) <= 1}
    )
    x = rows.mean(0)
    inside = []
    for seed in range(30):
        certificate = mescal.certify(problem, x, [0.0], slack=[1 - x[0]], samples=SAMPLES, seed=seed)
        assert certificate.stationarity.upper == pytest.approx(0, abs=1e-12)
        assert certificate.objective.upper == certificate.objective.lower
        curvature = certificate.curvatures["paper"]
        assert curvature.lower == pytest.approx(curvature.value, abs=1e-9)
        assert curvature.upper == pytest.approx(curvature.value, abs=1e-9)
        assert certificate.feasibility.upper > certificate.feasibility.value
        inside.append(certificate.feasibility.lower == 0)
    assert np.mean(inside) >= 0.9

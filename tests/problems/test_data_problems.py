"""Neyman-Pearson and fairness: the paper's formulas written out in numpy, and tight constraints that are active."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from mescal import datasets, problems
from mescal.problems.fairness import fairness_problem

SUBSAMPLE = 2_000  # rows on which activity is shown; the full data give the table in fairness.py
FEW = 300  # rows of each population on which formulas are compared


def augmented_lagrangian(functions, x, rounds: int = 6, iterations: int = 3000):
    """min f s.t. c <= 0 (one row) by L-BFGS on full gradients: the solution and its multiplier."""
    multiplier, penalty = 0.0, 10.0
    options = {"maxiter": iterations, "maxfun": 2 * iterations, "ftol": 1e-13, "gtol": 1e-7, "maxcor": 30}
    for _ in range(rounds):
        level = (multiplier, penalty)
        x = minimize(
            lambda x, level=level: functions.augmented(x, *level)[:2], x, jac=True, method="L-BFGS-B", options=options
        ).x
        c = functions.augmented(x, *level)[2][0]
        previous, multiplier = multiplier, max(0.0, float(multiplier + penalty * c))
        if abs(multiplier - previous) < 1e-4:
            break
        penalty *= 3
    return x, multiplier


@pytest.mark.parametrize(
    ("name", "tau", "positives", "negatives", "d"),
    [
        ("spambase", 0.2, 1_813, 2_788, 57),
        ("madelon", 0.4, 1_300, 1_300, 500),
        ("breast-cancer", 0.2, 212, 357, 30),
    ],
)
def test_neyman_pearson_is_the_papers_formula(get, exact, name, tau, positives, negatives, d):
    named = get(f"neyman-pearson/{name}")
    assert [source.size for source in named.problem.sources] == [positives, negatives]
    assert named.x0.shape == (d,) and not named.x0.any()
    data = datasets.load(name)
    functions = exact(named.problem, named.x0, rows=FEW)
    x = np.random.default_rng(0).normal(size=d) * 5
    phi = lambda u: 1 / (1 + np.exp(u))
    plus, minus = (data.features[data.labels == label][:FEW].astype(float) for label in (1, -1))
    assert functions.objective(x) == pytest.approx(phi(plus @ x).mean())
    assert functions.constraints(x) == pytest.approx([phi(-minus @ x).mean() - tau])


@pytest.mark.parametrize(
    ("name", "tau", "sizes", "d"),
    [
        ("bank", 0.4, [22_605, 22_605, 6_320], 81),
        ("loan", 0.6, [63_890, 64_485, 31_356], 250),
        ("diabetes", 0.8, [442, 442, 235], 10),
        ("bank-tight", 1.0, [22_605, 22_605, 13_664], 81),
        ("loan-tight", 1.0, [63_890, 64_485, 14_996], 250),
        ("diabetes-tight", 1.1, [442, 442, 235], 10),
    ],
)
def test_fairness_is_the_papers_formula(get, exact, name, tau, sizes, d):
    named = get(f"fairness/{name}")
    assert [source.size for source in named.problem.sources] == sizes
    assert named.parameters["tau"] == tau and named.parameters["rho"] == 2
    np.testing.assert_allclose(named.x0, np.full(d, 20 / d**0.5), rtol=1e-6)
    data = datasets.load(name.removesuffix("-tight"))
    functions = exact(named.problem, named.x0, rows=FEW)
    x = np.random.default_rng(0).normal(size=d) * 5
    a, y = data.features[data.labelled][:FEW].astype(float), data.labels[data.labelled][:FEW]
    loss = np.log(1 + np.exp(-y * (a @ x)))
    assert functions.objective(x) == pytest.approx((2 * np.log(1 + loss / 2)).mean())
    population = data.features[data.population]
    target = population[data.in_group(named.parameters["group"])[data.population]]
    rates = [(1 / (1 + np.exp(-(rows[:FEW].astype(float) @ x)))).mean() for rows in (population, target)]
    assert functions.constraints(x) == pytest.approx([tau * rates[0] - rates[1]], abs=1e-10)


def test_parameters_of_fairness(exact):
    usual, other = problems.get("fairness/diabetes"), problems.get("fairness/diabetes", rho=0.5, group="sex=2")
    x = usual.x0
    values = [exact(named.problem, x).objective(x) for named in (usual, other)]
    assert values[1] < values[0]  # a smaller rho truncates more
    assert other.problem.sources[2].size == 207
    assert other.optimum is None and usual.optimum is not None


def test_diabetes_tight_is_active_and_diabetes_is_slack(exact):
    for name, active in (("diabetes", False), ("diabetes-tight", True)):
        named = problems.get(f"fairness/{name}", dtype="float64")
        functions = exact(named.problem, named.x0)
        constraint = {
            "type": "ineq",
            "fun": lambda x, f=functions: -f.constraints(x),
            "jac": lambda x, f=functions: -f.jacobian(x),
        }
        found = minimize(
            functions.objective,
            named.x0,
            jac=functions.gradient,
            constraints=[constraint],
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert found.success
        assert found.fun == pytest.approx(named.optimum, abs=2e-6)
        value, slope = functions.constraints(found.x)[0], functions.jacobian(found.x)[0]
        multiplier = -functions.gradient(found.x) @ slope / (slope @ slope)
        if active:
            assert abs(value) < 1e-7 and multiplier == pytest.approx(0.293, abs=0.01)
        else:
            assert value < -0.05 and abs(multiplier) < 1e-3


@pytest.mark.parametrize("name", ["bank-tight", "loan-tight"])
def test_tight_constraints_are_active_on_a_subsample(get, exact, name):
    """Without the constraint the solution violates it; with it, it holds with equality and a positive multiplier."""
    named = get(f"fairness/{name}")
    arrays = [jax.tree.map(np.asarray, source.arrays) for source in named.problem.sources]
    (features, labels), population, target = arrays
    part = fairness_problem(
        (features[:SUBSAMPLE], labels[:SUBSAMPLE]),
        population[:SUBSAMPLE],
        target[: SUBSAMPLE // 2],
        named.parameters["tau"],
        named.parameters["rho"],
    )
    functions = exact(part, named.x0)
    x, multiplier = augmented_lagrangian(functions, named.x0.astype(float), rounds=3, iterations=60)
    assert abs(functions.constraints(x)[0]) < 2e-3
    assert multiplier > 0.05
    residual = functions.gradient(x) + multiplier * functions.jacobian(x)[0]
    assert np.linalg.norm(residual) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "multiplier"), [("bank", 0), ("bank-tight", 0.282), ("loan", 0), ("loan-tight", 0.153)]
)
def test_optima_and_multipliers_of_the_table(get, exact, name, multiplier):
    named = get(f"fairness/{name}", dtype="float64")
    x, found = augmented_lagrangian(exact(named.problem, named.x0), named.x0)
    assert exact(named.problem, named.x0).objective(x) == pytest.approx(named.optimum, abs=1e-5)
    assert found == pytest.approx(multiplier, abs=5e-3)


def test_synthetic_fairness_has_the_sizes_asked_for_and_is_active(exact):
    named = problems.get("synthetic/fairness", rows=2_000, d=8, dtype="float64")
    assert [source.size for source in named.problem.sources] == [2_000, 2_000, 560]
    functions = exact(named.problem, named.x0)
    x, multiplier = augmented_lagrangian(functions, named.x0)
    assert abs(functions.constraints(x)[0]) < 1e-5
    assert multiplier > 0.05
    arrays = [jax.tree.map(np.asarray, source.arrays) for source in named.problem.sources]
    (features, labels), population, target = arrays
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1)
    assert 0.4 < (labels > 0).mean() < 0.6
    assert expit(target @ x).mean() == pytest.approx(0.8 * expit(population @ x).mean(), abs=1e-4)


def test_synthetic_fairness_depends_on_its_seed_alone():
    first, second, other = (problems.get("synthetic/fairness", rows=100, d=3, seed=seed) for seed in (0, 0, 1))
    arrays = [named.problem.sources[1].arrays for named in (first, second, other)]
    np.testing.assert_array_equal(arrays[0], arrays[1])
    assert not np.array_equal(arrays[0], arrays[2])

"""Saddles: started exactly at one, every solver leaves it, where first-order tests of other libraries declare success."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint, minimize

import mescal
from mescal import E, problems
from mescal.problems.sphere import eigenvalues, orthogonal

SOLVERS = ("spider", "sg-hv-nc", "natasha2", "newton-cg", "scr")
FAST = ("saddles/strict", "saddles/circle", "saddles/active-bounds")
SPHERES = ("saddles/sphere-dense", "saddles/sphere-axis")


@pytest.mark.parametrize(
    ("name", "solver"),
    [*product(FAST[:1], SOLVERS), (FAST[1], "spider"), (FAST[2], "spider")],
)  # the rest is slow
def test_every_solver_reaches_a_minimiser(check, name, solver):
    for seed in range(3):
        result, named = check(name, solver, seed)
        assert result.objective <= named.optimum + 0.01 * max(1, abs(named.optimum)), (
            f"{name} {solver} {seed}: {result}"
        )


@pytest.mark.parametrize("solver", SOLVERS)
def test_on_a_population_the_judge_leads_away(solver):
    """min E[x'(S + s)x]/2 on the unit sphere from the eigenvector of the largest eigenvalue of S, where all is stationary.

    Along the axis nothing but the judge sees that it is a saddle; its direction leads to the smallest eigenvalue.
    """
    half = 0.3 * np.random.default_rng(1).normal(size=(50, 3))
    noise = np.concatenate([half, -half]).astype(np.float32)
    objective = E(lambda x, s: (x * x) @ (jnp.array([3.0, 1.0, 2.0]) + s) / 2, over=noise)
    problem = mescal.Problem(objective, {"sphere": E(lambda x: x @ x) == 1})
    x0 = np.array([1, 0, 0], np.float32)
    start = mescal.certify(problem, x0, tol=0.01)
    assert start.stationarity.upper < 1e-6 and start.feasibility.upper < 1e-6 and start.curvature.value < -0.5
    for seed in range(3):
        result = mescal.minimize(problem, x0, solver=solver, tol=0.01, seed=seed, outer=mescal.Outer(penalty=10.0))
        assert result.converged and result.objective == pytest.approx(0.5, abs=0.01), f"{solver} {seed}: {result}"
        np.testing.assert_allclose(np.abs(result.x), [0, 1, 0], atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", [*FAST, "saddles/orthonormal"])
def test_twenty_of_twenty_seeds(check, name, solver):
    for seed in range(20):
        result, named = check(name, solver, seed)
        assert result.objective <= named.optimum + 0.01 * max(1, abs(named.optimum)), (
            f"{name} {solver} {seed}: {result}"
        )
        assert not np.array_equal(result.x, named.x0)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", SPHERES)
def test_the_leading_eigenvector_for_twenty_seeds(check, name, solver):
    """The Rayleigh quotient, exact since the covariance is known, is within 1 % of the largest eigenvalue, 1."""
    covariance = sphere_covariance(name)
    for seed in range(20):
        result, _ = check(name, solver, seed)
        x = np.asarray(result.x, np.float64)
        assert x @ covariance @ x / (x @ x) >= 0.99, f"{name} {solver} seed {seed}: {result}"


def sphere_covariance(name: str) -> np.ndarray:
    """S = E[aa'] of a sphere problem with its default parameters."""
    parameters = problems.get(name).parameters
    spectrum = eigenvalues(parameters["d"], parameters["gap"])
    if name.endswith("axis"):
        return np.diag(spectrum)
    basis = orthogonal(parameters["d"], parameters["start"])
    return (basis * spectrum) @ basis.T


def sphere_of_means(name: str):
    """f, its derivatives, and c of a sphere problem with the expectations taken: what deterministic solvers are given."""
    covariance = sphere_covariance(name)
    objective = (lambda x: -x @ covariance @ x / 2, lambda x: -covariance @ x, lambda x: -covariance)
    return covariance, objective, np.asarray(problems.get(name).x0, np.float64)


@pytest.mark.parametrize("name", SPHERES)
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_scipy_declares_success_at_the_saddle(name, method):
    """With exact derivatives: the start is stationary, so they stop there, and say that they succeeded."""
    covariance, (value, gradient, hessian), x0 = sphere_of_means(name)
    if method == "SLSQP":
        sphere = {"type": "eq", "fun": lambda x: x @ x - 1, "jac": lambda x: 2 * x}
        found = minimize(value, x0, jac=gradient, constraints=[sphere], method=method)
    else:
        bent = lambda x, v: 2 * v[0] * np.eye(x.size)
        sphere = NonlinearConstraint(lambda x: x @ x, 1, 1, jac=lambda x: 2 * x[None], hess=bent)
        found = minimize(value, x0, jac=gradient, hess=hessian, constraints=[sphere], method=method)
    assert found.success and found.status in (0, 1, 2)
    assert found.x @ covariance @ found.x / (found.x @ found.x) < 0.9
    assert np.linalg.norm(found.x - x0) < 1e-3


@pytest.mark.parametrize("name", SPHERES)
def test_ipopt_declares_success_at_the_saddle(name):
    casadi = pytest.importorskip("casadi", reason="Ipopt comes with casadi, of the extra `bench`")
    covariance, _, x0 = sphere_of_means(name)
    x = casadi.MX.sym("x", x0.size)
    program = {"x": x, "f": -casadi.dot(x, casadi.DM(covariance) @ x) / 2, "g": casadi.dot(x, x)}
    quiet = {"print_time": False, "ipopt": {"print_level": 0, "sb": "yes"}}
    solver = casadi.nlpsol("solver", "ipopt", program, quiet)
    found = np.asarray(solver(x0=x0, lbg=1, ubg=1)["x"]).ravel()
    assert solver.stats()["success"] and solver.stats()["return_status"] == "Solve_Succeeded"
    assert found @ covariance @ found / (found @ found) < 0.9
    assert np.linalg.norm(found - x0) < 1e-3


@pytest.mark.parametrize("name", SPHERES)
def test_the_start_is_a_saddle_to_rounding(name):
    covariance, (_, gradient, _), x0 = sphere_of_means(name)
    slope = gradient(x0)
    assert np.linalg.norm(slope - (slope @ x0) / (x0 @ x0) * x0) < 1e-6
    lowest = np.linalg.eigvalsh(-covariance - (slope @ x0) / (x0 @ x0) * np.eye(x0.size))[0]
    assert lowest < -0.1

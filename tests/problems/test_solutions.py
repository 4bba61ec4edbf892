"""Known minimisers: feasible, stationary, with the stated objective, and no curvature downwards on the critical cone."""

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import minimize

from mescal import problems

CLASSICS = [name for name in problems.names() if name.startswith("hock-schittkowski/")]
DETERMINISTIC = [*CLASSICS, "saddles/strict", "saddles/circle", "saddles/active-bounds"]


def active_rows(named) -> np.ndarray:
    """The normals of the domain's bounds that hold with equality at the solution, pointing outwards."""
    cone = named.problem.domain.tangent_cone(named.solution)
    size = named.solution.size
    return np.concatenate([-np.eye(size)[cone.lower], np.eye(size)[cone.upper]])


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_solutions_satisfy_the_optimality_conditions(name, exact):
    named = problems.get(name, sigma=0)
    functions, x = exact(named.problem, named.x0), named.solution
    assert functions.objective(x) == pytest.approx(named.optimum, abs=1e-12)
    assert np.abs(functions.constraints(x)).max(initial=0) < 1e-12
    jacobian, bounds = functions.jacobian(x).reshape(-1, x.size), active_rows(named)
    normals = np.concatenate([jacobian, bounds])
    multipliers = np.linalg.lstsq(normals.T, -functions.gradient(x), rcond=None)[0]
    assert np.linalg.norm(functions.gradient(x) + normals.T @ multipliers) < 1e-10
    m = len(jacobian)
    assert (multipliers[m:] > 0.1).all()  # strictly active, so the critical cone is a subspace
    free = null_space(normals) if len(normals) else np.eye(x.size)
    hessian = functions.hessian(x, multipliers[:m])
    assert np.linalg.eigvalsh(free.T @ hessian @ free).min(initial=np.inf) > -1e-10


@pytest.mark.parametrize("name", CLASSICS)
def test_a_solver_of_others_finds_the_published_optimum(name, exact):
    named = problems.get(name, sigma=0)
    functions = exact(named.problem, named.x0)
    constraint = {"type": "eq", "fun": functions.constraints, "jac": functions.jacobian}
    found = minimize(
        functions.objective,
        named.x0.astype(float),
        jac=functions.gradient,
        constraints=[constraint],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.abs(functions.constraints(found.x)).max() < 1e-6
    # 26 is degenerate: its objective is quartic along a feasible direction.
    assert found.fun == pytest.approx(named.optimum, abs=1e-5 if name.endswith("/26") else 1e-7)


def test_published_start_points():
    starts = {name.rpartition("/")[2]: problems.get(name).x0.tolist() for name in CLASSICS}
    expected = {"6": [-1.2, 1], "7": [2, 2], "26": [-2.6, 2, 2], "39": [2] * 4, "40": [0.8] * 4}
    assert starts == {number: pytest.approx(x0) for number, x0 in expected.items()}

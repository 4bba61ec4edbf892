"""Feasibility apart from stationarity: constraints met exactly on finite data, with confidence on streams; and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, Sampler, Tolerance
from mescal.errors import InputError

RNG = np.random.default_rng(5)
POSITIVES = RNG.normal(+0.5, 1.0, size=(300, 3)).astype(np.float32)
NEGATIVES = RNG.normal(-0.5, 1.0, size=(200, 3)).astype(np.float32)
BOUND = 0.3


def score(w, a):
    return jax.nn.sigmoid(a @ w)


def miss(w, a):
    return 1 - score(w, a)


RATES = mescal.Problem(
    E(miss, over=POSITIVES), {"rate": E(score, over=NEGATIVES) <= BOUND}, mescal.sets.Box(-20.0, 20.0)
)
START = np.zeros(3, np.float32)


def rate(w: np.ndarray) -> float:
    """In plain numpy."""
    return float(np.mean(1 / (1 + np.exp(-NEGATIVES.astype(np.float64) @ np.asarray(w, np.float64)))))


@pytest.mark.parametrize("solver", ["auto", "spider", "null-space"])
def test_constraints_are_met_exactly(solver):
    result = mescal.minimize(RATES, START, solver=solver, tol=Tolerance(0.01, 0.01, feasibility=0), seed=0)
    certificate = result.certificate
    assert result.converged and certificate.violation.upper == 0
    assert rate(result.x) <= BOUND  # whoever computes it
    assert certificate.complementarity.upper <= 0.01
    assert {check.name for check in certificate.checks(result.tolerance)} == {
        "stationarity",
        "violation",
        "complementarity",
        "curvature",
    }


def test_bounds_move_by_little_and_compile_nothing():
    free = mescal.minimize(RATES, START, tol=0.01, seed=0)
    with mescal.testing.count_compilations() as counted:
        held = mescal.minimize(RATES, START, tol=Tolerance(0.01, 0.01, feasibility=0), seed=0)
    assert counted.count == 0
    moved = 0.01 / 8
    assert held.objective - free.objective <= 2 * moved * float(held.multipliers["rate"]) + 1e-3


def test_a_stream_is_met_with_confidence():
    """x'x + E[z] <= 1/2 with E[z] = 0: the truth is known, and the judge's upper end of the violation is 0."""
    draw = Sampler(lambda key: jax.random.normal(key))
    objective = E(lambda x, z: jnp.sum((x - 1) ** 2) + z * x[0], over=draw)
    problem = mescal.Problem(objective, {"size": E(lambda x, z: x @ x + z / 2 - 0.5, over=draw) <= 0})
    result = mescal.minimize(problem, np.zeros(2, np.float32), tol=Tolerance(0.05, 0.05, feasibility=0), seed=0)
    assert result.converged and result.certificate.violation.upper == 0
    assert np.sum(np.asarray(result.x, np.float64) ** 2) <= 0.5


def test_bounds_that_cannot_be_moved_so_far_are_moved_less():
    """x^2 <= 1e-3 has no point once its bound is moved by an eighth of the tolerance: a smaller move is found."""
    problem = mescal.Problem(E(lambda x: (x[0] - 1) ** 2), {"narrow": E(lambda x: x[0] ** 2) <= 1e-3})
    result = mescal.minimize(problem, np.ones(1), tol=Tolerance(0.01, 0.01, feasibility=0), seed=0)
    assert result.converged and float(result.x[0]) ** 2 <= 1e-3


def test_a_smaller_feasibility_holds_for_equalities():
    problem = mescal.Problem(E(lambda x: x[0] ** 2 + x[1]), {"circle": E(lambda x: x @ x) == 1.0})
    result = mescal.minimize(problem, np.array([0.6, 0.8]), tol=Tolerance(0.01, 0.01, feasibility=1e-6), seed=0)
    assert result.converged and abs(float(result.x @ result.x) - 1) <= 1e-6


def test_equalities_cannot_be_met_exactly():
    problem = mescal.Problem(E(lambda x: x @ x), {"sum": E(lambda x: x[0] + x[1]) == 1.0})
    with pytest.raises(InputError, match="two inequalities"):
        mescal.minimize(problem, np.zeros(2), tol=Tolerance(0.01, 0.01, feasibility=0))


def test_violation_and_complementarity_are_two_measures():
    """By hand, for x <= 1 at x = 0.9 with multiplier 2, and at x = 1.2."""
    problem = mescal.Problem(E(lambda x: -2 * x[0]), {"cap": E(lambda x: x[0]) <= 1.0})
    inside = mescal.certify(problem, np.array([0.9]), {"cap": 2.0}, slack={"cap": 0.0})
    assert inside.violation.value == 0 and inside.violation.upper == 0
    assert inside.complementarity.value == pytest.approx(0.1) and inside.feasibility.value == pytest.approx(0.1)
    assert inside.passes(Tolerance(0.11, 0.1)) and inside.passes(Tolerance(0.11, 0.1, feasibility=0))
    outside = mescal.certify(problem, np.array([1.2]), {"cap": 2.0})
    assert outside.violation.value == pytest.approx(0.2) and outside.complementarity.value == pytest.approx(
        0, abs=1e-15
    )
    assert not outside.passes(Tolerance(0.3, 0.1, feasibility=0.1)) and outside.passes(Tolerance(0.3, 0.1))


def test_a_satisfied_constraint_violates_nothing_whatever_slack_is_given():
    """c = -0.0107 with multiplier 0 and a slack of 0.004: complementarity's residual is 0.0067, and the violation nothing."""
    problem = mescal.Problem(E(lambda x: x[0] ** 2), {"cap": E(lambda x: x[0]) <= 0.0107})
    certificate = mescal.certify(problem, np.zeros(1), {"cap": 0.0}, slack={"cap": 0.004}, tol=0.005)
    assert certificate.violation.upper == 0 and not certificate.passes(0.005)
    assert certificate.complementarity.value == pytest.approx(0.0067)
    assert mescal.certify(problem, np.zeros(1), {"cap": 0.0}, tol=0.005).passes(
        0.005
    )  # the judge's own slack is the best


def test_runs_are_judged_at_the_best_slacks():
    """A run that ends at x = 0, where the cap has room, shows no residual: whatever the solver's slack was."""
    problem = mescal.Problem(E(lambda x: x[0] ** 2), {"cap": E(lambda x: x[0]) <= 0.0107})
    result = mescal.minimize(problem, np.ones(1), tol=0.005, seed=0)
    assert result.converged and result.certificate.feasibility.value == pytest.approx(0, abs=1e-12)

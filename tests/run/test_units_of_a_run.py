"""Scaling is undone in all that a run reports: penalty, step and values of the augmented Lagrangian too."""

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, Tolerance
from mescal.run.scaling import Scales, choose_scales

FACTOR, ROW = 1e4, 1e3
DATA = np.array([[0.0, 0.0], [2.0, 0.0]], np.float32)  # mean (1, 0)


def bowl(x, a):
    return FACTOR * jnp.sum((x - a) ** 2) / 2


def height(x, a):
    return ROW * (x[1] - 1 + 0 * a[0])


@pytest.fixture(scope="module")
def problem() -> mescal.Problem:
    return mescal.Problem(E(bowl, over=DATA), {"height": E(height, over=DATA) == 0})


@pytest.fixture(scope="module")
def result(problem) -> mescal.Result:
    tol = Tolerance(gradient=FACTOR / 100, curvature=FACTOR / 100)
    return mescal.minimize(problem, np.zeros(2, np.float32), tol=tol, solver="spider")


def test_there_and_back():
    scales = Scales(0.5, np.array([0.1, 4.0]), np.zeros(2))
    assert scales.penalty(3.0) == pytest.approx(3.0 * 16 / 0.5)
    assert scales.scaled_penalty(scales.penalty(3.0)) == pytest.approx(3.0)
    assert Scales(0.5, np.zeros(0), np.zeros(0)).scaled_penalty(
        Scales(0.5, np.zeros(0), np.zeros(0)).penalty(3.0)
    ) == pytest.approx(3.0)


def test_sizes_that_say_nothing_leave_the_scale_alone():
    scales = choose_scales(np.nan, np.array([np.inf, 0.0, 1.0, 1e4]))
    assert scales.objective == 1 and scales.constraints.tolist() == [1.0, 1.0, 1.0, 1e-4]


def test_everything_is_scaled_or_nothing():
    """A row left alone beside an f brought to 1 would have a penalty out of proportion."""
    near = choose_scales(50.0, np.array([90.0, 0.02]))
    assert near.objective == 1 and near.constraints.tolist() == [1.0, 1.0]
    far = choose_scales(4e4, np.array([50.0, 200.0]))
    assert far.objective == 1 / 4e4 and far.constraints.tolist() == [1 / 50, 1 / 200]


def test_a_far_start_makes_no_ill_conditioned_subproblems():
    """BT3 of CUTEst starts at (20, ..., 20), where f is large and two of three linear rows are: 2.5e4 evaluations.

    With only large sizes scaled, the third row had a penalty of 6e3, and 3e6 evaluations did not suffice.
    """

    def squares(x):
        return (x[0] - x[1]) ** 2 + (x[1] + x[2] - 2) ** 2 + (x[3] - 1) ** 2 + (x[4] - 1) ** 2

    def rows(x):
        return jnp.stack([x[0] + 3 * x[1], x[2] + x[3] - 2 * x[4], x[1] - x[4]])

    far = mescal.Problem(E(squares), {"rows": E(rows) == 0})
    result = mescal.minimize(far, np.full(5, 20, np.float32), solver="spider", tol=0.01, max_work=2e5)
    assert result.converged and result.objective == pytest.approx(4.0930, abs=0.05)  # the published minimum


def test_values_are_those_of_the_problem_as_stated(result):
    """L = f + lam c + al c^2/2 at the start: f = 1e4 (0 + 4)/4 = 1e4, c = -1e3, lam = 0."""
    row = result.history[0]
    assert row.multipliers == (0.0,)
    assert row.value_start == pytest.approx(FACTOR + row.penalty / 2 * ROW**2, rel=1e-5)


def test_steps_are_those_of_the_problem_as_stated(result):
    """A step times the curvature of L, 1e4 in x_1 and 1e4 + al 1e6 in x_2, is of the order of 1, not of the scales."""
    row = result.history[-1]
    assert 0.1 < row.step * (FACTOR + row.penalty * ROW**2) < 100


def test_the_judge_measures_the_whole_space_at_the_same_penalty(result):
    assert result.converged
    assert result.certificate.penalty == pytest.approx(result.penalty)
    assert result.penalty == pytest.approx(result.history[-1].penalty)


def test_the_penalty_survives_a_continuation(problem, result):
    """Scales are chosen anew where a run continues; the penalty of the problem as stated goes on from where it was."""
    again = mescal.minimize(problem, tol=result.tolerance, start=result, max_outer=1, solver="spider")
    assert again.history[0].penalty >= result.penalty * (1 - 1e-6)
    assert again.converged

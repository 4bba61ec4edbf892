"""Reset batches of streams: as large as the noise of stationarity and of feasibility ask, whatever the scales."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.run.between_solves import (
    LARGEST_RESET,
    RESET_ACCURACY,
    RESET_BASE,
    RESET_SHARE,
    SMALLEST_RESET,
    largest_reset,
    next_goal,
)
from mescal.run.mescal import prepare
from mescal.run.settings import Outer, Settings
from mescal.solvers import Spider

ROW, NOISE = 1e3, 0.01


def reset_batch(tol) -> tuple[int, float]:
    """The batch of the first reset for a constraint 1e3 (x_1 - 1 + 0.01 xi), and the scale of its row."""
    normal = mescal.Sampler(lambda key: jax.random.normal(key))
    constraint = E(lambda x, xi: ROW * (x[0] - 1 + NOISE * xi), over=normal) == 0
    problem = mescal.Problem(E(lambda x: jnp.sum(x**2)), {"c": constraint})
    settings = Settings(tol=tol, cone="paper", max_outer=1, outer=Outer(max_inner=1))
    method, here, state, _ = prepare(problem, np.zeros(2, np.float32), Spider(), settings, None)
    _, goal = next_goal(here, state, method.oracle(here, state))
    return goal.large_batch, float(state.scales.constraints[0])


def test_feasibility_is_resolved_in_the_units_of_the_problem():
    """c errs by 10 per sample: (10/(0.2 tol))^2 samples, from a variance of 1024 samples, that is to 4.4 % (four of them)."""
    batch, scale = reset_batch(0.4)
    assert scale < 0.01  # the solver sees a row of unit size
    assert batch == pytest.approx((ROW * NOISE / (RESET_ACCURACY * 0.4)) ** 2, rel=0.18)
    assert SMALLEST_RESET < batch < RESET_BASE


def test_a_loose_tolerance_asks_for_the_least():
    assert reset_batch(20.0)[0] == SMALLEST_RESET


@pytest.mark.parametrize(("spent", "largest"), [(0, RESET_BASE), (4e6, int(4e6 * RESET_SHARE)), (1e12, LARGEST_RESET)])
def test_no_estimate_costs_more_than_a_share_of_the_work_so_far(spent, largest):
    assert largest_reset(spent) == largest

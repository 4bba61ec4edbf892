"""The dual update: bounded for any noise, plain without a bound, idle where the constraint is zero; and when the penalty rises."""

import numpy as np

import mescal
from mescal import E
from mescal.run.between_solves import dual_step, summable_bound
from mescal.theory import dual_bound_total


def test_bounded_for_any_noise():
    rng = np.random.default_rng(0)
    multipliers, total = np.zeros(3), 0.0
    for k in range(500):
        noise = rng.standard_cauchy(3) * 10.0 ** rng.integers(-3, 6)
        bound = summable_bound(k, 2.0)
        multipliers, total = dual_step(multipliers, noise, 1.1**k, bound), total + bound
        assert np.linalg.norm(multipliers) <= total * (1 + 1e-12)
    assert total < dual_bound_total(2.0)


def test_without_a_bound_it_is_the_plain_update():
    multipliers, c = np.array([1.0, -2.0]), np.array([0.3, 0.4])
    np.testing.assert_allclose(dual_step(multipliers, c, 5.0, np.inf), multipliers + 5 * c)
    assert dual_step(multipliers, np.zeros(2), 5.0, np.inf) is multipliers


def test_the_penalty_stays_after_an_inner_solve_that_was_cut_off():
    """Two steps from the origin meet no constraint: what is missing is steps, which a larger penalty would make shorter."""
    rows = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    problem = mescal.Problem(
        E(lambda x, a: (a @ x - 1) ** 2, over=rows),
        {"length": E(lambda x: x @ x) == 1, "first": E(lambda x: x[0]) == 1},
    )
    capped = mescal.Outer(max_inner=2)
    run = mescal.minimize(problem, np.zeros(6, np.float32), solver="spider", tol=1e-4, outer=capped, max_outer=6)
    cut = [(row, after) for row, after in zip(run.history, run.history[1:], strict=False) if row.inner == "cap"]
    assert any(row.feasibility > 0.1 for row, _ in cut)
    assert all(after.penalty == row.penalty for row, after in cut)

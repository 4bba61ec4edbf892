"""The single loop in theory mode: runs with known constants, what ends them, and what is refused."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, sets, theory
from mescal.errors import InputError
from mescal.run.single_theory import CONTRADICTED
from mescal.run.theory_schedule import ESTIMATED
from mescal.solvers import NullSpaceTheory

A, W = 0.125, 1.85
SIGNS = np.array([1.0, -1.0], np.float32)
START, TOL = np.array([0.0, 0.9], np.float32), mescal.Tolerance(0.1, 0.3)
CONSTANTS = theory.ProblemConstants(
    dimension=2, constraint_count=1,
    objective_bound=A, objective_gradient_bound=A * W, constraint_bound=1.0, jacobian_bound=1.0,
    constraint_hessian_bound=0.0, regularity=1.0,
    objective_gradient_lipschitz=1.2 * A * W**2, objective_hessian_lipschitz=1.2 * A * W**3,
    constraint_gradient_lipschitz=0.0, constraint_hessian_lipschitz=0.0,
    objective_gradient_noise=0.2 * A * W, objective_hessian_noise=0.2 * A * W**2, constraint_noise=0.05,
)  # fmt: skip


def wave(x, s):
    """A cos(W u): a saddle of f on the line v = 0 at u = 0, minimisers at +-pi/W."""
    return A * (1 + 0.2 * s) * jnp.cos(W * x[0])


def line(x, s):
    return x[1] + 0.05 * s


FINITE = mescal.Problem(E(wave, over=SIGNS), {"c": E(line, over=SIGNS.copy()) == 0})


def solved(problem=FINITE, constants=CONSTANTS, success=None, option="II", **given):
    """A run from the ridge, off the line, with the constants."""
    solver = NullSpaceTheory(sharp=True, constants=constants, success=success, option=option)
    return mescal.minimize(problem, START, solver=solver, **{"tol": TOL, "seed": 0} | given)


def sign(key):
    return 1.0 - 2.0 * (jax.random.key_data(key)[0] & 1).astype(jnp.float32)


def test_twenty_of_twenty_seeds_meet_the_guarantee():
    """Promised is one half; estimates are exact here, and Markov's inequality is all that could fail."""
    sides = set()
    for seed in range(20):
        result = solved(seed=seed)
        row = result.history[-1]
        assert result.converged and row.inner == "verified" and not result.reason and not result.warnings
        assert abs(result.x[1]) <= 0.1 and abs(abs(result.x[0]) - math.pi / W) < 0.2
        assert len(result.history) == 1 and result.penalty == 2.0  # beta = 2 Lam/s with Lam = eps_g/eps_c
        assert row.multipliers[0] == pytest.approx(0.0, abs=1e-6)  # of least squares: f does not depend on v
        sides.add(float(np.sign(result.x[0])))
    assert sides == {-1.0, 1.0}  # the sign of an escape is a fair coin


def test_steps_are_those_of_the_formulas():
    """All of the same length but for escapes, which are as long as the formula says; so many that v = 0.9 is reached."""
    start = theory.merit.merit_constants(CONSTANTS, 0.1, 0.1, start=A + 0.81, sharp=True)
    p = theory.null_space.parameters(start, TOL.gradient, TOL.curvature, population=2)
    result = solved()
    row = result.history[-1]
    assert row.step == pytest.approx(p.step_length, rel=1e-5) and row.large_batch == 2
    assert row.inner_steps >= (0.9 - 0.1) / p.step_length + p.block_steps and row.inner_steps <= p.steps
    assert row.stationarity <= p.stop_threshold


@pytest.mark.slow
def test_a_stream_is_certified():
    stream = mescal.Problem(
        E(wave, over=mescal.Sampler(sign)), {"c": E(line, over=mescal.Sampler(lambda key: sign(key))) == 0}
    )
    for seed in range(3):
        result = solved(stream, seed=seed)
        assert result.converged and result.history[-1].inner == "verified", result


def test_curved_constraints_and_a_multiplier():
    """min (x0 + x1)/4 on |x|^2 = 2, from near the maximiser: (-1, -1), with multiplier 1/8 for c = |x|^2 - 2."""
    problem = mescal.Problem(
        E(lambda x, s: (x[0] + x[1]) * (0.25 + 0.05 * s), over=SIGNS),
        {"c": E(lambda x, s: x @ x - 2 + 0.1 * s * x[0], over=SIGNS.copy()) == 0},
    )
    size = 1.5  # |x| in [1.3, 1.5] is all that such a run sees
    constants = theory.ProblemConstants(
        dimension=2, constraint_count=1,
        objective_bound=0.6, objective_gradient_bound=0.36, constraint_bound=0.35, jacobian_bound=2 * size,
        constraint_hessian_bound=2.0, regularity=2.6,
        objective_gradient_lipschitz=1e-3, objective_hessian_lipschitz=1e-3,
        constraint_gradient_lipschitz=2.0, constraint_hessian_lipschitz=1e-3,
        objective_gradient_noise=0.08, constraint_noise=0.15, jacobian_noise=0.1,
    )  # fmt: skip
    x0 = np.array([1.0, 1.02], np.float32)
    result = mescal.minimize(
        problem, x0, solver=NullSpaceTheory(sharp=True, constants=constants), tol=mescal.Tolerance(0.1, 0.2), seed=0
    )
    assert result.converged and result.history[-1].inner == "verified", result
    np.testing.assert_allclose(result.x, -1.0, atol=0.25)
    assert result.multipliers["c"] == pytest.approx(0.125, abs=0.02)


def test_a_higher_probability_takes_more_steps_at_most():
    """Not more that are taken: bounds on what can happen grow, and with them batches."""
    often, seldom = solved(success=0.99), solved(success=0.5)
    assert often.converged and seldom.converged and often.work.total >= seldom.work.total


def test_constants_are_estimated_where_none_are_given():
    result = solved(constants=None)
    assert result.warnings == (ESTIMATED,) and result.converged


def test_a_checkpoint_carries_it_on_bit_for_bit(tmp_path):
    whole = solved()
    cut = solved(max_work=0.4 * whole.work.total, checkpoint=tmp_path)
    assert not cut.converged
    again = mescal.resume(tmp_path, FINITE, max_work=1e12)
    assert np.array_equal(again.x, whole.x) and again.work.total == whole.work.total


def test_constants_that_the_run_contradicts():
    """c = v^2/2 - 1/2: its gradient vanishes at v = 0, from where nothing may be promised; constants that say 1 are found out."""
    bent = mescal.Problem(E(wave, over=SIGNS), {"c": E(lambda x, s: (x[1] ** 2 - 1) / 2 + 0.0 * s, over=SIGNS) == 0})
    result = mescal.minimize(
        bent, np.array([0.3, 0.2], np.float32), solver=NullSpaceTheory(sharp=True, constants=CONSTANTS), tol=TOL
    )
    assert not result.converged and result.reason == CONTRADICTED


class TestRefusals:
    def test_inequalities(self):
        problem = mescal.Problem(E(wave, over=SIGNS), {"c": E(line, over=SIGNS.copy()) <= 0})
        with pytest.raises(InputError, match="1 inequalities"):
            solved(problem)

    def test_other_sets(self):
        problem = mescal.Problem(E(wave, over=SIGNS), {"c": E(line, over=SIGNS.copy()) == 0}, sets.Ball(5.0))
        with pytest.raises(InputError, match="all of space"):
            solved(problem)

    @pytest.mark.parametrize("rows", [0, 3, 65])
    def test_too_many_rows_and_none(self, rows):
        given = {"c": E(lambda x, s: jnp.ones(rows) * x[1] + s, over=SIGNS) == 0} if rows else {}
        with pytest.raises(InputError, match=f"{rows} scalar constraints on 2 variables"):
            solved(mescal.Problem(E(wave, over=SIGNS), given))

    def test_an_expectation_and_other_constants(self):
        with pytest.raises(InputError, match="guarantee is a probability"):
            solved(option="I")
        with pytest.raises(InputError, match="3 variables"):
            solved(constants=dataclasses.replace(CONSTANTS, dimension=3))

    def test_no_constants_beside_the_practical_mode(self):
        with pytest.raises(InputError, match="null-space-theory"):
            mescal.solvers.get("null-space", constants=CONSTANTS)

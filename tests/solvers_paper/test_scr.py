"""SCR in theory mode: the lemma behind its constants, its plan, its work, and the promised success probability."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from mescal.errors import InputError
from mescal.oracle import surrogate
from mescal.solvers import ScrTheory
from mescal.solvers.base import EXHAUSTED, VERIFIED
from mescal.theory import scr
from mescal.theory.success import lower_bound

SOLVER = ScrTheory()


@pytest.fixture(scope="module")
def own(make_lagrangian, subproblem):
    """The subproblem with the symmetric estimator."""
    return replace(subproblem, oracle=replace(subproblem.oracle, surrogate=surrogate("cross")))


def test_the_plan_has_the_numbers_of_the_formulas(own):
    """L_H = 1, s_g = s_H = 0.1, Delta = 0.3, tolerances 0.1 and 0.3: eps = 0.09, r = 0.192, T = 2433 + 1."""
    p = scr.parameters(own.constants, 0.1, 0.3)
    assert p.accuracy == pytest.approx(0.09) and p.radius == pytest.approx(0.192)
    decrease = 0.64**3 / 12 - 0.0142 * 0.64 - 0.04 * 0.64**2 / 2
    assert p.steps == int(np.ceil(0.3 / (decrease * 0.027))) + 1
    error = 0.0142 * 0.09
    assert p.perturbation == pytest.approx(0.1 * error)
    assert p.gradient_batch == int(np.ceil(2 * (0.1 / (0.9 * error)) ** 2 * np.log(12 * p.steps)))
    assert p.hessian_batch(2) == int(np.ceil(2 * (0.1 / (0.04 * 0.3)) ** 2 * np.log(24 * p.steps)))
    plan = own.plan(SOLVER)
    assert int(plan.gradient_batch) == p.gradient_batch and int(plan.steps) == p.steps
    assert abs(int(plan.hessian_batch(2)) - p.hessian_batch(2)) <= 1  # float32
    assert scr.work(p, 2).worst.gradients == p.steps * p.gradient_batch


def test_the_looser_tolerance_does_not_decide(own):
    wide, tight = scr.parameters(own.constants, 0.01, 10.0), scr.parameters(own.constants, 0.01, 0.01)
    assert wide.accuracy == pytest.approx(0.01 / scr.LEFT) and tight.accuracy == pytest.approx(1e-4)
    few = scr.parameters(own.constants, 0.1, 0.3, population=500)
    assert few.exact_gradients and few.gradient_batch == 500


def test_the_lemma_on_random_models():
    """Inexact g and B at the allowed errors, exact minimisers of the model, functions with L_H = 1.

    L = g.x + x'Hx/2 + sum_i s_i x_i^3/6 with signs s_i: its Hessian moves by at most |x - y|.
    """
    rng, short, long = np.random.default_rng(0), 0, 0
    for _ in range(1000):
        eps = 10 ** rng.uniform(-3, 0)
        g, s = rng.normal(size=3) * eps * 10 ** rng.uniform(-2, 1), rng.choice([-1, 1], 3)
        H = rng.normal(size=(3, 3)) * np.sqrt(eps) * 10 ** rng.uniform(-2, 0.3)
        H = (H + H.T) / 2
        e, E = rng.normal(size=3), rng.normal(size=(3, 3))
        e *= scr.GRADIENT_ERROR * eps / np.linalg.norm(e)
        E = (E + E.T) / 2
        E *= scr.HESSIAN_ERROR * np.sqrt(eps) / np.linalg.norm(E, 2)
        d = minimiser(g + e, H + E)
        r = np.linalg.norm(d)
        change = g @ d + d @ H @ d / 2 + s @ d**3 / 6
        if r > scr.STOP * np.sqrt(eps):
            long += 1
            assert change <= -scr.DECREASE * eps**1.5 * (1 - 1e-9)
        else:
            short += 1
            assert np.linalg.norm(g + H @ d + s * d**2 / 2) <= scr.LEFT * eps * (1 + 1e-9)
            assert np.linalg.eigvalsh(H + np.diag(s * d))[0] >= -np.sqrt(eps) * (1 + 1e-9)
    assert min(short, long) > 40


def minimiser(g, B):
    """argmin g.d + d'Bd/2 + |d|^3/6 by halving, in the eigenbasis."""
    values, vectors = np.linalg.eigh(B)
    b = vectors.T @ g
    low = max(0.0, -2 * values[0])
    high = low + 2 * np.sqrt(np.linalg.norm(b)) + 2 * np.abs(values).max() + 1
    for _ in range(200):
        middle = (low + high) / 2
        longer = np.linalg.norm(b / (values + middle / 2)) > middle
        low, high = (middle, high) if longer else (low, middle)
    return -vectors @ (b / (values + high / 2))


def test_work_is_that_of_a_hand_count(own):
    """n1 gradients and d n2 products a step."""
    plan = own.plan(SOLVER)
    state = own.advance(SOLVER, own.begin(SOLVER, plan, 0), plan, 2)
    counted = state.progress.work.tally()
    assert int(state.progress.steps) == 2
    assert counted.hvps == 2 * 2 * int(plan.hessian_batch(2))
    assert counted.gradient_samples == 2 * int(plan.gradient_batch)


def test_the_promised_success(own):
    """8 runs prove 2/3 at 95 % if all succeed; they end long before T steps."""
    plan = own.plan(SOLVER)
    ends = [own.solve(SOLVER, plan, seed).progress for seed in range(8)]
    assert all(int(end.status) == VERIFIED and int(end.steps) < 100 for end in ends)
    assert lower_bound(sum(own.good(end.z) for end in ends), 8) >= scr.SUCCESS_PROBABILITY


def test_too_few_steps_end_without_a_word(own):
    plan = eqx.tree_at(lambda p: p.steps, own.plan(SOLVER), jnp.int32(1))
    assert int(own.solve(SOLVER, plan, 0).progress.status) == EXHAUSTED


def test_constants_are_asked_for(own):
    with pytest.raises(InputError, match="no constants"):
        SOLVER.plan(own.goal(constants=None), jnp.float32)

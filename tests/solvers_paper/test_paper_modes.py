"""Paper modes: what their steps cost, counted by hand, how often they search, and what no practical recursion does.

The search here costs one product and finds nothing, or it knows the Hessian; so that counts are small numbers.
"""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal.errors import InputError
from mescal.solvers import Spider, SpiderPaper
from mescal.testing.exercises import ROWS, nearest
from tests.solvers_paper.watched import PENALTY, Nowhere, lengths, walk

SPIDER = SpiderPaper(step_length=0.05, batch=4, period=8, block=20, every=1, inner_steps=50, search=Nowhere())


def test_work_of_spider_is_a_hand_count(small):
    """After t steps: a reset of all rows every 8, two small batches in every other step, a search every 20."""
    for progress in walk(SPIDER, small, 45):
        t = int(progress.steps)
        resets, searches = -(-t // 8), -(-t // 20)
        tally = progress.work.tally()
        assert (tally.gradients, tally.hvps) == (ROWS * resets + 2 * 4 * (t - resets), searches)
        assert progress.searches.tally().hvps == searches


def test_steps_of_spider_have_one_length(small):
    """eta/al, whatever the gradient is; those of the practical recursion have the gradient's."""
    np.testing.assert_allclose(lengths(walk(SPIDER, small, 20)), 0.05 / PENALTY, rtol=1e-3)
    practical = lengths(walk(Spider(batch=4, period=1), small, 6))
    assert practical.max() > 1.5 * practical.min()


def test_mini_steps_along_negative_curvature_change_the_length_of_nothing(subproblem, knowing_solvers):
    """On a ridge a block moves along one direction, by its number of steps, and looks nowhere else before the next block."""
    known = knowing_solvers["spider"].search
    solver = replace(SPIDER, search=known, reset=32, batch=2, block=10, step_length=0.02)
    plan = solver.plan(subproblem.goal(), jnp.float32)
    state = subproblem.begin(solver.steps, plan, 0)
    points = [np.asarray(state.progress.z, np.float64)]
    for _ in range(10):
        state = subproblem.advance(solver.steps, state, plan, 1)
        points.append(np.asarray(state.progress.z, np.float64))
    moves = np.diff(points, axis=0)
    np.testing.assert_allclose(moves, np.broadcast_to(moves[0], moves.shape), atol=1e-6)
    assert np.linalg.norm(moves[0]) == pytest.approx(0.02, rel=1e-3)
    assert (int(state.progress.escapes), state.progress.searches.tally().hvps) == (1, 1)


def test_a_run_is_algorithm_1_of_section_5():
    """al_k = 1.1^(k+1), no scaling, lambda_0 and gamma_k as given, and work that is the sum of the inner solves'."""
    at, seen = nearest(), []
    solver = replace(SPIDER, every=25, multipliers=0.3, gamma=(0.0, 0.01), watch=lambda alpha, look: seen.append(look))
    result = mescal.minimize(at.problem, at.x0, solver=solver, tol=1e-9, max_outer=3, seed=0)
    assert [row.penalty for row in result.history] == pytest.approx([1.1, 1.21, 1.331])
    first, second, third = (row.multipliers[0] for row in result.history)
    assert first == second == 0.3  # gamma_0 = 0
    assert abs(third - 0.3) <= 0.01 * (1 + 1e-6) and third != 0.3
    assert [look.steps for look in seen] == [25, 50] * 3
    assert result.history[-1].work == pytest.approx(sum(look.work for look in seen[1::2]))
    assert [row.inner for row in result.history] == ["cap"] * 3


def test_looks_come_at_every_step_and_then_at_a_share_of_the_steps_so_far():
    """Where nobody says how often: an inner solve is at most 1/32 of its steps longer than the paper's test asks for."""
    at, seen = nearest(), []
    solver = replace(SPIDER, every=0, inner_steps=100, watch=lambda alpha, look: seen.append(look.steps))
    mescal.minimize(at.problem, at.x0, solver=solver, tol=1e-9, max_outer=1, seed=0)
    assert seen[:64] == list(range(1, 65)) and seen[64:] == [*range(66, 97, 2), 99, 100]


def test_dual_samples_are_paid_and_streams_are_refused():
    """|S^d_k| values a third of a gradient each, in outer iteration k, the last on and on; the paper's test needs all rows."""
    at, works = nearest(), []
    for sizes in (0, (30, 60)):
        solver = replace(SPIDER, every=10, inner_steps=10, dual_batch=sizes)
        result = mescal.minimize(at.problem, at.x0, solver=solver, tol=1e-9, max_outer=3, seed=0)
        works.append(result.history.column("work"))
    np.testing.assert_allclose(works[1] - works[0], [10, 30, 50], rtol=1e-6)
    with pytest.raises(InputError, match="an integer of at least 0"):
        replace(SPIDER, dual_batch=(30, -1))
    with pytest.raises(InputError, match="finite populations"):
        mescal.minimize(nearest(streamed=True).problem, at.x0, solver=SPIDER)
    with pytest.raises(InputError, match="1 or 1, one for each row"):
        mescal.minimize(at.problem, at.x0, solver=replace(SPIDER, multipliers=(0.0, 1.0)))

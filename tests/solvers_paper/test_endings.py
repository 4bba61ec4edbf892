"""How inner solves end, that they stay in X, and that nothing is compiled twice."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np

import mescal
from mescal.solvers.base import BROKEN, EXHAUSTED, RUNNING, VERIFIED


def shortened(solver, plan):
    """A plan with few steps, so that runs are short."""
    leaf = (lambda p: p.pairs) if solver.name.startswith("natasha2") else (lambda p: p.steps)
    return eqx.tree_at(leaf, plan, jnp.int32(3))


def test_a_finished_run_is_verified(subproblem, knowing_solvers):
    for name, solver in knowing_solvers.items():
        plan = subproblem.plan(solver)
        plan = plan if name == "spider" else shortened(solver, plan)
        progress = subproblem.solve(solver, plan, 1).progress
        assert int(progress.status) == VERIFIED, name
        assert np.isfinite(np.asarray(progress.z)).all()
        assert np.isfinite(float(progress.stationarity)) and np.isfinite(float(progress.curvature)), name


def test_spider_stops_where_its_estimate_is_small(subproblem, knowing_solvers):
    solver = knowing_solvers["spider"]
    plan = subproblem.plan(solver)
    state = subproblem.solve(solver, plan, 1)
    assert float(state.progress.stationarity) <= float(plan.stop_threshold)
    assert (np.asarray(state.progress.z) == np.asarray(state.previous)).all()


def test_spider_without_a_stop_is_exhausted(subproblem, knowing_solvers):
    solver = knowing_solvers["spider"]
    progress = subproblem.solve(solver, shortened(solver, subproblem.plan(solver)), 0).progress
    assert (int(progress.status), int(progress.steps)) == (EXHAUSTED, 3)


def test_every_move_of_spider_has_the_same_length(subproblem, knowing_solvers):
    """Along w, with one sign for the whole block, and along g."""
    solver = knowing_solvers["spider"]
    plan = subproblem.plan(solver)
    state = subproblem.begin(solver, plan, 0)
    block, moves = int(plan.block_steps), []
    for _ in range(block):
        after = subproblem.advance(solver, state, plan, 1)
        moves.append(np.asarray(after.progress.z - state.progress.z, np.float64))
        state = after
    assert int(state.progress.escapes) == 1
    moves = np.stack(moves)
    np.testing.assert_allclose(np.linalg.norm(moves, axis=1), float(plan.step_length), rtol=1e-4)
    np.testing.assert_allclose(moves, np.broadcast_to(moves[0], moves.shape), atol=1e-6)
    off_the_ridge = subproblem.begin(solver, plan, 0, z=np.array([1.0, 0.6]))
    after = subproblem.advance(solver, off_the_ridge, plan, 1)
    assert int(after.progress.escapes) == 0
    gradient = np.asarray(after.gradient, np.float64)
    step = np.asarray(after.progress.z, np.float64) - np.array([1.0, 0.6])
    np.testing.assert_allclose(step, -float(plan.step_length) * gradient / np.linalg.norm(gradient), atol=1e-6)


def test_nan_keeps_the_last_good_point(subproblem, knowing):
    """At once: the start. Later: a point whose estimate was finite."""
    plan = subproblem.plan(knowing)
    broken = dataclasses.replace(subproblem.oracle, penalty=jnp.float32(np.nan))
    state = subproblem.advance(knowing, subproblem.begin(knowing, plan, 0), plan, 200, oracle=broken)
    assert int(state.progress.status) == BROKEN
    assert np.isfinite(np.asarray(state.progress.z)).all()
    later = subproblem.advance(knowing, subproblem.begin(knowing, plan, 0), plan, 6)
    assert int(later.progress.status) == RUNNING
    state = subproblem.advance(knowing, later, plan, 200, oracle=broken)
    assert int(state.progress.status) == BROKEN
    assert np.isfinite(np.asarray(state.progress.z)).all()


def test_nan_in_the_last_phase_of_natasha2(subproblem, knowing_solvers):
    solver = knowing_solvers["natasha2"]
    plan = shortened(solver, subproblem.plan(solver))
    state = subproblem.begin(solver, plan, 0)
    while int(state.pairs) < 3:
        state = subproblem.advance(solver, state, plan, 1)
    np.testing.assert_array_equal(state.progress.z, state.chosen)
    broken = dataclasses.replace(subproblem.oracle, penalty=jnp.float32(np.nan))
    after = subproblem.advance(solver, state, plan, oracle=broken)
    assert int(after.progress.status) == BROKEN
    np.testing.assert_array_equal(after.progress.z, state.chosen)


def test_iterates_stay_in_x(subproblem, knowing):
    """A box that cuts the path: every iterate is inside, and some are on its border."""
    low, high = np.array([-0.1, -0.2]), np.array([0.15, 0.3])
    domain = mescal.sets.Box(low, high)
    oracle = eqx.tree_at(lambda o: o.form.domain, subproblem.oracle, domain)
    plan = shortened(knowing, subproblem.plan(knowing)) if "natasha2" in knowing.name else subproblem.plan(knowing)
    state = subproblem.begin(knowing, plan, 0, oracle=oracle)
    on_border = False
    for calls in (1, 1, 1, 1, 40, 40):
        state = subproblem.advance(knowing, state, plan, calls, oracle=oracle)
        z = np.asarray(state.progress.z)
        assert (z >= low.astype(np.float32)).all() and (z <= high.astype(np.float32)).all()
        on_border |= bool(((z == low.astype(np.float32)) | (z == high.astype(np.float32))).any())
    assert on_border


def test_same_seed_same_run_and_chunks_do_not_matter(subproblem, knowing):
    plan = shortened(knowing, subproblem.plan(knowing)) if "natasha2" in knowing.name else subproblem.plan(knowing)
    whole = subproblem.advance(knowing, subproblem.begin(knowing, plan, 7), plan, 30)
    state = subproblem.begin(knowing, plan, 7)
    for calls in (1, 4, 25):
        state = subproblem.advance(knowing, state, plan, calls)
    np.testing.assert_array_equal(whole.progress.z, state.progress.z)
    assert whole.progress.work.tally() == state.progress.work.tally()
    other = subproblem.advance(knowing, subproblem.begin(knowing, plan, 8), plan, 30)
    ends = [(*np.asarray(s.progress.z).tolist(), float(s.progress.stationarity)) for s in (whole, other)]
    assert ends[0] != ends[1]


def test_nothing_compiles_again(subproblem, knowing):
    """Another goal, other constants, another multiplier, penalty, box, start and seed: one program."""
    plan = shortened(knowing, subproblem.plan(knowing))
    subproblem.solve(knowing, plan, 0)
    before = subproblem.traces(knowing)
    harder = dataclasses.replace(subproblem.constants, gradient_lipschitz=3.0, gap=0.1)
    other = shortened(knowing, knowing.plan(subproblem.goal(0.2, 0.4, constants=harder), jnp.float32))
    moved = dataclasses.replace(
        subproblem.oracle, penalty=jnp.float32(9.0), multipliers=jnp.asarray([1.0], jnp.float32)
    )
    moved = eqx.tree_at(lambda o: o.form.domain, moved, mescal.sets.Box(np.full(2, -2.0), np.full(2, 2.0)))
    subproblem.advance(knowing, subproblem.begin(knowing, other, 3, moved, np.ones(2)), other, 50, moved)
    assert subproblem.traces(knowing) == before

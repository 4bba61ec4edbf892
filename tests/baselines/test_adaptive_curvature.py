"""The two-step method with adaptive sampling: escapes, batches from the norm test, and the price of a step."""

import itertools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import baselines, problems
from mescal.baselines.legs import prepare
from mescal.baselines.view import View
from mescal.run.settings import Settings
from mescal.solvers.drive import compiled_advance as advance, compiled_begin as begin

PASS = 256


def after(baseline, at, steps, seed=0):
    """The first states of a run, a step apart, with the plan and the oracle."""
    run = prepare(at.problem, at.x0, baseline, Settings(tol=0.01, seed=seed, max_outer=1))
    view = View(run.here, run.state)
    oracle, plan = view.oracle(), baseline.plan(view)
    states = [begin(run.here.solver, oracle, run.state.z, plan, view.memory, run.here.key)]
    for _ in range(steps):
        states.append(advance(run.here.solver, oracle, states[-1], plan, jnp.int32(1)))
    return states, plan, oracle


@pytest.fixture(scope="module")
def saddle():
    return problems.get("saddles/strict", sigma=0.0)


def test_it_leaves_a_strict_saddle_and_is_certified_at_a_minimiser(saddle):
    """The start is a saddle without a gradient, at which all first-order methods stay: one escape ends at |x2| = 1."""
    result = baselines.AdaptiveCurvature().minimize(saddle.problem, saddle.x0, tol=0.01)
    assert result.converged and abs(abs(result.x[1]) - 1) <= 0.01
    assert sum(row.escapes for row in result.history) == 1


@pytest.mark.slow
def test_on_a_stream_too():
    at = problems.get("saddles/strict")
    result = baselines.AdaptiveCurvature().minimize(at.problem, at.x0, tol=0.01, max_work=1e7)
    assert result.converged and abs(abs(result.x[1]) - 1) <= 0.02


def test_batches_follow_the_norm_test(free):
    """n grows to the least whole number with Var/n <= |g|^2/4 + eps^2/4 where that fails at the step's own samples."""
    states, plan, oracle = after(baselines.AdaptiveCurvature(), free, 8)
    batches = [int(state.memory.batch) for state in states]
    assert batches[0] == 64 < batches[-1] == PASS and len(set(batches)) > 2
    for before, later in itertools.pairwise(states):
        n = int(before.memory.batch)
        if n >= PASS:
            continue
        key, z = jax.random.split(before.progress.key, 3)[2], before.progress.z
        seen, _ = replace(oracle, micro=64).compare(z, before.memory.before, key, jnp.int32(n))
        allowed = float(jnp.sum(seen.estimate.gradient**2)) / 4 + float(plan.gradient) ** 2 / 4
        least = float(seen.noise.gradient) / allowed
        wanted = n if least <= n else min(int(np.ceil(least)), PASS)
        assert abs(int(later.memory.batch) - wanted) <= 1  # float32


def test_the_price_of_a_step(free):
    """A search on the population, n gradients, and as many values at the point before: a third of a gradient each."""
    (start, one), plan, oracle = after(baselines.AdaptiveCurvature(), free, 1)
    searched = one.progress.searches.tally()
    spent = one.progress.work.tally() - start.progress.work.tally()
    key = jax.random.split(start.progress.key, 3)[0]
    _, looked = baselines.AdaptiveCurvature().search(oracle, start.progress.z, plan.curvature, key, plan.searched)
    assert searched == looked.tally() and searched.hvps > 0
    assert spent.hvps == searched.hvps and spent.gradients - searched.gradients == pytest.approx(64 * (1 + 1 / 3))


def test_what_it_declines(convex):
    baseline = baselines.AdaptiveCurvature()
    assert "constraint 'along'" in str(baseline.declines(convex.problem))
    box = mescal.Problem(convex.problem.objective, {}, mescal.sets.Box(-1.0, 1.0))
    assert "bounds" in str(baseline.declines(box))
    with pytest.raises(baselines.OutOfClass):
        baseline.minimize(box, convex.x0)

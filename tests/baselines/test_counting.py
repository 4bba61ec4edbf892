"""Counters of compiled steps against calls counted while they run."""

import jax.numpy as jnp
import pytest

import mescal
from mescal import E, baselines
from mescal.baselines.legs import prepare
from mescal.baselines.view import View
from mescal.run.settings import Settings
from mescal.solvers.drive import compiled_advance as advance, compiled_begin as begin
from mescal.testing import count_calls

STEPS = 5
NAMES = ("conex", "penalty-storm", "stoch-ialm", "stoch-sqp")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_counters_are_the_calls_of_the_running_program(known, name):
    """Pairs of a sample and a point, in batched calls of two points, too."""
    at, baseline = known[name], baselines.get(name)
    given = at.problem
    (constraint,) = given.constraints.values()
    objective, of_objective = count_calls(given.objective.terms[0].fn)
    function, of_constraint = count_calls(constraint.body.terms[0].fn)
    samples, others = (source.arrays for source in given.sources)
    body = E(function, over=others)
    bound = float(-constraint.body.constant)
    counted = mescal.Problem(
        E(objective, over=samples), {"c": body <= bound if constraint.kind == "<=" else body == bound}
    )
    settings = Settings(tol=1e-6, cone="paper", max_outer=1)
    run = prepare(counted, at.x0, baseline, settings)
    view = View(run.here, run.state)
    oracle, plan = view.oracle(), baseline.plan(view)
    state = begin(run.here.solver, oracle, run.state.z, plan, view.memory, run.here.key)
    of_objective.reset()
    of_constraint.reset()
    state = advance(run.here.solver, oracle, state, plan, jnp.int32(STEPS))
    tally = state.progress.work.tally()
    assert int(state.progress.steps) == STEPS
    assert tally.objective_gradients == of_objective.gradients > 0
    assert tally.constraint_gradients == of_constraint.gradients > 0
    assert tally.constraint_values == of_constraint.values
    assert of_objective.hvps == of_constraint.hvps == tally.hvp_samples == 0
    assert tally.gradient_samples == STEPS * (64 if name == "stoch-sqp" else 128)

"""Plans: every number from the formulas, as arrays; and what is said when there are no constants, or too many steps."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal import theory
from mescal.errors import InputError
from mescal.solvers.paper.sgd3sc import MOST_SEGMENTS, pad_schedule
from mescal.solvers.paper.spider_theory import SpiderTheory
from mescal.theory.negative_curvature import lanczos


def test_spider_takes_the_formulas(subproblem):
    for sharp, ratio in ((False, 1.0), (True, 2.0)):
        p = theory.spider.parameters(subproblem.constants, 0.1, 0.3, sharp=sharp, ratio=ratio)
        plan = subproblem.plan(SpiderTheory(sharp=sharp, ratio=ratio))
        counts = [plan.large_batch, plan.small_batch, plan.period, plan.block_steps, plan.steps]
        assert [int(n) for n in counts] == [
            p.large_batch, p.small_batch, p.period, p.block_steps, p.blocks * p.block_steps
        ]  # fmt: skip
        assert float(plan.step_length) == pytest.approx(p.step_length)
        assert float(plan.stop_threshold) == pytest.approx(p.stop_threshold)


def test_sg_hv_nc_takes_the_formulas(subproblem, solvers):
    p = theory.sg_hv_nc.parameters(subproblem.constants, 0.1, 0.3)
    plan = subproblem.plan(solvers["sg-hv-nc"])
    assert (int(plan.steps), int(plan.reset_batch), bool(plan.exact_resets)) == (p.steps, p.reset_batch, False)
    for name in ("step_size", "first_order_probability", "curvature_step", "first_order_reset_probability",
                 "second_order_reset_probability", "path_density"):  # fmt: skip
        assert float(getattr(plan, name)) == pytest.approx(getattr(p, name)), name


def test_natasha2_takes_the_formulas(subproblem, solvers):
    solver = solvers["natasha2"]
    p = theory.natasha2.parameters(subproblem.constants, 0.1, 0.3, free=solver.free)
    plan = subproblem.plan(solver)
    epoch = plan.epoch
    assert (int(plan.pairs), int(epoch.epoch_batch), int(epoch.inner_steps)) == (
        p.first_order_steps, p.epoch_batch, p.inner_steps
    )  # fmt: skip
    assert int(epoch.total_steps) == p.sub_epochs * p.inner_steps
    assert float(epoch.step_size) == pytest.approx(p.step_size)
    assert float(epoch.hinge_radius) == float(plan.curvature_step) == pytest.approx(p.curvature_step)
    stages = theory.sgd3sc.schedule(p.strong_nonconvexity, p.final_smoothness, p.final_steps)
    rows = int(plan.final.rows)
    assert rows == sum(len(stage.segments) for stage in stages)
    assert int(np.sum(plan.final.steps * plan.final.repeats)) == sum(stage.steps for stage in stages)
    added = np.asarray(plan.final.added)
    assert added[added > 0].tolist() == pytest.approx([2 * stage.strong_convexity for stage in stages])


def test_searches_have_the_batch_of_their_failure_probability(subproblem, solvers):
    """In any dimension, to the rounding of 32-bit numbers."""
    for solver, formulas in ((solvers["spider"], theory.spider), (solvers["sg-hv-nc"], theory.sg_hv_nc)):
        sharp = {"sharp": True} if formulas is theory.spider else {}
        p = formulas.parameters(subproblem.constants, 0.1, 0.3, **sharp)
        search = subproblem.plan(solver).search
        assert float(search.tolerance) == pytest.approx(p.search_tolerance)
        for dimension in (1, 2, 1000):
            wanted = lanczos(subproblem.constants, p.search_tolerance, p.search_failure, dimension).batch
            assert abs(int(search.batch(dimension)) - wanted) <= 1


def test_plans_of_different_goals_compile_to_one_program(subproblem, solver):
    """The same structure, shapes and types, none of them weak, whatever the constants, tolerances and population."""
    other = dataclasses.replace(subproblem.constants, gradient_lipschitz=7.0, gradient_noise=0.4, gap=0.1)
    shapes = []
    for goal in (subproblem.goal(), subproblem.goal(0.2, 0.5, constants=other), subproblem.goal(population=20)):
        plan = solver.plan(goal, jnp.float32)
        leaves, structure = jax.tree.flatten(plan)
        shapes.append((structure, [(leaf.shape, leaf.dtype, leaf.weak_type) for leaf in leaves]))
        assert not any(leaf.weak_type for leaf in leaves)
    assert shapes[0] == shapes[1] == shapes[2]


def test_finite_populations_have_exact_resets(subproblem, solvers):
    assert bool(solvers["spider"].plan(subproblem.goal(population=20), jnp.float32).exact_resets)
    assert bool(solvers["sg-hv-nc"].plan(subproblem.goal(population=20), jnp.float32).exact_resets)
    assert bool(solvers["natasha2"].plan(subproblem.goal(population=20), jnp.float32).epoch.exact_resets)


def test_no_constants(subproblem, solver):
    with pytest.raises(InputError, match="no constants") as caught:
        solver.plan(subproblem.goal(constants=None), jnp.float32)
    message = str(caught.value)
    assert "theory.ProblemConstants" in message
    assert f"use {solver.name.removesuffix('-theory')!r}" in message


def test_more_steps_than_a_counter_holds(subproblem, solver):
    with pytest.raises(InputError, match=r"ask for .*e\+") as caught:
        solver.plan(subproblem.goal(1e-6, 1e-6), jnp.float32)
    assert "2^31" in str(caught.value) and "loosen" in str(caught.value)


def test_a_search_larger_than_a_counter_holds(subproblem):
    """Tolerances far apart: few steps, but curvature that no batch below 2^31 resolves."""
    constants = dataclasses.replace(subproblem.constants, hessian_noise=300.0, gap=1e-9)
    with pytest.raises(InputError, match="thetas of a search"):
        SpiderTheory(sharp=True).plan(subproblem.goal(0.1, 0.01, constants=constants), jnp.float32)


def test_a_last_phase_with_too_many_segments():
    stage = theory.sgd3sc.Stage(1.0, (theory.sgd3sc.Segment(0.1, 1, 1),) * (MOST_SEGMENTS + 1))
    with pytest.raises(InputError, match="segments"):
        pad_schedule("natasha2-theory", (stage,), jnp.float32)


def test_settings_are_static(solver):
    """Nothing in the settings is an array: solvers with equal settings share programs."""
    assert jax.tree.leaves(solver) == []
    assert solver.surrogate == "pair"
    assert solver.name.endswith("-theory")

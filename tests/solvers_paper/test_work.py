"""Work of the theory modes, counted by hand: periods, epochs, paths, resets, searches. A search counts one product here."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from mescal import theory
from mescal.solvers.paper.theory_mode import reset_gradient


def own(progress):
    """Gradients and products of a solver, without its searches; and the number of searches."""
    work, searches = progress.work.tally(), progress.searches.tally()
    assert searches.gradients == 0
    return work.gradients, work.hvps - searches.hvps, searches.hvps


def test_one_period_of_spider(subproblem, knowing_solvers):
    """S1 + 2 S2 (q - 1) gradients in q steps, S1 more for the next; a search per block of T_m."""
    solver = knowing_solvers["spider"]
    p = theory.spider.parameters(subproblem.constants, 0.1, 0.3, sharp=True)
    plan = subproblem.plan(solver)
    one = subproblem.advance(solver, subproblem.begin(solver, plan, 0), plan, p.period)
    wanted = p.large_batch + 2 * p.small_batch * (p.period - 1)
    assert own(one.progress) == (wanted, 0, -(-p.period // p.block_steps))
    more = subproblem.advance(solver, one, plan, 1)
    assert own(more.progress)[0] == wanted + p.large_batch


def test_a_whole_run_of_spider(subproblem, knowing_solvers):
    """It stops at a step whose estimate was paid for and which makes no move."""
    solver = knowing_solvers["spider"]
    p = theory.spider.parameters(subproblem.constants, 0.1, 0.3, sharp=True)
    progress = subproblem.solve(solver, subproblem.plan(solver), 1).progress
    steps = int(progress.steps)
    assert own(progress) == (theory.spider.gradients(p, steps + 1), 0, steps // p.block_steps + 1)


def test_the_raw_counters_follow_the_pair_rule(subproblem, knowing_solvers):
    """Per gradient of one theta: grad F, C twice, J once; per product: one of F, C twice, J twice, one of C (m = 1)."""
    for name in ("spider", "sg-hv-nc"):
        solver = knowing_solvers[name]
        plan = subproblem.plan(solver)
        progress = subproblem.advance(solver, subproblem.begin(solver, plan, 0), plan, 40).progress
        gradients, products, _ = own(progress)
        tally = progress.work.tally()
        assert gradients > 0 and (products > 0) == (name == "sg-hv-nc")
        assert (tally.objective_gradients, tally.objective_hvps) == (gradients, products)
        assert tally.constraint_values == 2 * gradients + 2 * products
        assert (tally.constraint_gradients, tally.constraint_hvps) == (gradients + 2 * products, products)


def changed(plan, **leaves):
    for name, value in leaves.items():
        plan = eqx.tree_at(lambda p, name=name: getattr(p, name), plan, jnp.asarray(value, getattr(plan, name).dtype))
    return plan


def test_resets_of_sg_hv_nc(subproblem, knowing_solvers):
    """q = b = 1: every step is a gradient step and every estimate a reset; B gradients each, the first included."""
    solver = knowing_solvers["sg-hv-nc"]
    plan = changed(subproblem.plan(solver), first_order_probability=1, first_order_reset_probability=1, steps=9)
    progress = subproblem.solve(solver, plan, 0).progress
    assert own(progress) == (9 * int(plan.reset_batch), 0, 0)


def test_paths_of_sg_hv_nc(subproblem, knowing_solvers):
    """q = 0: every step searches, and from the ridge the first three find; the path of each has ceil(k l^2/b) products."""
    solver = knowing_solvers["sg-hv-nc"]
    plan = subproblem.plan(solver)
    length, rare = float(plan.curvature_step), 1e-7
    plan = changed(plan, first_order_probability=0, second_order_reset_probability=rare,
                   path_density=13.5 * rare / length**2, steps=4)  # fmt: skip
    progress = subproblem.solve(solver, plan, 0).progress
    assert int(progress.escapes) >= 3
    assert own(progress) == (int(plan.reset_batch), 3 * 14, 4)


def test_every_estimate_of_sg_hv_nc(subproblem, knowing_solvers):
    """Step by step: B gradients, or J = ceil(5 (s_H^2 + L_H e) |dz|^2/(b e^2)) products, or nothing after "none"."""
    solver = knowing_solvers["sg-hv-nc"]
    p = theory.sg_hv_nc.parameters(subproblem.constants, 0.1, 0.3)
    plan = subproblem.plan(solver)
    state, kinds = subproblem.begin(solver, plan, 3), []
    for t in range(250):
        after = subproblem.advance(solver, state, plan, 1)
        gradients, products, searches = np.subtract(own(after.progress), own(state.progress))
        length = float(np.linalg.norm(np.asarray(state.progress.z - state.previous, np.float64)))
        probability = float(state.reset_probability)
        if gradients:
            assert (gradients, products) == (p.reset_batch, 0)
            assert t == 0 or probability > 0
        else:
            assert products == (p.path_samples(length, probability) if length else 0)
        assert searches in (0, 1)
        kinds.append((gradients > 0, products > 0, searches > 0))
        state = after
    assert {(True, False), (False, True), (False, False)} == {kind[:2] for kind in kinds}


def test_resets_come_with_their_probability(subproblem, knowing_solvers):
    """b = 0.3 over 2000 steps: 1 + Binomial(1999, 0.3) resets, within 5 standard deviations (6e-7)."""
    solver = knowing_solvers["sg-hv-nc"]
    plan = changed(subproblem.plan(solver), first_order_probability=1, first_order_reset_probability=0.3, steps=2000)
    gradients, _, searches = own(subproblem.solve(solver, plan, 4).progress)
    resets = gradients / int(plan.reset_batch)
    assert resets == round(resets) and searches == 0
    assert abs(resets - 1 - 1999 * 0.3) < 5 * np.sqrt(1999 * 0.3 * 0.7)


def test_one_epoch_of_natasha2(subproblem, knowing_solvers):
    """B for the snapshot and two per inner step, of which there are q ceil(B/q); a search before every epoch."""
    solver = knowing_solvers["natasha2"]
    p = theory.natasha2.parameters(subproblem.constants, 0.1, 0.3, free=solver.free)
    plan = subproblem.plan(solver)
    state = subproblem.begin(solver, plan, 0, z=np.zeros(2) + 1.0)
    state = subproblem.advance(solver, state, plan, 1)
    assert int(state.pairs) == 1
    assert own(state.progress) == (p.epoch_batch + 2 * p.sub_epochs * p.inner_steps, 0, 1)


def test_a_whole_run_of_natasha2(subproblem, knowing_solvers):
    """N1 epochs and the schedule of SGD3SC, whatever the escapes; N1 searches and one per escape."""
    solver = knowing_solvers["natasha2"]
    p = theory.natasha2.parameters(subproblem.constants, 0.1, 0.3, free=solver.free)
    stages = theory.sgd3sc.schedule(p.strong_nonconvexity, p.final_smoothness, p.final_steps)
    plan = changed(subproblem.plan(solver), pairs=7)
    progress = subproblem.solve(solver, plan, 0).progress
    epoch = p.epoch_batch + 2 * p.sub_epochs * p.inner_steps
    assert int(progress.escapes) > 0
    assert own(progress) == (7 * epoch + sum(stage.steps for stage in stages), 0, 7 + int(progress.escapes))


def test_expected_work_is_what_the_theorem_bounds(subproblem, knowing_solvers):
    """Mean of SG-HV-NC, worst case of SPIDER, both with searches of one product; runs stay below."""
    spider = theory.spider.parameters(subproblem.constants, 0.1, 0.3, sharp=True)
    sg_hv_nc = theory.sg_hv_nc.parameters(subproblem.constants, 0.1, 0.3)
    search = theory.Cost(hessian_products=1)
    bounds = {
        "spider": theory.spider.work(spider, search).worst.total,
        "sg-hv-nc": theory.sg_hv_nc.work(sg_hv_nc, search).expected.total,
    }
    for name, bound in bounds.items():
        solver = knowing_solvers[name]
        total = subproblem.solve(solver, subproblem.plan(solver), 5).progress.work.tally().total
        assert 0 < total <= bound, name


def test_resets_on_finite_populations(make_sigmoid_problem, make_lagrangian, key):
    """The exact gradient at the price of the population, or the batch."""
    problem = make_sigmoid_problem(np.random.default_rng(0), rows=90)
    oracle = make_lagrangian(problem, np.zeros(4), [0.2], 1.5, "pair", 32)
    z = jnp.asarray([0.1, -0.3, 0.2, 0.4, 0.1], jnp.float32)
    run = eqx.filter_jit(lambda n, flag: (reset_gradient(oracle, z, key, n, flag), oracle.exact(z)[0].gradient))
    for exact in (True, False):
        (gradient, work), truth = run(jnp.int32(40), jnp.asarray(exact))
        assert work.tally().gradients == (90 if exact else 40)
        assert np.allclose(gradient, truth, rtol=1e-5, atol=1e-6) == exact

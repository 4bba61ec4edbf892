"""Natasha2: both branches, the products of Lemma 4.3 and its corrected condition, the schedule of its last phase."""

import dataclasses
import math

import pytest

from mescal.errors import InputError
from mescal.solvers import Natasha2Theory
from mescal.theory import natasha2, sgd3sc
from mescal.theory.constants import SubproblemConstants
from mescal.theory.cost import Cost

BENT = SubproblemConstants(
    gradient_lipschitz=2.0, hessian_lipschitz=3.0, gradient_noise=40.0, hessian_noise=1.0, gap=5.0
)
FLAT = dataclasses.replace(BENT, hessian_lipschitz=1e-4)
E, D = 0.01, 0.05
ONES = natasha2.FreeConstants(batch=1.0, sub_epochs=1.0, iterations=1.0, final_steps=1.0)


def test_bent_branch_by_hand():
    p = natasha2.parameters(BENT, E, 3 * D, free=ONES)
    iota = 3.0 * (1600 * E) ** (1 / 3) / D
    assert p.smoothness == p.strong_nonconvexity == pytest.approx(iota)
    assert p.epoch_batch == 16_000_000
    assert p.sub_epochs == math.ceil(16_000_000 ** (1 / 3))
    assert p.inner_steps == math.ceil(16_000_000 / p.sub_epochs)
    assert p.step_size == pytest.approx(0.1 / (p.sub_epochs**2 * iota))
    assert p.first_order_steps == math.ceil(iota * 5.0 / (p.sub_epochs * E**2))
    assert p.second_order_steps == pytest.approx(12 * 5 * 9 / D**3, abs=1)
    assert p.final_steps == 16_000_000  # log(Lt/iota) = 0 counts as 1
    assert p.curvature_step == pytest.approx(D / 3.0)
    assert p.search_tolerance == pytest.approx(D)


def test_flat_branch_by_hand():
    p = natasha2.parameters(FLAT, E, 3 * D, free=ONES)
    iota = max(3 * D, 1600 * E * 1e-12 / (4 * D**3), E * 2.0 / 40.0)
    assert (p.smoothness, p.strong_nonconvexity) == (2.0, pytest.approx(iota))
    assert p.final_steps == math.ceil(16e6 * math.log(2.0 / iota) ** 3)
    assert p.final_smoothness == 10.0


def test_branches_meet():
    """At L_H = L_g d/(s^2 e)^(1/3) both give iota = Lt = L_g, with unit constants."""
    edge = 2.0 * D / (1600 * E) ** (1 / 3)
    above, below = (natasha2.parameters(dataclasses.replace(BENT, hessian_lipschitz=edge * f), E, 3 * D)
                    for f in (1 + 1e-9, 1 - 1e-9))  # fmt: skip
    assert above.strong_nonconvexity == pytest.approx(below.strong_nonconvexity, rel=1e-6) == pytest.approx(2.0)


def test_the_last_phase_is_told_a_convexity_that_is_there(case):
    """W = L + hinge + iota |z - x^|^2 at a stored point: L has curvature >= -d at x, so >= -2 d within d/L_H, and >= -L_g anywhere.

    With iota = min(L_g, eps_H) or more the regulariser's 2 iota leaves at least iota, which SGD3SC is told.
    """
    c, g, h = case
    d, iota = h / 3, natasha2.parameters(c, g, h).strong_nonconvexity
    assert 2 * iota - min(2 * d, c.gradient_lipschitz) >= iota * (1 - 1e-12)
    assert iota >= min(c.gradient_lipschitz, h) * (1 - 1e-12)


def test_one_set_of_free_constants():
    """What predictions are made with is what runs are made with."""
    assert Natasha2Theory().free == natasha2.FreeConstants()
    free = natasha2.FreeConstants()
    assert (free.batch, free.sub_epochs, free.iterations, free.final_steps) == (64, 0.5, 64, 64)


def test_all_searches_together_fail_with_a_twelfth(case):
    p = natasha2.parameters(*case)
    assert p.search_failure * (p.first_order_steps + p.second_order_steps) == pytest.approx(1 / 12)


def test_inner_steps_are_stable(case):
    """step x smoothness of V + regulariser <= 1/2: V is 3 L_g-smooth, the regulariser adds 2 iota."""
    c, g, h = case
    p = natasha2.parameters(c, g, h)
    smoothness = 3 * c.gradient_lipschitz + 2 * p.strong_nonconvexity
    assert p.step_size * smoothness <= 0.5 + 1e-12
    assert smoothness <= p.final_smoothness * (1 + 1e-12)


def test_work_is_counted_by_hand():
    p = natasha2.parameters(BENT, E, 3 * D, free=ONES)
    work = natasha2.work(p, Cost(hessian_products=11)).expected
    epoch = p.epoch_batch + 2 * p.sub_epochs * p.inner_steps
    assert work.gradients == p.first_order_steps * epoch + p.final_steps
    assert work.hessian_products == 11 * (p.first_order_steps + p.second_order_steps)
    assert math.isinf(natasha2.work(p, Cost()).worst.total)


def test_work_is_the_product_of_the_lemma():
    """Bent branch: epochs cost 3 N1 B = 3 Delta L_H s_g^2/(e^3 d); N1 = Delta L_H/(e d), N2 = 12 Delta L_H^2/d^3."""
    p = natasha2.parameters(BENT, E, 3 * D, free=ONES)
    work = natasha2.work(p, Cost(hessian_products=1)).expected
    final = 1600 / E**2
    assert work.gradients - final == pytest.approx(3 * 5 * 3 * 1600 / (E**3 * D), rel=0.01)
    assert work.hessian_products == pytest.approx(5 * 3 / (E * D) + 12 * 5 * 9 / D**3, rel=0.01)


def test_the_corrected_condition_makes_the_lemma_complete():
    """Where it holds, N1 B is at most the sum of the lemma's terms; without it, N1 B exceeds it many times.

    The term Delta L_g s_g/eps_g^3 of the flat branch is absent from Lemma 4.3. The condition with L_g^2 bounds it by
    the last term. 3000 random constants; d = eps_H here, to compare products without their constants.
    """
    import random

    rng, ratios = random.Random(0), {True: [], False: []}
    for _ in range(3000):
        c = SubproblemConstants(
            gradient_lipschitz=10 ** rng.uniform(-2, 2), hessian_lipschitz=10 ** rng.uniform(-4, 2),
            gradient_noise=10 ** rng.uniform(0, 3), hessian_noise=1.0, gap=1e6,
        )  # fmt: skip
        g, h = 10 ** rng.uniform(-3, -1), 10 ** rng.uniform(-3, 0)
        if h > c.gradient_lipschitz:
            continue
        p = natasha2.parameters(c, g, 3 * h, free=ONES)
        if p.sub_epochs < 3 or p.first_order_steps < 3:  # rounding up would hide the product
            continue
        holds = not natasha2.violations(c, g, h)
        terms = sum(term.value(c, g, h) for term in natasha2.TERMS)
        ratios[holds].append(p.first_order_steps * p.epoch_batch / terms)
    assert len(ratios[True]) > 100
    assert max(ratios[True]) < 2
    assert max(ratios[False]) > 10


def test_a_small_population_is_averaged_exactly():
    p = natasha2.parameters(BENT, E, 3 * D, population=1000, free=ONES)
    assert (p.epoch_batch, p.exact_resets, p.sub_epochs, p.inner_steps) == (1000, True, 10, 100)


def test_free_constants_are_used():
    free = dataclasses.replace(ONES, batch=4.0, step=0.2, iterations=2.0)
    p, q = natasha2.parameters(BENT, E, 3 * D, free=ONES), natasha2.parameters(BENT, E, 3 * D, free=free)
    assert q.epoch_batch == 4 * p.epoch_batch
    assert q.step_size * q.sub_epochs**2 == pytest.approx(2 * p.step_size * p.sub_epochs**2)
    assert q.first_order_steps * q.sub_epochs == pytest.approx(2 * p.first_order_steps * p.sub_epochs, rel=0.01)


def test_violations_are_sentences(constants):
    assert natasha2.violations(constants, 0.05, 0.1) == ()
    found = natasha2.violations(constants, 5.0, 40.0)
    assert len(found) == 3
    assert "exceeds the gradient noise 0.7" in found[0]


@pytest.mark.parametrize(("convexity", "budget"), [(1.0, 10_000), (0.01, 1_000_000), (0.3, 50_000)])
def test_last_phase_uses_its_budget(convexity, budget):
    stages = sgd3sc.schedule(convexity, 1.0, budget)
    assert len(stages) == max(1, math.floor(math.log2(1 / convexity)))
    assert [stage.strong_convexity for stage in stages] == [convexity * 2**s for s in range(len(stages))]
    assert stages[-1].strong_convexity <= 1.0
    assert 0.6 * budget <= sum(stage.steps for stage in stages) <= 1.3 * budget
    steps = [segment.step_size for stage in stages for segment in stage.segments]
    assert max(steps) <= 1 / (2 * 3)  # smoothness 3L


def test_last_phase_is_independent_of_units():
    one, two = sgd3sc.schedule(0.1, 2.0, 10_000), sgd3sc.schedule(0.4, 8.0, 10_000)
    assert [stage.steps for stage in one] == [stage.steps for stage in two]
    assert one[0].segments[0].step_size == pytest.approx(4 * two[0].segments[0].step_size)


def test_last_phase_refuses_what_no_function_is():
    with pytest.raises(InputError, match="strong convexity 3 exceeds smoothness 1"):
        sgd3sc.schedule(3.0, 1.0, 100)

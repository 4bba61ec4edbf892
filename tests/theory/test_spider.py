"""SPIDER: the reduced tolerance, identities of its parameters, its work, and the concentration of its estimator."""

import dataclasses
import math

import numpy as np
import pytest

from mescal.errors import InputError
from mescal.theory import spider
from mescal.theory.constants import SubproblemConstants
from mescal.theory.cost import Cost


def fixed_point(c, g, h, n0=1.0):
    """The reduced tolerance as the specification computes it: 20 rounds of ebar <- et/log(64 (T J + 1))."""
    et = ebar = g / 3
    for _ in range(20):
        steps = math.ceil(10 * h * c.gradient_lipschitz * n0 / (3 * c.hessian_lipschitz * ebar))
        first = math.floor(81 * c.hessian_lipschitz**2 * c.gap / h**3)
        blocks = 4 * max(first, math.floor(120 * c.hessian_lipschitz * c.gap / (h * ebar))) + 4
        ebar = et / math.log(64 * (steps * blocks + 1))
    return ebar


def test_reduced_tolerance_solves_its_equation(case):
    c, g, h = case
    p = spider.parameters(c, g, h)
    reached = p.reduced_tolerance * math.log(64 * (p.block_steps * p.blocks + 1))
    assert reached <= p.accuracy * (1 + 1e-12)
    assert reached == pytest.approx(p.accuracy, rel=0.02)
    assert p.reduced_tolerance == pytest.approx(fixed_point(c, g, h), rel=0.02)
    assert (p.accuracy, p.stop_threshold) == (pytest.approx(g / 3), pytest.approx(2 * g / 3))


def test_a_block_moves_exactly_to_where_the_certificate_reaches(case):
    """T_m eta = eps_H/(3 L_H), and eta <= ebar/(10 L_g n0); so the certificate -2 eps_H/3 becomes -eps_H."""
    c, g, h = case
    for sharp in (False, True):
        p = spider.parameters(c, g, h, sharp=sharp)
        assert p.block_steps * p.step_length == pytest.approx(h / (3 * c.hessian_lipschitz))
        assert p.step_length <= p.reduced_tolerance / (10 * c.gradient_lipschitz) * (1 + 1e-9)
        assert p.search_tolerance + c.hessian_lipschitz * p.block_steps * p.step_length == pytest.approx(h)


def test_the_printed_step_leaves_the_certified_ball():
    """Rounding T_m up to 1 with the printed step moves a block 50 times as far as eps_H/(3 L_H)."""
    c = SubproblemConstants(
        gradient_lipschitz=0.01, hessian_lipschitz=10.0, gradient_noise=1.0, hessian_noise=1.0, gap=1e-6
    )
    p = spider.parameters(c, 0.3, 0.01)
    assert p.block_steps == 1
    printed = p.reduced_tolerance / (10 * c.gradient_lipschitz)
    assert printed > 50 * 0.01 / (3 * c.hessian_lipschitz)


def test_back_substitution_gives_the_source(case):
    """ebar = 10 e, eps_H = 3 d: S1 = 2 s^2/e^2, S2 = 2 s/(e n0), q = s n0/e, eta = e/(L n0), T = d L n0/(L_H e)."""
    c, g, h = case
    for n0 in (1.0, 3.0) if c.gradient_noise else (1.0,):
        p = spider.parameters(c, g, h, ratio=n0)
        e, d, s = p.reduced_tolerance / 10, h / 3, c.gradient_noise
        assert p.large_batch == max(1, math.ceil(2 * s**2 / e**2 * (1 - 1e-12)))
        assert p.small_batch == max(1, math.ceil(2 * s / (e * n0) * (1 - 1e-12)))
        assert p.period == max(1, math.ceil(s * n0 / e * (1 - 1e-12)))
        moves = d * c.gradient_lipschitz * n0 / (c.hessian_lipschitz * e)
        assert p.block_steps == math.ceil(moves * (1 - 1e-12))
        assert p.step_length == pytest.approx(e / (c.gradient_lipschitz * n0), rel=1 / moves)
        third = max(math.floor(3 * c.hessian_lipschitz**2 * c.gap / d**3 + 1e-9),
                    math.floor(4 * c.hessian_lipschitz * c.gap / (d * e) + 1e-9))  # fmt: skip
        assert p.blocks == 4 * third + 4
        assert p.search_failure * p.blocks == pytest.approx(1 / 16)


def test_one_period_counted_by_hand(constants):
    """S1 + 2 S2 (q - 1) gradients."""
    p = spider.parameters(constants, 0.05, 0.1)
    assert spider.gradients(p, p.period) == p.large_batch + 2 * p.small_batch * (p.period - 1)
    assert spider.gradients(p, 1) == p.large_batch
    assert spider.gradients(p, p.period + 1) == spider.gradients(p, p.period) + p.large_batch
    assert spider.gradients(p, 0) == 0


def test_work_is_the_product_of_the_lemma():
    """J T_m moves at S1/q + 2 S2 = 60 s/(ebar n0) gradients each.

    Together the larger of 64800 Delta L_g L_H s/(ebar^2 eps_H^2) and 96000 Delta L_g s/ebar^3.
    """
    for h in (0.001, 0.3):
        c = SubproblemConstants(
            gradient_lipschitz=50.0, hessian_lipschitz=2.0, gradient_noise=9.0, hessian_noise=1.0, gap=40.0
        )
        p = spider.parameters(c, 0.1, h)
        ebar = p.reduced_tolerance
        by_curvature = 64_800 * 40 * 50 * 2 * 9 / (ebar**2 * h**2)
        by_gradient = 96_000 * 40 * 50 * 9 / ebar**3
        work = spider.work(p, Cost(gradients=7))
        assert work.worst == work.expected
        assert work.worst.gradients - 7 * p.blocks == pytest.approx(max(by_curvature, by_gradient), rel=0.03)


def test_ratio_trades_batches_for_periods_at_equal_work(constants):
    one, four = (spider.parameters(constants, 0.05, 0.1, ratio=n0) for n0 in (1.0, 4.0))
    assert four.small_batch == pytest.approx(one.small_batch / 4, rel=0.1)
    assert four.period == pytest.approx(one.period * 4, rel=0.1)
    assert spider.work(four, Cost()).worst.total == pytest.approx(spider.work(one, Cost()).worst.total, rel=0.5)
    with pytest.raises(InputError, match="ratio"):
        spider.parameters(constants, 0.05, 0.1, ratio=0.5)
    with pytest.raises(InputError, match="ratio"):
        spider.parameters(constants, 0.05, 0.1, ratio=1e9)


def test_finite_sum(constants):
    p = spider.parameters(constants, 0.05, 0.1, population=2500, ratio=5.0)
    assert (p.large_batch, p.small_batch, p.period, p.exact_resets) == (2500, 10, 250, True)
    assert spider.parameters(constants, 0.05, 0.1, population=10**15) == spider.parameters(constants, 0.05, 0.1)
    with pytest.raises(InputError, match="from 1 to 50"):
        spider.parameters(constants, 0.05, 0.1, population=2500, ratio=51.0)


def test_sharp_form_costs_far_less(case):
    c, g, h = case
    plain, sharp = (spider.parameters(c, g, h, sharp=flag) for flag in (False, True))
    assert sharp.reduced_tolerance > 5 * plain.reduced_tolerance
    assert sharp.blocks <= plain.blocks
    reached = sharp.reduced_tolerance / 10 * math.sqrt(8 * math.log(32 * sharp.blocks * sharp.block_steps))
    assert reached <= sharp.accuracy * (1 + 1e-12)
    assert spider.work(sharp, Cost()).worst.total < spider.work(plain, Cost()).worst.total / 50


@pytest.mark.parametrize("population", [None, 400])
def test_sharp_accuracy_holds_along_a_run(population):
    """|g - grad f| <= et at every one of 3 periods of 400 chains, with the noise that the proof allows.

    f = sum cos(x_i) in d = 2, samples f + s_g-bounded linear noise + a curvature noise that saturates L_g; moves of the
    full length in random directions. The proof allows failures in 1 of 16 whole runs; these are far shorter.
    """
    rng, chains = np.random.default_rng(2), 400
    c = SubproblemConstants(
        gradient_lipschitz=2.0, hessian_lipschitz=1.0, gradient_noise=1.0, hessian_noise=1.0, gap=0.1
    )
    p = spider.parameters(c, 0.6, 0.5, sharp=True, population=population)
    x, error, worst = rng.normal(size=(chains, 2)), np.zeros((chains, 2)), 0.0
    for t in range(3 * p.period):
        if t % p.period == 0:
            angle = rng.uniform(0, 2 * np.pi, (chains, min(p.large_batch, 4000)))
            noise = np.stack([np.cos(angle), np.sin(angle)], -1).mean(1) * math.sqrt(
                min(p.large_batch, 4000) / p.large_batch
            )
            error = np.zeros((chains, 2)) if p.exact_resets else c.gradient_noise * noise
        else:  # sampled Hessian = Hessian + (random sign) I: differences of norm up to 2 L_g eta around their mean
            signs = 2 * rng.binomial(p.small_batch, 0.5, (chains, 1)) / p.small_batch - 1
            error = error + c.gradient_lipschitz * signs * step
        direction = rng.normal(size=(chains, 2))
        step = p.step_length * direction / np.linalg.norm(direction, axis=1, keepdims=True)
        x = x + step
        worst = max(worst, np.linalg.norm(error, axis=1).max())
    assert 0.05 * p.accuracy < worst <= p.accuracy


@pytest.mark.parametrize("name", ["gap", "hessian_lipschitz", "gradient_noise", "gradient_lipschitz"])
def test_harder_problems_cost_more(constants, name):
    harder = dataclasses.replace(constants, **{name: 2 * getattr(constants, name)})
    cost = [spider.work(p := spider.parameters(c, 0.03, 0.04), spider.search(p, c, 5).cost).worst.total
            for c in (constants, harder)]  # fmt: skip
    assert cost[1] > cost[0]


def test_violations_are_sentences(constants):
    assert spider.violations(constants, 0.05, 0.1) == ()
    quiet = dataclasses.replace(constants, gradient_noise=1e-9)
    assert "exceeds the gradient noise times 20" in spider.violations(quiet, 0.05, 0.1)[0]

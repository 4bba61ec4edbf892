"""Every formula is independent of units.

f -> s f, x -> r x, c -> t c multiplies quantities by their unit and leaves counts and probabilities alone. The same
comparison refuses the formulas as printed (errata 3, 7-10 and four more), so it can fail.
"""

import dataclasses
import math

import pytest

from mescal.theory import boosting, constants as lemmas, gap, natasha2, negative_curvature, outer, sg_hv_nc, spider
from mescal.theory.complexity import GENERAL_CURVATURE, GENERAL_FIRST_ORDER, general_work, sample_complexity
from mescal.theory.constants import ProblemConstants, SubproblemConstants
from mescal.theory.cost import Term, order
from mescal.theory.units import Unit, rescale, unit_of

SCALES = [(7.3, 0.19, 1.0), (1e-3, 1.0, 1.0), (1.0, 40.0, 1.0), (0.02, 3.1, 11.0)]

FORMULAS = {
    "sg-hv-nc": lambda c, g, h: sg_hv_nc.parameters(c, g, h),
    "sg-hv-nc, population": lambda c, g, h: sg_hv_nc.parameters(c, g, h, population=100),
    "natasha2": lambda c, g, h: natasha2.parameters(c, g, h),
    "natasha2, population": lambda c, g, h: natasha2.parameters(c, g, h, population=100),
    "spider": lambda c, g, h: spider.parameters(c, g, h),
    "spider, sharp": lambda c, g, h: spider.parameters(c, g, h, sharp=True),
    "spider, population": lambda c, g, h: spider.parameters(c, g, h, population=100),
    "oja": lambda c, g, h: negative_curvature.oja(c, h, 0.01, 20),
    "oja, minibatch": lambda c, g, h: negative_curvature.oja_minibatch(c, h, 20),
    "lanczos": lambda c, g, h: negative_curvature.lanczos(c, h, 0.01, 2000),
    "neon2": lambda c, g, h: negative_curvature.neon2(c, h, 0.01, 20),
    "neon2, runnable": lambda c, g, h: negative_curvature.neon2_runnable(c, h, 20),
    "boost": lambda c, g, h: boosting.boost(c, g, h, 0.95, 0.5),
}


def gradient_unit(s, r):
    return s / r


def curvature_unit(s, r):
    return s / r**2


def same(left, right) -> bool:
    """Equal up to rounding; a whole number may fall to the other side of a ceiling when the last bits differ."""
    if isinstance(left, int) and not isinstance(left, bool):
        return abs(left - right) <= 1 + 1e-9 * abs(right)
    return left == pytest.approx(right, rel=1e-9)


def differences(left, right) -> list[str]:
    names = [field.name for field in dataclasses.fields(left)]
    return [name for name in names if not same(getattr(left, name), getattr(right, name))]


@pytest.mark.parametrize(("s", "r", "t"), SCALES)
@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
def test_parameters_are_independent_of_units(formula, case, s, r, t):
    c, g, h = case
    scaled = formula(rescale(c, s, r, t), g * gradient_unit(s, r), h * curvature_unit(s, r))
    assert differences(scaled, rescale(formula(c, g, h), s, r, t)) == []


@pytest.mark.parametrize(("s", "r", "t"), SCALES)
@pytest.mark.parametrize("solver", [sg_hv_nc, natasha2, spider], ids=lambda module: module.NAME)
def test_work_and_admissibility_are_independent_of_units(solver, case, s, r, t):
    c, g, h = case
    cc, gg, hh = rescale(c, s, r, t), g * gradient_unit(s, r), h * curvature_unit(s, r)
    here, there = solver.parameters(c, g, h), solver.parameters(cc, gg, hh)
    cost = [solver.work(p, solver.search(p, k, 9).cost).expected for p, k in ((here, c), (there, cc))]
    assert cost[1].total == pytest.approx(cost[0].total, rel=1e-3)  # counts differ by one here and there
    assert order(solver.TERMS, cc, gg, hh) == pytest.approx(order(solver.TERMS, c, g, h), rel=1e-9)
    assert len(solver.violations(cc, gg, hh)) == len(solver.violations(c, g, h))
    assert general_work(cc, gg, hh) == pytest.approx(general_work(c, g, h), rel=1e-9)


@pytest.mark.parametrize(("s", "r", "t"), SCALES)
@pytest.mark.parametrize("sharp", [False, True])
def test_lemmas_and_outer_loop_are_independent_of_units(problem, schedule, sharp, s, r, t):
    scaled, plan = rescale(problem, s, r, t), rescale(schedule, s, r, t)
    residual, feasible, value = 0.01 * gradient_unit(s, r), 0.02 * t, s
    for bound in (gap.deterministic_bound, gap.bound_after_success):
        extra = () if bound is gap.deterministic_bound else (residual,)
        plain = () if bound is gap.deterministic_bound else (0.01,)
        assert bound(scaled, plan, 3, *extra) == pytest.approx(value * bound(problem, schedule, 3, *plain))
    assert gap.uniform_bound(scaled, plan, residual) == pytest.approx(
        value * gap.uniform_bound(problem, schedule, 0.01)
    )
    here = lemmas.subproblem_constants(problem, schedule.multiplier_bound, schedule.penalty(2), 1.0, sharp)
    there = lemmas.subproblem_constants(scaled, plan.multiplier_bound, plan.penalty(2), value, sharp)
    assert differences(there, rescale(here, s, r, t)) == []
    mean_square = lemmas.gradient_noise_mean_square
    assert mean_square(scaled, plan.multiplier_bound, plan.penalty(2)) == pytest.approx(
        gradient_unit(s, r) * mean_square(problem, schedule.multiplier_bound, schedule.penalty(2))
    )
    assert outer.iteration_bound(scaled, plan, residual, feasible) == outer.iteration_bound(
        problem, schedule, 0.01, 0.02
    )
    assert outer.feasibility_bound(scaled, plan, plan.penalty(1), residual) == pytest.approx(
        t * outer.feasibility_bound(problem, schedule, schedule.penalty(1), 0.01)
    )
    assert outer.dual_sample_size(scaled.constraint_noise, feasible) == outer.dual_sample_size(
        problem.constraint_noise, 0.02
    )
    assert boosting.gradient_bound(scaled, plan, plan.penalty(1)) == pytest.approx(
        gradient_unit(s, r) * boosting.gradient_bound(problem, schedule, schedule.penalty(1))
    )
    one = boosting.option_one(here, 0.1, 0.1, 5.0, 0.5)
    two = boosting.option_one(there, 0.1 * s / r, 0.1 * s / r**2, 5.0 * s / r, 0.5)
    assert differences(two, rescale(one, s, r, t)) == []


@pytest.mark.parametrize("solver", ["sg-hv-nc", "natasha2", "spider"])
def test_whole_run_is_independent_of_units(problem, schedule, solver):
    s, r, t = 7.3, 0.19, 11.0
    here = sample_complexity(solver, problem, schedule, 0.1, 0.1, feasibility_tolerance=0.1, probability=0.9)
    there = sample_complexity(
        solver, rescale(problem, s, r, t), rescale(schedule, s, r, t), 0.1 * s / r, 0.1 * s / r**2,
        feasibility_tolerance=0.1 * t, probability=0.9,
    )  # fmt: skip
    assert (here.iterations, here.copies) == (there.iterations, there.copies)
    assert there.evaluations == pytest.approx(here.evaluations, rel=1e-6)
    assert there.orders == pytest.approx(here.orders, rel=1e-6)


@pytest.mark.parametrize("record", [ProblemConstants, SubproblemConstants, outer.Schedule, boosting.OptionOne,
                                    boosting.Boost, sg_hv_nc.Parameters, natasha2.Parameters, spider.Parameters,
                                    negative_curvature.Oja, negative_curvature.Minibatch, negative_curvature.Lanczos,
                                    negative_curvature.Neon2])  # fmt: skip
def test_every_number_says_its_unit(record):
    from typing import get_type_hints

    hints = get_type_hints(record, include_extras=True)
    assert [name for name, hint in hints.items() if hint is not bool and unit_of(hint) is None] == []


@pytest.mark.parametrize(
    "terms",
    [sg_hv_nc.TERMS, natasha2.TERMS, spider.TERMS, (*GENERAL_FIRST_ORDER, GENERAL_CURVATURE)],
    ids=["Lemma 4.1", "Lemma 4.3", "Lemma 4.5", "eq. 3.23"],
)
def test_terms_of_work_are_counts(terms):
    assert [term for term in terms if term.unit() != Unit()] == []


def printed_blocks(c, g, h):
    return 4 * max(81 * c.hessian_lipschitz * c.gap / h**3, 120 * c.hessian_lipschitz * c.gap / (h * g))


def printed_step(c, g, h):
    spread = c.hessian_noise**2 + g * c.hessian_lipschitz
    step = min(h / c.hessian_lipschitz, 1 / (2 * math.sqrt(c.gradient_lipschitz**2 + spread)))
    return step * c.gradient_lipschitz  # without a unit, if the step had that of a step size


def printed_probability(c, g, h):
    step = sg_hv_nc.parameters(c, 3 * g, 2 * h).step_size
    return h**3 / (h**3 + 10 * c.gap * c.hessian_lipschitz**2 * step * g**2)


def printed_reset(c, g, h):
    step = sg_hv_nc.parameters(c, 3 * g, 2 * h).step_size
    return step * math.sqrt(c.hessian_noise**2 + g * c.hessian_lipschitz) / c.gradient_noise


def printed_condition(c, g, h):
    return (c.gradient_noise**2 * g * c.hessian_lipschitz**3 / c.gradient_lipschitz) ** 0.25 / h


# What the paper prints, as numbers that ought to have no unit.
PRINTED = {
    "erratum 3: blocks of SPIDER": printed_blocks,
    "erratum 7: step size of SG-HV-NC": printed_step,
    "erratum 8: probability of a gradient step": printed_probability,
    "erratum 9: reset probability": printed_reset,
    "erratum 10: failure of the search": lambda c, g, h: h / (1600 * c.hessian_lipschitz),
    "Lemma 4.3, first term": Term(gradient_noise=4, eps_g=-2).value,
    "Lemma 4.3, admissible curvature": printed_condition,
    "eq. 3.23, second term": Term(gap=1, gradient_noise=1, hessian_lipschitz=0.5, eps_g=-3.5).value,
    "eq. 3.23, third term": Term(gap=1, gradient_noise=1, gradient_lipschitz=1, eps_g=-4).value,
}


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
def test_printed_formulas_depend_on_units(constants, printed):
    """By a factor of at least e^(1/2) in some choice of units, where the corrected ones agree to 1e-9."""
    g, h, changes = 0.05, 0.001, []
    for s, r, _ in SCALES:
        scaled = printed(rescale(constants, s, r), g * gradient_unit(s, r), h * curvature_unit(s, r))
        changes.append(abs(math.log(scaled / printed(constants, g, h))))
    assert max(changes) > 0.5


CORRECTED = {
    "blocks of SPIDER": lambda c, g, h: 4 * max(81 * c.hessian_lipschitz**2 * c.gap / h**3,
                                                120 * c.hessian_lipschitz * c.gap / (h * g)),
    "step size of SG-HV-NC": lambda c, g, h: sg_hv_nc.parameters(c, g, h).step_size * c.gradient_lipschitz,
    "admissible curvature of Natasha2": lambda c, g, h: (
        c.gradient_noise**2 * g * c.hessian_lipschitz**3 / c.gradient_lipschitz**2) ** 0.25 / h,
}  # fmt: skip


@pytest.mark.parametrize("corrected", CORRECTED.values(), ids=CORRECTED)
def test_corrected_counterparts_do_not(constants, corrected):
    for s, r, _ in SCALES:
        scaled = corrected(rescale(constants, s, r), 0.05 * gradient_unit(s, r), 0.001 * curvature_unit(s, r))
        assert scaled == pytest.approx(corrected(constants, 0.05, 0.001))


def test_rescale_follows_the_annotations():
    record = SubproblemConstants(
        gradient_lipschitz=1.0, hessian_lipschitz=1.0, gradient_noise=1.0, hessian_noise=1.0, gap=1.0
    )
    scaled = rescale(record, objective=2.0, length=3.0)
    assert (scaled.gap, scaled.gradient_noise) == (2.0, pytest.approx(2 / 3))
    assert (scaled.hessian_noise, scaled.hessian_lipschitz) == (pytest.approx(2 / 9), pytest.approx(2 / 27))

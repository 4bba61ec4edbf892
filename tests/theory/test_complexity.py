"""Theorems 3.8, 4.2, 4.4, 4.6 and Table 1: exponents, and numbers for given constants."""

import math

import numpy as np
import pytest

from mescal import theory
from mescal.errors import InputError
from mescal.theory import complexity, table1
from mescal.theory.constants import SubproblemConstants
from mescal.theory.cost import Cost, Term, order
from mescal.theory.orders import Rate, rate, rate_of
from mescal.theory.outer import Schedule

PRINTED = {
    ("sg-hv-nc", "deterministic"): ((6, 2), (5, 5)),
    ("sg-hv-nc", "probabilistic"): ((5, 2), (4, 5)),
    ("natasha2", "deterministic"): ((7, 1), (5, 5)),
    ("natasha2", "probabilistic"): ((6, 1), (4, 5)),
    ("spider", "deterministic"): ((6, 2), (5, 5)),
    ("spider", "probabilistic"): ((5, 2), (4, 5)),
}


@pytest.mark.parametrize(("key", "exponents"), PRINTED.items(), ids=lambda value: " ".join(map(str, value)))
def test_rates_of_the_theorems(key, exponents):
    assert theory.solver_rate(*key) == Rate(exponents)


def test_rate_of_a_general_solver():
    """Theorem 3.8, and that the corrected s_g^2 in (3.23) does not change it."""
    assert theory.general_rate() == Rate(((5, 0), (4, 5)))
    assert theory.general_rate("deterministic") == Rate(((6, 0), (5, 5)))
    printed = (Term(gap=1, gradient_noise=1, hessian_lipschitz=0.5, eps_g=-3.5),
               Term(gap=1, gradient_noise=1, gradient_lipschitz=1, eps_g=-4))  # fmt: skip
    assert [term.exponents(gap_grows=False)[0] for term in printed] == [5, 6]
    assert [term.exponents(gap_grows=False)[0] for term in complexity.GENERAL_FIRST_ORDER] == [5, 6, 7]


def test_general_work_by_hand(constants):
    first = min(0.9 * 0.7 * 1.1 / 0.1**3, 0.9 * 0.49 * math.sqrt(2) / 0.1**3.5, 0.9 * 0.49 * 3 / 0.1**4)
    assert theory.general_work(constants, 0.1, 0.2) == pytest.approx(first + 0.9 * 1.21 * 4 / 0.2**5)


def test_lemma_of_sg_hv_nc_by_hand(constants):
    """Delta times s_g s_H/eps_g^3 + L_H s_g s_H/(eps_H eps_g)^2 + L_H^2 (s_H + L_g)^2/eps_H^5 + L_g/eps_g^2."""
    g, h = 0.1, 0.2
    wanted = 0.9 * (0.7 * 1.1 / g**3 + 2 * 0.7 * 1.1 / (g * h) ** 2 + 4 * (1.1 + 3) ** 2 / h**5 + 3 / g**2)
    assert order(theory.sg_hv_nc.TERMS, constants, g, h) == pytest.approx(wanted)


def test_rates_drop_what_others_dominate():
    assert rate((3, 1), (2, 1), (3, 0)) == Rate(((3, 1),))
    assert rate((3, 1), (1, 3), (0, 5)) == Rate(((3, 1), (0, 5)))  # (1, 3) lies below the segment
    assert rate((3, 0), (2, 2), (0, 5)) == Rate(((3, 0), (2, 2), (0, 5)))  # (2, 2) above it
    assert rate((1, 1), (1, 1)) == Rate(((1, 1),))
    assert str(rate((3.5, 0), (0, 5))) == "eps_g^-3.5 + eps_H^-5"
    assert theory.solver_rate("spider").power() == 10
    assert theory.solver_rate("spider").power(curvature=0.5) == 7.5


@pytest.mark.parametrize("solver", complexity.SOLVERS)
@pytest.mark.parametrize("curvature", [0.5, 1.0, 1.6])
def test_rates_agree_with_the_lemmas_along_a_ladder(solver, curvature):
    """log(work of the last subproblem)/log(1/eps) on eps = 1e-20, 1e-21, penalty 1/eps: the exponent, to 1e-3."""
    terms, values = complexity.SOLVERS[solver].TERMS, []
    for eps in (1e-20, 1e-21):
        c = SubproblemConstants(
            gradient_lipschitz=3 / eps, hessian_lipschitz=2 / eps, gradient_noise=0.7 / eps, hessian_noise=1.1 / eps,
            gap=0.9 / eps,
        )  # fmt: skip
        values.append(math.log10(order(terms, c, eps, eps**curvature)))
    assert values[1] - values[0] == pytest.approx(theory.solver_rate(solver).power(curvature), abs=1e-3)


def test_table_is_the_printed_one():
    rows = {row.method: row for row in table1.rows()}
    assert list(rows) == ["ConEx", "Stoch-iALM", "Stoch-SQP", "SCR", "Natasha2", "SPIDER", "SG-HV-NC",
                          "MESCAL-SG-HV-NC", "MESCAL-SPIDER", "MESCAL-Natasha2"]  # fmt: skip
    first = {name: row.first_order.power() for name, row in rows.items() if row.first_order}
    assert first == {"ConEx": 6, "Stoch-iALM": 5, "Stoch-SQP": 4}
    assert rows["SCR"].second_order == Rate(((3.5, 0),))
    assert rows["Natasha2"].second_order == Rate(((3, 1), (0, 5)))
    assert rows["MESCAL-SPIDER"].second_order == rows["MESCAL-SG-HV-NC"].second_order == Rate(((6, 2), (5, 5)))
    assert rows["MESCAL-Natasha2"].second_order == Rate(((7, 1), (5, 5)))
    assert [rows[f"MESCAL-{name}"].probability for name in ("SG-HV-NC", "Natasha2", "SPIDER")] == [5 / 8, 2 / 3, 1 / 2]
    assert len(table1.text().splitlines()) == 11


def test_table_drops_a_term_that_matters():
    """With eps_g = eps_H^1.7 the omitted eps_g^-2 eps_H^-2 = eps_H^-5.4 exceeds eps_g^-3 + eps_H^-5."""
    for row in table1.rows():
        if row.method in ("SPIDER", "SG-HV-NC"):
            assert row.second_order == Rate(((3, 0), (2, 2), (0, 5)))
            assert row.second_order.power(1 / 1.7) > rate((3, 0), (0, 5)).power(1 / 1.7)
            assert row.second_order.power(1) == 5  # at equal tolerances it does not matter


def test_cost_in_both_countings():
    cost = Cost(gradients=10, hessian_products=3)
    assert cost.total == 16
    assert cost.evaluations(constraint_count=2) == 10 * 5 + 3 * 9
    assert 2 * cost + Cost(gradients=1) == Cost(21, 6)


@pytest.mark.parametrize("solver", complexity.SOLVERS)
def test_a_search_is_priced_as_the_one_that_runs(problem, schedule, solver):
    """k b products and b to check, b for the tolerance and failure probability of the parameters; on a population k N products
    and N gradients. The paper's search is dearer; an unknown one is refused.
    """
    runs, paper = (
        theory.sample_complexity(solver, problem, schedule, 0.1, 0.2, search=kind) for kind in complexity.KINDS
    )
    c = theory.subproblem_constants(
        problem, 2.5, schedule.penalty(0), theory.gap.deterministic_bound(problem, schedule, 0)
    )
    p = complexity.parameters_of(solver, c, 0.1, 0.2)
    asked = p.search_tolerance, p.search_failure, 7
    one = theory.negative_curvature.lanczos(c, *asked)
    assert complexity.search_cost(solver, p, c, 7).total == 2 * (7 + 1) * one.batch  # 7 steps are a whole basis
    assert runs.subproblems[0] == complexity.SOLVERS[solver].work(p, complexity.search_cost(solver, p, c, 7)).expected
    assert paper.cost.total > runs.cost.total
    exact = complexity.search_cost(solver, p, c, 7, population=50)
    assert (exact.gradients, exact.hessian_products) == (50, 7 * 50)
    small = theory.sample_complexity(solver, problem, schedule, 0.1, 0.2, population=50)
    assert small.cost.total < runs.cost.total
    with pytest.raises(InputError, match="lanczos"):
        theory.sample_complexity(solver, problem, schedule, 0.1, 0.2, search="oja")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("solver", complexity.SOLVERS)
def test_a_run_is_the_sum_of_its_subproblems(problem, schedule, solver):
    run = theory.sample_complexity(solver, problem, schedule, 0.1, 0.2, search="paper")
    assert run.iterations == theory.iteration_bound(problem, schedule, 0.1)
    assert len(run.subproblems) == run.iterations + 1
    module, k = complexity.SOLVERS[solver], 4
    c = theory.subproblem_constants(
        problem, 2.5, schedule.penalty(k), theory.gap.deterministic_bound(problem, schedule, k)
    )
    p = module.parameters(c, 0.1, 0.2)
    assert run.subproblems[k] == module.work(p, module.search(p, c, 7).cost).expected
    assert run.cost.total == pytest.approx(sum(cost.total for cost in run.subproblems))
    dual = 3 * (run.iterations + 1) * theory.dual_sample_size(0.17, 0.1)
    assert run.evaluations == pytest.approx(run.cost.evaluations(3) + dual)
    assert (np.diff([cost.total for cost in run.subproblems]) > 0).all()
    assert (run.point_probability, run.work_probability) == (module.SUCCESS_PROBABILITY, 1.0)


@pytest.mark.parametrize("solver", complexity.SOLVERS)
def test_the_probabilistic_bound_is_smaller_and_less_certain(problem, schedule, solver):
    always, likely = (theory.sample_complexity(solver, problem, schedule, 0.05, 0.2, gap_bound=bound)
                      for bound in ("deterministic", "probabilistic"))  # fmt: skip
    assert likely.cost.total < always.cost.total
    assert likely.subproblems[0] == always.subproblems[0]  # no subproblem before the first
    p = complexity.SOLVERS[solver].SUCCESS_PROBABILITY
    assert likely.work_probability == pytest.approx(p**likely.iterations)


@pytest.mark.parametrize("solver", complexity.SOLVERS)
def test_boosting_a_run_costs_copies(problem, schedule, solver):
    plain = theory.sample_complexity(solver, problem, schedule, 0.1, 0.2, gap_bound="probabilistic")
    boosted = theory.sample_complexity(solver, problem, schedule, 0.1, 0.2, gap_bound="probabilistic", probability=0.9)
    p = 0.9 ** (1 / (plain.iterations + 1))
    assert (boosted.point_probability, boosted.work_probability) == (0.9, 0.9)
    base = complexity.SOLVERS[solver].SUCCESS_PROBABILITY
    assert set(boosted.copies) == {theory.copies((1 + p) / 2, base)}
    assert boosted.cost.total > boosted.copies[0] * plain.cost.total


@pytest.mark.parametrize("solver", complexity.SOLVERS)
def test_counted_work_grows_no_faster_than_the_theorem(problem, solver):
    """Total work on a ladder of tolerances, eps_g = eps_H: the slope of its logarithm, to the logarithms in it."""
    schedule, eps = Schedule(initial_penalty=1.0, growth=2.0, multiplier_bound=1.0), np.logspace(-5, -8, 4)
    totals = [theory.sample_complexity(solver, problem, schedule, e, e).cost.total for e in eps]
    slopes = np.diff(np.log10(totals))
    assert np.mean(slopes) == pytest.approx(theory.solver_rate(solver).power(), abs=0.8)


def test_sharp_constants_lower_the_bound(problem, schedule):
    plain, sharp = (
        theory.sample_complexity("spider", problem, schedule, 0.1, 0.2, sharp=flag) for flag in (False, True)
    )
    assert sharp.cost.total < plain.cost.total


def test_unknown_names_are_refused(problem, schedule):
    with pytest.raises(InputError, match="no solver 'adam'"):
        theory.solver_rate("adam")
    with pytest.raises(InputError, match="gap bound"):
        theory.solver_rate("spider", "hopeful")  # pyright: ignore
    with pytest.raises(InputError, match="tolerance"):
        theory.sample_complexity("spider", problem, schedule, 0.1, 0.0)


def test_public_names_exist():
    assert [name for name in theory.__all__ if not hasattr(theory, name)] == []


def test_unused_rate_terms_are_pruned_by_rate_of():
    assert rate_of([Term(eps_g=-2), Term(eps_g=-3)]) == Rate(((3, 0),))

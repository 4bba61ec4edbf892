"""How much work MESCAL needs: Theorem 3.8 for a general solver, Theorems 4.2, 4.4 and 4.6 for the three solvers.

Orders (`solver_rate`, `general_rate`) follow from the terms of the work lemmas; `sample_complexity` sums the counts of
the algorithms as `theory.<solver>.parameters` sets them, and has no hidden constants.

A search for negative curvature is priced as the one that runs, sub-sampled Lanczos (`negative_curvature.lanczos`), or as the
paper's, Oja's algorithm or Neon2 with absolute constants 1: `search="lanczos"` or "paper". Theory modes take the first unless they
are told otherwise; the paper's is dearer by factors of a million and more.

Deviations from the paper:

1. The second and third member of the minimum in (3.23) have s_g^2, as a count must (printed: s_g). The first member
   decides the rate, which stays as printed.
2. "Deterministic" means: with the bound (3.9) of the gap, which always holds. The work of SG-HV-NC and Natasha2 is a
   mean even so.
3. The bound with Delta* is for solvers that are told a gap that holds. Where Delta* itself is what they are told,
   subproblem k is promised to succeed only if all before it did: work and point then hold together, with probability
   >= p^(K+1).
"""

from dataclasses import dataclass
from typing import Any, Literal

from ..errors import InputError
from . import boosting, gap, natasha2, negative_curvature, outer, sg_hv_nc, spider
from .constants import ProblemConstants, SubproblemConstants, subproblem_constants
from .cost import Cost, Term, order
from .orders import Rate, rate, rate_of
from .outer import Schedule
from .units import Constraint, Count, Curvature, Gradient, Number

SOLVERS = {solver.NAME: solver for solver in (sg_hv_nc, natasha2, spider)}

GapBound = Literal["deterministic", "probabilistic"]
SearchKind = Literal["lanczos", "paper"]
KINDS: tuple[SearchKind, ...] = ("lanczos", "paper")

# Assumption 3.4, eq. (3.23): the smallest of three first-order terms, and one for curvature.
GENERAL_FIRST_ORDER = (
    Term(gap=1, gradient_noise=1, hessian_noise=1, eps_g=-3),
    Term(gap=1, gradient_noise=2, hessian_lipschitz=0.5, eps_g=-3.5),
    Term(gap=1, gradient_noise=2, gradient_lipschitz=1, eps_g=-4),
)
GENERAL_CURVATURE = Term(gap=1, hessian_noise=2, hessian_lipschitz=2, eps_H=-5)


def general_work(
    constants: SubproblemConstants, gradient_tolerance: Gradient, curvature_tolerance: Curvature
) -> Number:
    """Eq. (3.23), the work assumed of a general solver, up to logarithms:

    B_M = min(Delta s_g s_H / eps_g^3, Delta s_g^2 L_H^(1/2) / eps_g^3.5, Delta s_g^2 L_g / eps_g^4)
    + Delta s_H^2 L_H^2 / eps_H^5.
    """
    tolerances = (gradient_tolerance, curvature_tolerance)
    first = min(term.value(constants, *tolerances) for term in GENERAL_FIRST_ORDER)
    return first + GENERAL_CURVATURE.value(constants, *tolerances)


def general_rate(gap_bound: GapBound = "probabilistic") -> Rate:
    """Theorem 3.8: eps_g^-5 + eps_g^-4 eps_H^-5 with the gap bounded by Delta*.

    In mean under Option I, with probability p under Option II.
    """
    grows = _gap_grows(gap_bound)
    first = min(term.exponents(gap_grows=grows) for term in GENERAL_FIRST_ORDER)
    return rate(first, GENERAL_CURVATURE.exponents(gap_grows=grows))


def solver_rate(solver: str, gap_bound: GapBound = "deterministic") -> Rate:
    """Theorems 4.2, 4.4, 4.6: the rate of MESCAL with this solver. The probabilistic one is lower by a factor eps_g.

    It holds with probability >= p^K, p = 5/8, 2/3 or 1/2 being the solver's. For SPIDER ebar and eps_g are of one order
    up to logarithms (Lemma A.4), unless eps_H falls exponentially faster than eps_g.
    """
    return rate_of(_solver(solver).TERMS, gap_grows=_gap_grows(gap_bound))


@dataclass(frozen=True, kw_only=True)
class SampleComplexity:
    """The work of a whole run with K = K* (Theorems 4.2, 4.4, 4.6), counted without hidden constants."""

    iterations: Count  # K*; the run has K* + 1 subproblems
    subproblems: tuple[Cost, ...]  # mean cost of each, copies and verification included
    orders: tuple[Number, ...]  # the same by the work lemma, without its hidden constants
    copies: tuple[Count, ...]  # independent solves of each
    dual_samples: Count  # |S^d| of each dual update
    constraint_count: Count
    point_probability: Number  # of a good x_K, where every solve is told a gap that holds
    work_probability: Number  # that the gaps, and with them the work bound, hold

    @property
    def cost(self) -> Cost:
        """Gradients and Hessian-vector products of all subproblems."""
        return sum(self.subproblems, Cost())

    @property
    def evaluations(self) -> Number:
        """Definition 1.3, eq. (3.20): single evaluations of F and C_j, dual updates included."""
        dual = self.constraint_count * self.dual_samples * (self.iterations + 1)
        return self.cost.evaluations(self.constraint_count) + dual


def sample_complexity(
    solver: str,
    problem: ProblemConstants,
    schedule: Schedule,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    *,
    gap_bound: GapBound = "deterministic",
    feasibility_tolerance: Constraint | None = None,
    probability: Number | None = None,
    sharp: bool = False,
    search: SearchKind = "lanczos",
    population: Count | None = None,
) -> SampleComplexity:
    """W = sum over k = 0..K* of W_k + m |S^d|, W_k the mean work of the solver at alpha_k (Lemma 3.7).

    The gap is Delta*_k ("deterministic"), or Delta*_0 and then Delta* ("probabilistic"). With `probability` p every
    subproblem is boosted to p^(1/(K+1)), so that x_K is good and the work holds, together, with probability >= p; the
    curvature check of a copy is one more search. `sharp` takes the sharper constants of `theory.constants` and of
    `theory.spider`. `search` says how a search is priced. On a finite `population` resets and searches are exact where the
    formulas ask for as many samples.
    """
    module = _solver(solver)
    feasible = gradient_tolerance if feasibility_tolerance is None else feasibility_tolerance
    last = outer.iteration_bound(problem, schedule, gradient_tolerance, feasible)
    single = module.SUCCESS_PROBABILITY
    wanted = None if probability is None else outer.success_probability(probability, last, "both")
    costs, orders, copies = [], [], []
    for k in range(last + 1):
        constants = subproblem_constants(
            problem,
            schedule.multiplier_bound,
            schedule.penalty(k),
            _gap(problem, schedule, k, gradient_tolerance, gap_bound),
            sharp,
        )
        tolerances, number, check = (gradient_tolerance, curvature_tolerance), 1, Cost()
        if wanted is not None and wanted > single:
            plan = boosting.boost(constants, *tolerances, wanted, single)
            tolerances, number = (plan.gradient_tolerance, plan.curvature_tolerance), plan.copies
            check = Cost(gradients=plan.verification_batch)
        parameters = parameters_of(solver, constants, *tolerances, population=population, sharp=sharp)
        looked = search_cost(solver, parameters, constants, problem.dimension, search, population)
        checked = check + looked if number > 1 else check
        costs.append(number * (module.work(parameters, looked).expected + checked))
        reduced = getattr(parameters, "reduced_tolerance", tolerances[0])
        orders.append(order(module.TERMS, constants, reduced, tolerances[1]))
        copies.append(number)
    deterministic = gap_bound == "deterministic"
    return SampleComplexity(
        iterations=last,
        subproblems=tuple(costs),
        orders=tuple(orders),
        copies=tuple(copies),
        dual_samples=outer.dual_sample_size(problem.constraint_noise, feasible),
        constraint_count=problem.constraint_count,
        point_probability=single if probability is None else probability,
        work_probability=1.0 if deterministic else single**last if probability is None else probability,
    )


def parameters_of(
    solver: str,
    constants: SubproblemConstants,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    *,
    population: Count | None = None,
    sharp: bool = False,
) -> Any:
    """The parameters with which the theory mode of a solver runs."""
    asked = {"sharp": sharp} if solver == spider.NAME else {}
    return _solver(solver).parameters(
        constants, gradient_tolerance, curvature_tolerance, population=population, **asked
    )


def search_cost(
    solver: str,
    parameters: Any,
    constants: SubproblemConstants,
    dimension: Count,
    search: SearchKind = "lanczos",
    population: Count | None = None,
) -> Cost:
    """Of one search at the tolerance and failure probability of these parameters, at most."""
    if search not in KINDS:
        raise InputError(f"search={search!r}", "'lanczos', the one that runs, or 'paper'", "leave it out")
    if search == "paper":
        return _solver(solver).search(parameters, constants, dimension).cost
    asked = parameters.search_tolerance, parameters.search_failure, dimension
    return negative_curvature.lanczos(constants, *asked, population=population).cost


def _gap(problem: ProblemConstants, schedule: Schedule, k: int, residual: Gradient, gap_bound: GapBound) -> float:
    always = gap.deterministic_bound(problem, schedule, k)
    if _gap_grows(gap_bound) or k == 0:
        return always
    return min(always, gap.uniform_bound(problem, schedule, residual))


def _gap_grows(gap_bound: GapBound) -> bool:
    if gap_bound not in ("deterministic", "probabilistic"):
        raise InputError(
            f"gap bound is {gap_bound!r}",
            "deterministic or probabilistic",
            "the first always holds, the second is smaller",
        )
    return gap_bound == "deterministic"


def _solver(name: str):
    if name not in SOLVERS:
        raise InputError(f"there is no solver {name!r}", f"one of {', '.join(SOLVERS)}", "check the spelling")
    return SOLVERS[name]

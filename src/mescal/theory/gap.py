"""Bounds on Delta_k, the gap between a subproblem's start and its minimum (Lemma 3.6).

Deviations from the paper:

1. Delta* has kappa_{grad f} + Lambda kappa_{grad c}, as in the feasibility bound (2.9); the paper prints the two
   gradients exchanged (erratum 15).
2. `residual` stands where the paper prints 1, as in `theory.outer`.
"""

from .constants import ProblemConstants
from .outer import Schedule, feasibility_bound
from .units import Gradient, Multiplier, Penalty, Value


def deterministic_bound(problem: ProblemConstants, schedule: Schedule, k: int) -> Value:
    """Eq. (3.9): Delta_k <= Delta*_k = 2 kappa_f + Lambda^2/alpha_0 + alpha_k kappa_c^2, always; grows with alpha_k."""
    return _base(problem, schedule) + schedule.penalty(k) * problem.constraint_bound**2


def uniform_bound(problem: ProblemConstants, schedule: Schedule, residual: Gradient) -> Value:
    """Eqs. (3.10)-(3.12), for k >= 1:

    Delta* = 2 kappa_f + Lambda^2/alpha_0 + kappa_c beta (eps_g + kappa_{grad f} + Lambda kappa_{grad c}) / C_reg.

    Bounds E[Delta_k] under Option I, and Delta_k itself where subproblem k-1 succeeded, hence all of Delta_1..Delta_K
    with probability >= p_0 ... p_{K-1} under Option II.
    """
    # kappa_c beta alpha_{k-1} |c(x_{k-1})|, with |c| from (2.9); the penalty cancels.
    reach = feasibility_bound(problem, schedule, 1.0, residual)
    return _base(problem, schedule) + problem.constraint_bound * schedule.growth * reach


def bound_after_success(problem: ProblemConstants, schedule: Schedule, k: int, residual: Gradient) -> Value:
    """Delta_k <= 2 kappa_f + Lambda^2/alpha_0 + alpha_k |c(x_{k-1})|^2 where subproblem k-1 succeeded, |c| from (2.9).

    Derived here; at most Delta*, because one factor |c| <= kappa_c there is bounded by (2.9) as well. Its last
    term falls like 1/alpha_k. Only under Option II: the mean of |c|^2 is not bounded by that of |c|.
    """
    feasible = min(problem.constraint_bound, feasibility_bound(problem, schedule, schedule.penalty(k - 1), residual))
    return _base(problem, schedule) + schedule.penalty(k) * feasible**2


def bound_from_values(value: Value, objective_lower: Value, multiplier: Multiplier, penalty: Penalty) -> Value:
    """Delta_k <= L(x_{k-1}) - f_low + |lambda|^2/(2 alpha), from the value at the start and a lower bound of f.

    Completing the square: lambda'c + alpha |c|^2/2 >= -|lambda|^2/(2 alpha) for every c.
    """
    return max(0.0, value - objective_lower + multiplier**2 / (2 * penalty))


def _base(problem: ProblemConstants, schedule: Schedule) -> Value:
    return 2 * problem.objective_bound + schedule.multiplier_bound**2 / schedule.initial_penalty

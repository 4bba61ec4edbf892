"""The outer loop of MESCAL: penalty, dual bounds, Lambda, feasibility, and the number of iterations K* (Theorem 2.1).

Deviations from the paper:

1. Where Theorem 2.1 and Lemma 3.6 write 1 for a bound on |proj_T(-grad L)|, the tolerance itself is used: never larger,
   and independent of units. `residual=1.0` gives the printed number.
2. The feasibility tolerance may differ from the gradient tolerance: one is measured in units of c, the other in F/X.
3. K* is 0 where the printed logarithm is negative: the first penalty is then large enough.
4. Success probabilities must end at or above the target, p_K >= p (erratum 16: printed p_K <= p).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ..errors import InputError
from .constants import ProblemConstants
from .counts import check_positive, check_probability, count
from .units import Constraint, Count, Gradient, Multiplier, Number, Penalty


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """alpha_k = alpha_0 beta^k, and Lambda, the bound on all multipliers."""

    initial_penalty: Penalty  # alpha_0
    growth: Number  # beta > 1
    multiplier_bound: Multiplier  # Lambda = |lambda_0| + sum of gamma_k

    def __post_init__(self):
        check_positive(initial_penalty=self.initial_penalty)
        if not (math.isfinite(self.growth) and self.growth > 1):
            raise InputError(f"growth is {self.growth}", "a number above 1", "use 1.1, as in the paper's experiments")
        if not (math.isfinite(self.multiplier_bound) and self.multiplier_bound >= 0):
            raise InputError(
                f"multiplier bound is {self.multiplier_bound}",
                "a finite number of at least zero",
                "bound the dual updates by a summable sequence and pass `multiplier_bound(start, total)`",
            )

    def penalty(self, k: int) -> Penalty:
        """alpha_k = alpha_0 beta^k (Algorithm 1, line 2)."""
        return self.initial_penalty * self.growth**k


def multiplier_bound(start: Multiplier, total: Multiplier) -> Multiplier:
    """Theorem 2.1: Lambda = |lambda_0| + sum_k gamma_k bounds |lambda_k| for every k, whatever the noise."""
    return start + total


def dual_bound(k: int, first_residual: Constraint, weight: Penalty = 1.0) -> Multiplier:
    """gamma_k = w (log 2)^2 |cbar(x_0)| / ((k+1) log^2(k+2)), k = 0, 1, ...; gamma_0 = w |cbar(x_0)|.

    The summable sequence of the inexact augmented Lagrangian literature; the paper asks only that one be chosen.
    """
    return weight * first_residual * math.log(2) ** 2 / ((k + 1) * math.log(k + 2) ** 2)


def dual_bound_total(first_residual: Constraint, weight: Penalty = 1.0) -> Multiplier:
    """An upper bound of sum_k gamma_k = 1.6276... w |cbar(x_0)|, above the true sum by less than 1e-6 of it.

    For a bound that holds before the run, `first_residual` = kappa_c + sigma_c.
    """
    return weight * first_residual * _dual_sum()


@cache
def _dual_sum(terms: int = 200_000) -> float:
    """Sum over j >= 2 of (log 2)^2 / ((j-1) log^2 j): `terms` of them, and an upper bound of the rest.

    h(j) = 1/(j log^2 j) is convex, so the sum over j >= n is at most its integral from n - 1/2, 1/log(n - 1/2);
    1/(j-1) <= (1 + 1/(n-1)) / j.
    """
    head = math.fsum(1 / ((j - 1) * math.log(j) ** 2) for j in range(2, terms))
    return math.log(2) ** 2 * (head + (1 + 1 / (terms - 1)) / math.log(terms - 0.5))


def feasibility_bound(
    problem: ProblemConstants, schedule: Schedule, penalty: Penalty, residual: Gradient
) -> Constraint:
    """Eq. (2.9): |c(x_k)| <= (|proj_T(-grad L)| + kappa_{grad f} + kappa_{grad c} Lambda) / (C_reg alpha_k)."""
    return _pull(problem, schedule, residual) / (problem.regularity * penalty)


def iteration_bound(
    problem: ProblemConstants,
    schedule: Schedule,
    gradient_tolerance: Gradient,
    feasibility_tolerance: Constraint | None = None,
    residual: Gradient | None = None,
) -> Count:
    """Theorem 2.1, eq. (2.7): the outer iteration from which on a subproblem solved to eps_g is feasible to eps_c.

    K* = ceil(log_beta((eps_g + kappa_{grad f} + kappa_{grad c} Lambda) / (C_reg alpha_0 eps_c)))

    eps_c = eps_g unless given. The run has the K* + 1 subproblems k = 0..K*. `residual` replaces the first eps_g; the
    paper prints 1. Without constraints: 0.
    """
    feasible = gradient_tolerance if feasibility_tolerance is None else feasibility_tolerance
    residual = gradient_tolerance if residual is None else residual
    check_positive(gradient_tolerance=gradient_tolerance, feasibility_tolerance=feasible, residual=residual)
    if problem.constraint_count == 0:
        return 0
    needed = _pull(problem, schedule, residual) / (problem.regularity * feasible)
    ratio = math.log(needed / schedule.initial_penalty) / math.log(schedule.growth)
    # The subtraction forgives the last bits when the ratio is whole on paper.
    return max(0, math.ceil(ratio - 1e-12 * max(1.0, abs(ratio))))


def dual_sample_size(constraint_noise: Constraint, feasibility_tolerance: Constraint) -> Count:
    """|S^d| = ceil(sigma_c^2 / eps_c^2), so that E|cbar - c|^2 <= eps_c^2 (remark after Theorem 2.1); at least 1."""
    check_positive(feasibility_tolerance=feasibility_tolerance)
    return count((constraint_noise / feasibility_tolerance) ** 2)


def success_probability(target: Number, iterations: Count, claim: Literal["point", "work", "both"]) -> Number:
    """The p_k to ask of every subproblem k = 0..K (Theorems 2.1 and 3.8), K = `iterations`.

    "point": p_k = p; x_K is good with probability >= p. "work": p_k = p^(1/K); the work bound, which needs the first
    K subproblems, holds with probability >= p, and apart from that x_K is good with probability >= p^(1/K) >= p.
    "both": p_k = p^(1/(K+1)); the two hold together with probability >= p, since all K + 1 subproblems succeed.
    """
    check_probability(target=target)
    exponents = {"point": 1, "work": max(1, iterations), "both": iterations + 1}
    if claim not in exponents:
        raise InputError(f"claim is {claim!r}", f"one of {', '.join(exponents)}", 'use "both" when in doubt')
    return target ** (1 / exponents[claim])


def reaches_target(probabilities: Sequence[Number], target: Number) -> bool:
    """Whether x_K is good with probability >= p: the last p_k decides, p_K >= p (erratum 16: the remark prints <=)."""
    return len(probabilities) > 0 and probabilities[-1] >= target


def _pull(problem: ProblemConstants, schedule: Schedule, residual: Gradient) -> Gradient:
    """What can hold c away from zero: |proj_T(-grad L)| + kappa_{grad f} + kappa_{grad c} Lambda."""
    return residual + problem.objective_gradient_bound + problem.jacobian_bound * schedule.multiplier_bound

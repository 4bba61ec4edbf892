"""SPIDER (Algorithm 6, SPIDER-SFO+): parameters for given constants, and what they cost (Lemma 4.5).

L_g, L_H, s_g, Delta are the fields of `SubproblemConstants`; e = ebar/10 and d = eps_H/3 are the symbols of the source,
ebar the paper's reduced tolerance, et the accuracy of the estimator. Deviations from the paper, by erratum number of
the specification where it has one:

1. (2) Every move has the same length, along g or along w; the paper mixes two variants and divides by |g| twice.
2. (3) J has L_H^2 in its first term (a count has no unit) and + 4.
3. (4) The search runs at tolerance 2d = 2 eps_H/3: a block moves d/L_H, which costs another d.
4. (5) |g| <= 2 et and |g - grad L| <= et give |grad L| <= 3 et, so et = eps_g/3 is the accuracy to reach.
5. (6) ebar is not an input: it is the largest found with ebar log(64 (T_m J + 1)) <= et, where T_m and J depend on it.
6. The step is d/(L_H T_m), which is ebar/(10 L_g n0) but for the rounding of T_m. With the printed step a block moves
   farther than d/L_H wherever T_m was rounded up, many times as far where it is 1, and -eps_H is not certified.
7. `sharp=True` replaces the logarithm by what the concentration of the estimator needs, and the second term of J by
   the decrease that blocks achieve. It raises ebar by an order of magnitude; the work falls with its cube.

The sharp form. Within a period g - grad L is a martingale: S1 terms bounded by s_g/S1 and, in each of q - 1 updates,
S2 terms bounded by 2 L_g eta/S2. Their squares sum to at most 5 e^2/2 (4 e^2 with exact resets). By Pinelis'
inequality and a union over K = T_m J moves, |g - grad L| <= e sqrt(8 ln(32 K)) at all of them but for 1/16. A block
lowers L by d^3/(3 L_H^2) in mean along negative curvature, and by (d/L_H) (et - e/2) along g while |g| > 2 et. Markov's
inequality over J = 4 (blocks that use up Delta) + 4 fails with probability 1/4, the searches with 1/16: together less
than 1/2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import InputError
from . import negative_curvature
from .constants import SubproblemConstants
from .cost import Cost, Term, Work
from .counts import check_positive, count, exceeded
from .units import Count, Curvature, Gradient, Length, Number

NAME = "spider"
SUCCESS_PROBABILITY = 1 / 2

# Lemma 4.5; eps_g stands for ebar.
TERMS = (
    Term(gap=1, gradient_lipschitz=1, gradient_noise=1, eps_g=-3),
    Term(gap=1, gradient_lipschitz=1, hessian_lipschitz=1, gradient_noise=1, eps_g=-2, eps_H=-2),
    Term(gap=1, gradient_lipschitz=2, hessian_lipschitz=2, eps_H=-5),
    Term(gap=1, gradient_lipschitz=2, hessian_lipschitz=1, eps_g=-1, eps_H=-3),
    Term(gradient_noise=2, eps_g=-2),
    Term(gradient_lipschitz=1, gradient_noise=1, hessian_lipschitz=-1, eps_g=-2, eps_H=1),
)


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Everything Algorithm 6 needs."""

    reduced_tolerance: Gradient  # ebar = 10 e
    accuracy: Gradient  # et = eps_g/3, of the estimator
    stop_threshold: Gradient  # 2 et
    large_batch: Count  # S1 gradients of a reset
    exact_resets: bool  # a reset is the mean over the population
    small_batch: Count  # S2 samples of an update, two gradients each
    period: Count  # q steps between resets
    step_length: Length  # of every move
    block_steps: Count  # T_m moves between searches
    blocks: Count  # J, searches at most
    search_tolerance: Curvature
    search_failure: Number


def parameters(
    constants: SubproblemConstants,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    *,
    ratio: float = 1.0,
    population: Count | None = None,
    sharp: bool = False,
) -> Parameters:
    """Algorithm 6, corrected, for the tolerances that the returned point has to meet; n0 = `ratio`, s = s_g.

    S1 = ceil(200 s^2/ebar^2), S2 = ceil(20 s/(ebar n0)), q = ceil(10 s n0/ebar),
    T_m = ceil(10 eps_H L_g n0/(3 L_H ebar)), step = eps_H/(3 L_H T_m),
    J = 4 max(floor(81 L_H^2 Delta/eps_H^3), floor(120 L_H Delta/(eps_H ebar))) + 4,
    ebar log(64 (T_m J + 1)) = et = eps_g/3.

    `ratio` in [1, 20 s/ebar] trades small batches for long periods at equal work. A `population` of n <= S1 has the
    finite-sum form S1 = n, S2 = ceil(sqrt(n)/n0), q = ceil(n0 sqrt(n)), n0 <= sqrt(n).
    """
    check_positive(gradient_tolerance=gradient_tolerance, curvature_tolerance=curvature_tolerance)
    accuracy = gradient_tolerance / 3

    def counts(ebar: Gradient) -> tuple[int, int]:
        return _counts(constants, ebar, curvature_tolerance, ratio, accuracy if sharp else None)

    def reached(ebar: Gradient) -> Gradient:
        steps = math.prod(counts(ebar))
        return ebar / 10 * math.sqrt(8 * math.log(32 * steps)) if sharp else ebar * math.log(64 * (steps + 1))

    ebar = _largest_below(reached, accuracy)
    block_steps, blocks = counts(ebar)
    noise = constants.gradient_noise / ebar
    large = count(200 * noise**2)
    exact = population is not None and large >= population
    if population is not None and exact:
        root = math.sqrt(population)
        large, small, period, limit = population, count(root / ratio), count(ratio * root), root
    else:
        small, period, limit = count(20 * noise / ratio), count(10 * noise * ratio), 20 * noise
    if not 1 <= ratio <= max(1.0, limit):
        raise InputError(
            f"ratio is {ratio:g}",
            f"a number from 1 to {max(1.0, limit):g}",
            "leave it at 1: the work does not depend on it",
        )
    return Parameters(
        reduced_tolerance=ebar,
        accuracy=accuracy,
        stop_threshold=2 * accuracy,
        large_batch=large,
        exact_resets=exact,
        small_batch=small,
        period=period,
        step_length=curvature_tolerance / (3 * constants.hessian_lipschitz * block_steps),
        block_steps=block_steps,
        blocks=blocks,
        search_tolerance=2 * curvature_tolerance / 3,
        search_failure=1 / (16 * blocks),
    )


def search(parameters: Parameters, constants: SubproblemConstants, dimension: Count) -> negative_curvature.Neon2:
    """The search of the paper, Neon2, at the tolerance and failure probability of these parameters."""
    return negative_curvature.neon2(constants, parameters.search_tolerance, parameters.search_failure, dimension)


def gradients(parameters: Parameters, steps: Count) -> Count:
    """Gradients of the first `steps` moves: S1 at each reset, t = 0, q, 2q, ..., and 2 S2 at every other one."""
    resets = -(-steps // parameters.period)
    return resets * parameters.large_batch + 2 * parameters.small_batch * (steps - resets)


def work(parameters: Parameters, search_cost: Cost) -> Work:
    """All J blocks: `gradients` of J T_m moves and J searches. A worst case, and the bound given for the mean too."""
    p = parameters
    worst = Cost(gradients=gradients(p, p.blocks * p.block_steps)) + p.blocks * search_cost
    return Work(worst, worst)


def violations(
    constants: SubproblemConstants, gradient_tolerance: Gradient, curvature_tolerance: Curvature
) -> tuple[str, ...]:
    """What Lemma 4.5 asks and these do not meet; its "<= 1" depends on units and is not used.

    ebar <= 20 s_g: otherwise no n0 >= 1 is allowed and every batch is a single sample, which still is correct.
    """
    ebar = parameters(constants, gradient_tolerance, curvature_tolerance).reduced_tolerance
    return exceeded("reduced tolerance", ebar, {"gradient noise times 20,": 20 * constants.gradient_noise})


def _counts(
    constants: SubproblemConstants, ebar: Gradient, eps: Curvature, ratio: float, accuracy: Gradient | None
) -> tuple[int, int]:
    """(T_m, J); with `accuracy` given, J in its sharp form."""
    lipschitz, bend, gap = constants.gradient_lipschitz, constants.hessian_lipschitz, constants.gap
    block_steps = count(10 * eps * lipschitz * ratio / (3 * bend * ebar))
    by_curvature, by_gradient = 81 * bend**2 * gap / eps**3, 120 * bend * gap / (eps * ebar)
    if accuracy is not None:
        # (d/L_H) (et - e/2) per block; ebar <= 10 et where this is called, so the decrease is positive.
        by_gradient = 3 * bend * gap / (eps * (accuracy - ebar / 20))
    return block_steps, 4 * max(_floor(by_curvature), _floor(by_gradient)) + 4


def _floor(value: float) -> int:
    return math.floor(value * (1 + 1e-12))  # whole on paper stays whole


def _largest_below(reached: Callable[[Gradient], Gradient], target: Gradient) -> Gradient:
    """The largest ebar found with reached(ebar) <= target; bisection, as reached grows with ebar but for rounding.

    It exceeds the target at 10 target: log(64 (K+1)) > 1, and sqrt(8 ln(32 K)) > 1.
    """
    low, high = 5 * target, 10 * target
    while reached(low) > target:
        low, high = low / 2, low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) <= target else (low, middle)
    return low

"""The single loop in the null space (`docs/null-space.md`): parameters for given constants, and what they cost.

    p = w + Lam s v, M^2 = |w|^2 + Lam^2 |c|^2 from estimates of (g, c, J);   x <- x + eta p/|p|   while M > (1 - 1/(5G)) eps;
    then a search on Null(J) for H = hess f + sum lam_j hess c_j, and +-u r in steps no longer than eta along what it finds

Constants are those of `theory.merit`, whose assumptions hold: X = R^d, equalities alone, sigma_min(J) >= s, bounded noise. The
derivation is one reader's, mended by a second, and published nowhere. Throughout t = 0.95 eps_H is what the search is asked for.

1. *Accuracy.* The three recursions are one, of (g, 2 Lam c, a_J J). An error of it of at most A moves p by at most
   sqrt(3) A <= eps/(5G). Where M > (1 - 2/(5G)) eps = e the error is at most M/(4G), hence (grad phi)'p <= -M^2/4,
   |p| <= 1.08 M, and a step of length eta = e/(5 L_phi) lowers phi by at least e^2/(50 L_phi).
2. *Escapes.* u in Null(J) up to e_J <= A/a_J, u'Hu <= -t/2. With a fair sign, as in SPIDER, all that is odd in r has mean zero, the
   slope of phi and the first change of lam'c among it, and for r = t/(2 rho') phi falls in mean by at least t^3/(48 rho'^2) if

       (1.1 h/s + L2/(2 Lam)) eps <= t/18,     e_J <= t/(54 Lam):

   eps = O(eps_H) is enough. (With the sign of an estimated slope eps = O(eps_H^2) would be needed.)
3. *No direction.* Then the Hessian on the true Null(J), at the true multipliers, is at least -t - 2 Lam e_J - h |error of lam|
   >= -1.05 t >= -eps_H.
4. *Counts.* By Markov's inequality decreases and mean decreases together stay below 2 Delta/p but for p/2, p the failure that is
   allowed; estimates fail somewhere with p/4 (Pinelis' maximal inequality over K periods), searches with p/4.

The work is O~(eps_g^-3 + eps_g^-2 eps_H^-2 + eps_H^-5): K/q resets and K updates of O(1/eps) samples, O(eps_H^-3) escapes of
O(eps_H/eps) steps, and as many searches of O~(eps_H^-2) products.
"""

import math
from dataclasses import dataclass

from . import negative_curvature
from .cost import Cost, Work
from .counts import check_positive, check_probability, count
from .merit import MeritConstants
from .orders import Rate, rate
from .units import Count, Curvature, Gradient, Length, Number

NAME = "null-space"
SUCCESS_PROBABILITY = 1 / 2

SEARCHED = 0.95  # t / eps_H: what is left is for the errors of Null(J) and of the multipliers, 0.047 t
RATE: Rate = rate((3, 0), (2, 2), (0, 5))


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Everything the single loop needs."""

    tolerance: Gradient  # eps: of M at the point that is returned
    accuracy: Gradient  # A, of the stacked estimate
    stop_threshold: Gradient  # of the estimated M
    large_batch: Count  # samples of a reset
    exact_resets: bool  # a reset is the mean over the population
    small_batch: Count  # samples of an update, looked at in two points each
    period: Count  # q steps between resets
    step_length: Length  # eta
    escape_length: Length  # r
    block_steps: Count  # T, in which an escape goes its length
    steps: Count  # K, at most
    searches: Count  # at most
    search_tolerance: Curvature  # t
    search_failure: Number


def parameters(
    constants: MeritConstants,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    *,
    population: Count | None = None,
    failure: Number = 1 - SUCCESS_PROBABILITY,
) -> Parameters:
    """The parameters for tolerances and a failure probability; the one of |c| is in the constants' `weight`.

    G^2 = 1 + (1 + 2 k_J/s)^2, t = 0.95 eps_H, eps = min(eps_g, t/(20 h/s + 9 L2/Lam)), e = (1 - 2/(5G)) eps,
    A = min(eps/(5 sqrt(3) G), a_J t/(54 Lam), a_J s/2), eta = e/(5 L_phi), r = t/(2 rho'), T = ceil(r/eta),
    D = 2 Delta/p, K = floor(D max(50 L_phi/e^2, 48 rho'^2 T/t^3)) + T + 1, at most floor(48 rho'^2 D/t^3) + 1 searches.

    With l = ln(8 K/p), of samples with noise s_g and Lipschitz constant L: a reset of ceil(4 l s_g^2/A^2),
    q = ceil(s_g/(sqrt(8) L eta)), updates of ceil(16 l (L eta/A)^2 q): within A at all steps but for p/4. A `population` of n that
    is no larger than a reset is looked at whole: q = ceil(sqrt(n/(16 l)) A/(L eta)), updates of ceil(8 l (L eta/A)^2 q).
    """
    check_positive(
        gradient_tolerance=gradient_tolerance,
        curvature_tolerance=curvature_tolerance,
        gradient_lipschitz=constants.gradient_lipschitz,
        escape_lipschitz=constants.escape_lipschitz,
    )
    check_probability(failure=failure)
    c, t = constants, SEARCHED * curvature_tolerance
    spread = math.hypot(1, 1 + 2 * c.condition)
    bends = 20 * c.jacobian_lipschitz / c.singular_value + 9 * c.multiplier_bend / c.weight
    eps = min(gradient_tolerance, t / bends) if bends > 0 else gradient_tolerance
    least = (1 - 2 / (5 * spread)) * eps
    accuracy = eps / (5 * math.sqrt(3) * spread)
    if c.jacobian_weight > 0:  # it is zero only where f is constant, and the gradient's error is none
        accuracy = min(accuracy, c.jacobian_weight * min(t / (54 * c.weight), c.singular_value / 2))
    step = least / (5 * c.gradient_lipschitz)
    escape = t / (2 * c.escape_lipschitz)
    block = count(escape / step)
    reach = 2 * c.gap / failure
    per_escape = 48 * c.escape_lipschitz**2 / t**3
    steps = math.floor(reach * max(50 * c.gradient_lipschitz / least**2, per_escape * block)) + block + 1
    searches = math.floor(reach * per_escape) + 1
    sure = math.log(8 * steps / failure)
    moved = c.sample_lipschitz * step / accuracy  # in units of the accuracy: by how much a step moves a sample
    large = count(4 * sure * (c.gradient_noise / accuracy) ** 2)
    exact = population is not None and large >= population
    if population is not None and exact:
        large, period = population, count(math.sqrt(population / (16 * sure)) / moved) if moved > 0 else steps
        small = count(8 * sure * moved**2 * period)
    else:
        period = count(c.gradient_noise / (math.sqrt(8) * moved * accuracy)) if moved > 0 else steps
        small = count(16 * sure * moved**2 * period)
    return Parameters(
        tolerance=eps,
        accuracy=accuracy,
        stop_threshold=(1 - 1 / (5 * spread)) * eps,
        large_batch=large,
        exact_resets=exact,
        small_batch=small,
        period=period,
        step_length=step,
        escape_length=escape,
        block_steps=block,
        steps=steps,
        searches=searches,
        search_tolerance=t,
        search_failure=failure / (4 * searches),
    )


def search(parameters: Parameters, constants: MeritConstants, dimension: Count) -> negative_curvature.Lanczos:
    """The search that the theory mode makes, at the tolerance and failure probability of these parameters."""
    p = parameters
    return negative_curvature.lanczos(constants.searched, p.search_tolerance, p.search_failure, dimension)


def work(parameters: Parameters, search_cost: Cost) -> Work:
    """All K steps, a reset at each q-th and two looks at an update's samples at the others, and all searches: a worst case."""
    p = parameters
    resets = -(-p.steps // p.period)
    gradients = resets * p.large_batch + 2 * p.small_batch * (p.steps - resets)
    worst = Cost(gradients=gradients) + p.searches * search_cost
    return Work(worst, worst)

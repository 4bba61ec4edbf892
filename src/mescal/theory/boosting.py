"""From a fixed success probability (1/2, 5/8, 2/3) to any other, and from probability to expectation (Option II to I).

The paper leaves both open (remarks after Theorems 4.2 and 3.8). Derived here.
"""

import math
from dataclasses import dataclass

from . import concentration
from .constants import ProblemConstants, SubproblemConstants
from .counts import check_positive, check_probability, count
from .outer import Schedule
from .units import Count, Curvature, Gradient, Number, Penalty


@dataclass(frozen=True)
class Boost:
    """R independent solves to half the tolerances, each verified; the first that passes is returned."""

    copies: Count
    gradient_tolerance: Gradient  # of each solve
    curvature_tolerance: Curvature
    verification_batch: Count  # fresh gradients per copy
    accept: Gradient  # pass if the verified gradient is at most this
    search_tolerance: Curvature  # and nc_search at this tolerance answers "none"
    verification_failure: Number  # of either check, per copy


def copies(target: Number, base: Number) -> Count:
    """R = ceil(log(1-p) / log(1-p0)): R solves that succeed with probability p0 all fail with probability <= 1 - p.

    With a perfect verifier, keeping the first that passes succeeds with probability >= p.
    """
    check_probability(target=target, base=base)
    return count(math.log1p(-target) / math.log1p(-base))


def verification_batch(noise: Gradient, margin: Gradient, failure: Number) -> Count:
    """n = ceil(2 sigma^2 ln(2/p) / r^2): |mean of n gradients - gradient| <= r with probability >= 1 - p (`concentration`)."""
    return concentration.vectors(noise, margin, failure)


def boost(
    constants: SubproblemConstants,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    target: Number,
    base: Number,
) -> Boost:
    """Success probability p = `target` from a solver that has p0 = `base`, verification errors included.

    Solve to eps_g/2, eps_H/2. Accept when the gradient on n fresh samples, right to eps_g/4, is at most 3 eps_g/4, and
    nc_search(eps_H) finds nothing: a good copy passes, and what passes is good. R copies fail together with probability
    <= (1-p)/2; the 2R checks err with probability (1-p)/(4R) each.
    """
    check_positive(gradient_tolerance=gradient_tolerance, curvature_tolerance=curvature_tolerance)
    number = copies((1 + target) / 2, base)
    failure = (1 - target) / (4 * number)
    return Boost(
        copies=number,
        gradient_tolerance=gradient_tolerance / 2,
        curvature_tolerance=curvature_tolerance / 2,
        verification_batch=verification_batch(constants.gradient_noise, gradient_tolerance / 4, failure),
        accept=3 * gradient_tolerance / 4,
        search_tolerance=curvature_tolerance,
        verification_failure=failure,
    )


@dataclass(frozen=True)
class OptionOne:
    """What to ask of an Option II solver so that its point satisfies Option I, (2.4)."""

    gradient_tolerance: Gradient
    curvature_tolerance: Curvature
    failure: Number  # at most, so a success probability 1 - failure
    copies: Count  # with a perfect verifier; `boost` counts the verification


def gradient_bound(problem: ProblemConstants, schedule: Schedule, penalty: Penalty) -> Gradient:
    """G = kappa_{grad f} + kappa_{grad c} (Lambda + alpha kappa_c) >= |grad L| on X."""
    reach = schedule.multiplier_bound + penalty * problem.constraint_bound
    return problem.objective_gradient_bound + problem.jacobian_bound * reach


def option_one(
    constants: SubproblemConstants,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    gradient_bound: Gradient,
    base: Number,
) -> OptionOne:
    """An Option I point from an Option II solver of success probability p0 = `base`.

    Solve to eps_g/2 and eps_H/2 with failure probability q = min(eps_g/(2G), eps_H/(2 L_g), 1/2), that is
    R = ceil(log q / log(1-p0)) copies. Then E|grad L| <= eps_g/2 + q G <= eps_g and
    E lambda_min >= -eps_H/2 - q L_g >= -eps_H, because |grad L| <= G and lambda_min >= -L_g everywhere. The price over
    Option II is the logarithm in R.
    """
    check_positive(
        gradient_tolerance=gradient_tolerance, curvature_tolerance=curvature_tolerance, gradient_bound=gradient_bound
    )
    failure = min(
        gradient_tolerance / (2 * gradient_bound), curvature_tolerance / (2 * constants.gradient_lipschitz), 0.5
    )
    return OptionOne(
        gradient_tolerance=gradient_tolerance / 2,
        curvature_tolerance=curvature_tolerance / 2,
        failure=failure,
        copies=count(math.log(failure) / math.log1p(-base)),
    )

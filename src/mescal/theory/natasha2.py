"""Natasha2 with Natasha1.5 and SGD3SC (Algorithms 4 and 5): parameters, and what they cost (Lemma 4.3).

L_g, L_H, s_g, Delta are the fields of `SubproblemConstants`; d = eps_H/3. Deviations from the paper, by erratum number
of the specification where it has one:

1. (13) The regulariser of Natasha1.5 has weight 2 iota, not 2 L_g; `strong_nonconvexity` is that iota.
2. (14) N1 pairs are stored; log^3(Lt/iota) is at least 1; a search fails with probability 1/(12 (N1 + N2)), so that
   all of them together fail with probability 1/12, which the paper allows to every single one.
3. The search runs at tolerance eps_H/3 of the contract in `negative_curvature`. The ball of radius d/L_H and the final
   move cost another d each, hence -eps_H; with the contract of Definition 4.1 it would be -4 eps_H/3.
4. Lemma 4.3 prints s_g^4/eps_g^2, which has a unit; the final phase costs s_g^2/eps_g^2.
5. Lemma 4.3 asks eps_H <= (s_g^2 eps_g L_H^3/L_g)^(1/4), which is no curvature. With L_g^2 it says that iota >= d
   before it is clipped, and then the term Delta L_g s_g/eps_g^3, which the lemma omits, is at most its last.
6. iota is at least min(L_g, eps_H); the paper allows d. At a stored point L has curvature >= -d, in the hinge's ball of radius
   d/L_H hence >= -2 d, so that W, with 2 iota on top, is sure to be convex with modulus iota, which SGD3SC is told, only where
   iota >= 2 d (beyond the ball the hinge makes up for L). With iota = d it is barely convex.
7. The eight free constants have defaults, with which predictions are made and runs are made. With all of them 1 the method may
   stand still: where s_g <= eps_g it has B' = 1, and a sub-epoch can only choose its own start. They follow from what each must
   achieve: c_Lt = 5: the hinge adds 2 L_g to the curvature of L and the regulariser 2 iota, so that W is
   (3 L_g + 2 iota)-smooth, and L_g, iota <= Lt. c_eta = 1/10: an inner step times that smoothness is then at most 1/2, for
   q = 1 too. c_B = 64: the snapshot errs by eps_g/8. c_q = 1/2: a sub-epoch moves for the time B' eta =
   c_eta/(c_q^3 iota) = 0.8/iota, about as far as its regulariser lets it. c_N = 64: a uniform step of a sub-epoch lowers V by
   about |grad V|^2/(4 iota), so that over the N1 q sub-epochs of a run the mean of |grad V|^2 is about 4 iota Delta/(N1 q) =
   eps_g^2/16. The minimiser of W has |grad L| <= 2 |grad V(x^)|, which then exceeds eps_g with probability at most 1/4
   (Markov). c_T = 64: the last phase errs by about eps_g/8. c_L = c_iota = 1. This is an argument, not a proof: the success
   probability 2/3 is the source's, for constants that it leaves open, and runs with a promise say so (`UNPROVEN`).
"""

import math
from dataclasses import dataclass

from . import negative_curvature
from .constants import SubproblemConstants
from .cost import UNBOUNDED, Cost, Term, Work
from .counts import check_positive, count, exceeded
from .units import Count, Curvature, Gradient, Length, Number, StepSize

NAME = "natasha2"
SUCCESS_PROBABILITY = 2 / 3
UNPROVEN = (
    "The success probability 2/3 of natasha2-theory is its source's, for constants that it leaves open; for the constants used here"
    " it is argued and measured, not proved, and what is promised on top of it rests on that."
)

# Lemma 4.3 with deviation 4.
TERMS = (
    Term(gradient_noise=2, eps_g=-2),
    Term(gap=1, hessian_lipschitz=2, gradient_lipschitz=2, eps_H=-5),
    Term(gap=1, hessian_lipschitz=1, gradient_lipschitz=2, eps_g=-1, eps_H=-3),
    Term(gap=1, hessian_lipschitz=1, gradient_noise=2, eps_g=-3, eps_H=-1),
    Term(gap=1, gradient_lipschitz=3, gradient_noise=-1, eps_g=-1, eps_H=-2),
)


@dataclass(frozen=True, kw_only=True)
class FreeConstants:
    """The positive constants that Algorithm 4 takes as input."""

    smoothness: float = 1.0  # c_L
    nonconvexity: float = 1.0  # c_iota
    batch: float = 64.0  # c_B
    sub_epochs: float = 0.5  # c_q
    step: float = 0.1  # c_eta
    iterations: float = 64.0  # c_N
    final_smoothness: float = 5.0  # c_Lt
    final_steps: float = 64.0  # c_T


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Everything Algorithms 4 and 5 need."""

    smoothness: Curvature  # Lt
    strong_nonconvexity: Curvature  # iota
    epoch_batch: Count  # B gradients of the snapshot
    exact_resets: bool  # the snapshot is the mean over the population
    sub_epochs: Count  # q
    inner_steps: Count  # B' = ceil(B/q) per sub-epoch
    step_size: StepSize  # eta
    first_order_steps: Count  # N1, calls of Natasha1.5
    second_order_steps: Count  # N2, steps along negative curvature, in mean at most
    curvature_step: Length  # d/L_H; also the radius of the hinge
    hinge_weight: Curvature  # L_g
    search_tolerance: Curvature
    search_failure: Number
    final_smoothness: Curvature  # of W, for SGD3SC
    final_steps: Count  # T, its gradients


def parameters(
    constants: SubproblemConstants,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    *,
    population: Count | None = None,
    free: FreeConstants = FreeConstants(),
) -> Parameters:
    """Algorithm 4, corrected, with d = eps_H/3, s = s_g, e = eps_g.

    If L_H >= L_g d/(s^2 e)^(1/3): Lt = iota = max(L_g, c_L L_H (s^2 e)^(1/3)/d),
    else: Lt = L_g, iota = min(L_g, max(eps_H, c_i s^2 e L_H^3/(L_g^2 d^3), c_i e L_g/s)).
    B = ceil(c_B s^2/e^2), q = ceil(c_q (B iota^2/Lt^2)^(1/3)), eta = c_e iota/(q^2 Lt^2),
    N1 = ceil(c_N iota Delta/(q e^2)), N2 = ceil(12 Delta L_H^2/d^3), T = ceil(c_T s^2/e^2 max(1, log(Lt/iota))^3).

    N2: a step d/L_H along curvature <= -d/2, fair sign, lowers L by d^3/(4 L_H^2) - d^3/(6 L_H^2) in mean; the
    first-order steps are taken not to raise it. With a `population` n <= B snapshots are exact and B = n.
    """
    check_positive(gradient_tolerance=gradient_tolerance, curvature_tolerance=curvature_tolerance)
    lipschitz, bend, gap = constants.gradient_lipschitz, constants.hessian_lipschitz, constants.gap
    s, e, d = constants.gradient_noise, gradient_tolerance, curvature_tolerance / 3
    mixed = (s**2 * e) ** (1 / 3)
    if bend * mixed >= lipschitz * d:
        smoothness = iota = max(lipschitz, free.smoothness * bend * mixed / d)
    else:
        smoothness = lipschitz
        by_noise = free.nonconvexity * e * lipschitz / s if s > 0 else math.inf
        by_bend = free.nonconvexity * s**2 * e * bend**3 / (lipschitz**2 * d**3)
        iota = min(lipschitz, max(curvature_tolerance, by_bend, by_noise))
    batch = count(free.batch * (s / e) ** 2)
    exact = population is not None and batch >= population
    batch = population if population is not None and exact else batch
    sub_epochs = count(free.sub_epochs * (batch * (iota / smoothness) ** 2) ** (1 / 3))
    first = count(free.iterations * iota * gap / (sub_epochs * e**2))
    second = count(12 * gap * bend**2 / d**3)
    return Parameters(
        smoothness=smoothness,
        strong_nonconvexity=iota,
        epoch_batch=batch,
        exact_resets=exact,
        sub_epochs=sub_epochs,
        inner_steps=count(batch / sub_epochs),
        step_size=free.step * iota / (sub_epochs * smoothness) ** 2,
        first_order_steps=first,
        second_order_steps=second,
        curvature_step=d / bend,
        hinge_weight=lipschitz,
        search_tolerance=d,
        search_failure=1 / (12 * (first + second)),
        final_smoothness=free.final_smoothness * smoothness,
        final_steps=count(free.final_steps * (s / e) ** 2 * max(1.0, math.log(smoothness / iota)) ** 3),
    )


def search(parameters: Parameters, constants: SubproblemConstants, dimension: Count) -> negative_curvature.Oja:
    """The search of the paper, Oja's algorithm, at the tolerance and failure probability of these parameters."""
    return negative_curvature.oja(constants, parameters.search_tolerance, parameters.search_failure, dimension)


def work(parameters: Parameters, search_cost: Cost) -> Work:
    """N1 (B + 2 q B') + T gradients and N1 + N2 searches, in mean; `search_cost` is that of one search.

    An epoch computes the snapshot (B) and two gradients per inner step. There is no worst case: the number of steps
    along negative curvature is bounded in mean only.
    """
    p = parameters
    epoch = p.epoch_batch + 2 * p.sub_epochs * p.inner_steps
    gradients = Cost(gradients=p.first_order_steps * epoch + p.final_steps)
    return Work(gradients + (p.first_order_steps + p.second_order_steps) * search_cost, UNBOUNDED)


def violations(
    constants: SubproblemConstants, gradient_tolerance: Gradient, curvature_tolerance: Curvature
) -> tuple[str, ...]:
    """What Lemma 4.3 asks of the tolerances, up to constants, and these do not meet (deviation 5).

    eps_g <= s_g and eps_H <= min(3 L_g, (s_g^2 eps_g L_H^3/L_g^2)^(1/4)).
    """
    g, s = gradient_tolerance, constants.gradient_noise
    mixed = (s**2 * g * constants.hessian_lipschitz**3 / constants.gradient_lipschitz**2) ** 0.25
    second = {
        "triple of the gradient Lipschitz constant": 3 * constants.gradient_lipschitz,
        "limit (s_g^2 eps_g L_H^3/L_g^2)^(1/4)": mixed,
    }
    return exceeded("gradient tolerance", g, {"gradient noise": s}) + exceeded(
        "curvature tolerance", curvature_tolerance, second
    )

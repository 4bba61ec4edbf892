"""SG-HV-NC (Algorithms 2 and 3): parameters for given constants, and what they cost (Lemma 4.1).

L_g, L_H, s_g, s_H, Delta are the fields of `SubproblemConstants`. The solver runs with accuracies e = eps_g/3 and
y = eps_H/2. Deviations from the paper, by erratum number of the specification:

1. (7) eta has y/(e L_H) where the paper prints eps_H/L_H: a step size has unit X^2/F.
2. (8) q has no factor Delta: a probability has no unit, and q T = 2 Delta/(eta e^2) only so.
3. (9) b_g has the factor e that the paper drops: without it the work grows like eps_g^-4.
4. (10) The search fails with probability y/(1600 L_g), not L_H.
5. (11) The search runs at tolerance 2y = eps_H of the contract in `negative_curvature`; as printed it certifies
   -4 eps_H.
6. (12) A path has samples 1..J, a reset 1..B.
7. The admissible tolerances have no "<= 1": it depends on units, and the proof below does not use it.

Why 5/8: the failure probability is at most 0.31.

*Estimator.* E|g_t - grad L|^2 <= e^2 throughout. A reset leaves e^2/5. A path, taken with probability 1 - b, adds
variance <= b e^2/5 and bias L_H |dx|^2/(2J) <= b e/10, and b/5 + (1-b) ((1 + b/10)^2 + b/5) <= 1.
*Descent.* As eta <= 1/(2 L_g), a first-order step lowers L by at least eta/2 |grad L|^2 + eta/4 |g|^2
- eta/2 |g - grad L|^2; a successful search by y^3/(3 L_H^2) in mean; a wrong direction raises it by at most
L_g y^2/(2 L_H^2). Over the run the rises sum to (1 + 1/160) Delta, so the decreases to (2 + 1/160) Delta.
*Output.* If shares a and b of that are spent on gradients and on curvature, a + b <= 2 + 1/160, a random iterate has
mean |grad L|^2 <= a e^2, and curvature below -eps_H with probability <= 3b/20. By Markov's inequality the failure
probability is at most a/9 + 3b/20 < 0.31.
"""

import math
from dataclasses import dataclass

from . import negative_curvature
from .constants import SubproblemConstants
from .cost import UNBOUNDED, Cost, Term, Work
from .counts import check_positive, count, exceeded
from .units import Count, Curvature, Gradient, Length, Number, PerSquaredLength, StepSize

NAME = "sg-hv-nc"
SUCCESS_PROBABILITY = 5 / 8

# Lemma 4.1; the square (sigma^H + L^g)^2 is written out.
TERMS = (
    Term(gap=1, gradient_noise=1, hessian_noise=1, eps_g=-3),
    Term(gap=1, hessian_lipschitz=1, gradient_noise=1, hessian_noise=1, eps_g=-2, eps_H=-2),
    Term(gap=1, hessian_lipschitz=2, hessian_noise=2, eps_H=-5),
    Term(coefficient=2, gap=1, hessian_lipschitz=2, gradient_lipschitz=1, hessian_noise=1, eps_H=-5),
    Term(gap=1, hessian_lipschitz=2, gradient_lipschitz=2, eps_H=-5),
    Term(gap=1, gradient_lipschitz=1, eps_g=-2),
)

# The budget (2 + 1/160) Delta above, spent at eta/4 |g|^2 over 2 Delta/(eta e^2) steps: mean |g|^2 <= this times e^2.
_MEAN_SQUARED_STEP = 4 * (2 + 1 / 160) / 2


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Everything Algorithms 2 and 3 need."""

    gradient_accuracy: Gradient  # e = eps_g/3, of the estimator
    curvature_accuracy: Curvature  # y = eps_H/2
    step_size: StepSize  # eta
    steps: Count  # T; the output is uniform over them
    first_order_probability: Number  # q, of a gradient step
    curvature_step: Length  # y/L_H, of a step along negative curvature, fair sign
    search_tolerance: Curvature  # of nc_search
    search_failure: Number
    reset_batch: Count  # B gradients
    exact_resets: bool  # a reset is the mean over the population
    first_order_reset_probability: Number  # b_g
    second_order_reset_probability: Number  # b_H
    path_density: PerSquaredLength  # a path of length l from reset probability b has ceil(density l^2 / b) products

    def path_samples(self, length: Length, reset_probability: Number) -> int:
        """J = ceil(5 (s_H^2 + L_H e) l^2 / (b e^2)) (Algorithm 3); 0 when the point did not move."""
        return 0 if length == 0 else count(self.path_density * length**2 / reset_probability)

    @property
    def expected_first_order_steps(self) -> Number:
        """q T = 2 Delta/(eta e^2), up to the rounding of T."""
        return self.first_order_probability * self.steps

    @property
    def expected_searches(self) -> Number:
        """(1 - q) T = 20 Delta L_H^2/y^3, up to the rounding of T."""
        return (1 - self.first_order_probability) * self.steps


def parameters(
    constants: SubproblemConstants,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    *,
    population: Count | None = None,
) -> Parameters:
    """Algorithm 2, corrected; S = s_H^2 + e L_H, and a step has length l = eta e or y/L_H.

    eta = min(y/(e L_H), 1/(2 sqrt(L_g^2 + S))), T = ceil(20 Delta L_H^2/y^3 + 2 Delta/(eta e^2)),
    q = y^3/(y^3 + 10 L_H^2 eta e^2), b = min(1, l sqrt(S)/s_g), B = ceil(5 s_g^2/e^2).

    b minimises b B + J, the cost of a step. With a `population` of n <= B a reset is exact and costs n; the same
    minimum then has e sqrt(n/5) in the place of s_g.
    """
    check_positive(gradient_tolerance=gradient_tolerance, curvature_tolerance=curvature_tolerance)
    e, y = gradient_tolerance / 3, curvature_tolerance / 2
    lipschitz, bend, gap = constants.gradient_lipschitz, constants.hessian_lipschitz, constants.gap
    spread = constants.hessian_noise**2 + e * bend
    batch, noise = count(5 * (constants.gradient_noise / e) ** 2), constants.gradient_noise
    exact = population is not None and batch >= population
    if population is not None and exact:
        batch, noise = population, min(noise, e * math.sqrt(population / 5))
    step = min(y / (e * bend), 1 / (2 * math.sqrt(lipschitz**2 + spread)))

    def reset_probability(length: Length) -> Number:
        return 1.0 if noise == 0 else min(1.0, length * math.sqrt(spread) / noise)

    return Parameters(
        gradient_accuracy=e,
        curvature_accuracy=y,
        step_size=step,
        steps=count(20 * gap * bend**2 / y**3 + 2 * gap / (step * e**2)),
        first_order_probability=y**3 / (y**3 + 10 * bend**2 * step * e**2),
        curvature_step=y / bend,
        search_tolerance=2 * y,
        search_failure=min(0.5, y / (1600 * lipschitz)),
        reset_batch=batch,
        exact_resets=exact,
        first_order_reset_probability=reset_probability(step * e),
        second_order_reset_probability=reset_probability(y / bend),
        path_density=5 * spread / e**2,
    )


def search(parameters: Parameters, constants: SubproblemConstants, dimension: Count) -> negative_curvature.Oja:
    """The search of the paper, Oja's algorithm, at the tolerance and failure probability of these parameters."""
    return negative_curvature.oja(constants, parameters.search_tolerance, parameters.search_failure, dimension)


def work(parameters: Parameters, search_cost: Cost) -> Work:
    """Mean cost of one solve, term by term as in Lemma 4.1; `search_cost` is that of one negative-curvature search.

    The first reset: B gradients. Each of q T first-order steps: b_g B gradients and (1 - b_g) J products, with mean
    |g|^2 <= 4.0125 e^2 in J. Each of (1-q) T searches: its cost, and a step of b_H B gradients and (1 - b_H) J products
    as if it always succeeded.
    There is no worst case: J grows with |g|^2, which is bounded in mean only. The paper's "deterministic" complexity is
    therefore one of means too, given its deterministic bound on the gap.
    """
    p = parameters
    first, second = p.first_order_reset_probability, p.second_order_reset_probability
    path = 1 + p.path_density / first * p.step_size**2 * _MEAN_SQUARED_STEP * p.gradient_accuracy**2
    first_order = Cost(first * p.reset_batch, (1 - first) * path)
    second_order = Cost(second * p.reset_batch, (1 - second) * p.path_samples(p.curvature_step, second))
    expected = Cost(gradients=p.reset_batch) + p.expected_first_order_steps * first_order
    return Work(expected + p.expected_searches * (second_order + search_cost), UNBOUNDED)


def violations(
    constants: SubproblemConstants, gradient_tolerance: Gradient, curvature_tolerance: Curvature
) -> tuple[str, ...]:
    """What Lemma 4.1 asks of the tolerances and these do not meet; its order of work, not the guarantee, rests on it.

    eps_g <= min(s_g, sqrt(Delta L_g)) and eps_H <= min(s_H, L_g, sqrt(eps_g L_H)).
    """
    first = {
        "gradient noise": constants.gradient_noise,
        "root of gap times gradient Lipschitz constant": math.sqrt(constants.gap * constants.gradient_lipschitz),
    }
    second = {
        "Hessian noise": constants.hessian_noise,
        "gradient Lipschitz constant": constants.gradient_lipschitz,
        "root of gradient tolerance times Hessian Lipschitz constant": math.sqrt(
            gradient_tolerance * constants.hessian_lipschitz
        ),
    }
    return exceeded("gradient tolerance", gradient_tolerance, first) + exceeded(
        "curvature tolerance", curvature_tolerance, second
    )

"""SCR, stochastic cubic regularisation: parameters with which a guarantee holds, and what they cost.

    g = mean of n1 gradients,  B = mean of n2 Hessians at z;   d = argmin g.d + d'Bd/2 + (L_H/6)|d|^3;   z <- z + d

until |d| <= r; then z + d is returned. Tripuraneni, Stern, Jin, Regier and Jordan (2018) prove the order eps^-3.5 and leave
the constants of n1, n2 and the number of steps open. Derived here, for an exact minimiser d:

1. Let |g - grad L| <= a eps and |B - hess L| <= b sqrt(L_H eps), and r = t sqrt(eps/L_H). The conditions on d,
   g + Bd + (L_H/2)|d|d = 0 and B + (L_H/2)|d| >= 0, make the model fall by at least (L_H/12)|d|^3, so
   L(z + d) <= L(z) - (L_H/12)|d|^3 + a eps |d| + (b/2) sqrt(L_H eps) |d|^2.
2. A step longer than r lowers L by at least k sqrt(eps^3/L_H), k = t^3/12 - a t - b t^2/2: what is subtracted from
   |d|^3/12 grows more slowly beyond t. There are at most Delta/(k sqrt(eps^3/L_H)) of them.
3. After a step no longer than r, |grad L(z + d)| <= (t^2 + a + b t) eps and lambda_min >= -(3t/2 + b) sqrt(L_H eps).

With t = 0.64, a = 0.0142, b = 0.04 the factors are 0.45 and 1, and k = 0.00457; a is where n1 times the steps is least.
eps = min(eps_g/0.45, eps_H^2/L_H). A tenth of a is spent on a random perturbation of g: with it, d is almost surely in the
Krylov space of g, where it is computed. Over T steps, each estimate fails with probability 1/(6T) (Pinelis' inequality for
the gradient, the matrix Hoeffding inequality of `concentration` for the Hessian), together with at most 1/3.
"""

import math
from dataclasses import dataclass

from . import concentration
from .boosting import verification_batch
from .constants import SubproblemConstants
from .cost import Cost, Work
from .counts import check_positive, count
from .units import Count, Curvature, Gradient, Length, Number

NAME = "scr"
SUCCESS_PROBABILITY = 2 / 3

STOP, GRADIENT_ERROR, HESSIAN_ERROR = 0.64, 0.0142, 0.04  # t, a, b
DECREASE = STOP**3 / 12 - GRADIENT_ERROR * STOP - HESSIAN_ERROR * STOP**2 / 2  # k
LEFT = STOP**2 + GRADIENT_ERROR + HESSIAN_ERROR * STOP  # of eps: the gradient at the end
PERTURBATION = 0.1  # of a


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Everything SCR needs."""

    accuracy: Gradient  # eps
    gradient_batch: Count  # n1
    exact_gradients: bool  # a gradient is the mean over the population
    hessian_factor: Number  # n2 = ceil(factor (ln d + logarithm)) for d variables
    hessian_logarithm: Number
    perturbation: Gradient  # of g
    radius: Length  # r: a step no longer than this is the last
    steps: Count  # T

    def hessian_batch(self, dimension: Count) -> Count:
        """n2 = ceil(2 (s_H/t)^2 ln(2 d/p)): |B - hess L| <= t with probability at least 1 - p (`concentration.matrices`)."""
        return count(self.hessian_factor * (math.log(dimension) + self.hessian_logarithm))


def parameters(
    constants: SubproblemConstants,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    *,
    population: Count | None = None,
) -> Parameters:
    """The parameters for the tolerances that the returned point has to meet.

    eps = min(eps_g/0.45, eps_H^2/L_H), r = 0.64 sqrt(eps/L_H), T = ceil(Delta/(k sqrt(eps^3/L_H))) + 1,
    n1 = ceil(2 (s_g/(0.9 a eps))^2 ln(12 T)), n2 = ceil(2 (s_H/(b sqrt(L_H eps)))^2 ln(12 T d)).
    """
    check_positive(gradient_tolerance=gradient_tolerance, curvature_tolerance=curvature_tolerance)
    bend = constants.hessian_lipschitz
    eps = min(gradient_tolerance / LEFT, curvature_tolerance**2 / bend)
    steps = count(constants.gap / (DECREASE * math.sqrt(eps**3 / bend))) + 1
    error, failure = GRADIENT_ERROR * eps, 1 / (6 * steps)
    batch = max(1, verification_batch(constants.gradient_noise, (1 - PERTURBATION) * error, failure))
    exact = population is not None and batch >= population
    accuracy = HESSIAN_ERROR * math.sqrt(bend * eps)
    return Parameters(
        accuracy=eps,
        gradient_batch=population if population is not None and exact else batch,
        exact_gradients=exact,
        hessian_factor=concentration.matrix_factor(constants.hessian_noise, accuracy),
        hessian_logarithm=concentration.matrix_logarithm(failure),
        perturbation=PERTURBATION * error,
        radius=STOP * math.sqrt(eps / bend),
        steps=steps,
    )


def work(parameters: Parameters, dimension: Count) -> Work:
    """All T steps: n1 gradients each, and n2 Hessian-vector products for each of at most d directions. A worst case."""
    p = parameters
    products = p.steps * dimension * max(1, p.hessian_batch(dimension))
    worst = Cost(gradients=p.steps * p.gradient_batch, hessian_products=products)
    return Work(worst, worst)

"""Fletcher's merit function of equality constraints: the constants with which the single loop descends on it.

    phi = f + lam'c + (beta/2) |c|^2,   lam(x) = -(JJ')^-1 J g,   w = -(g + J'lam),   v = -J'(JJ')^-1 c

Assumed: X = R^d, equalities alone, and sigma_min(J) >= s wherever the run goes; `regularity` of `ProblemConstants` is read as s. It
is more than the paper's condition, C_reg |c| <= |J'c|, asks, and the same for one constraint. Derived here and on the page
`docs/null-space.md`, by one reader and a second, and published nowhere. Below, k_g >= |g|, k_c >= |c|, k_J >= |J|;
h = sqrt(m) max_j |hess c_j|, h' = sqrt(m) max_j |D^3 c_j|, which bound the change of J and of its change;
l = L_{grad f}, l' = L_{hess f}.

*Descent.* With p = w + Lam s v, Lam >= L1 = Lipschitz(lam), beta = 2 Lam/s and M^2 = |w|^2 + Lam^2 |c|^2:

    grad phi'p = -|w|^2 + c'(grad lam) p - 2 Lam^2 |c|^2 <= -|w|^2 + Lam |c| |w| - Lam^2 |c|^2 <= -M^2/2,     |p| <= M

since (grad phi)'w = -|w|^2 + c'(grad lam) w, (grad phi)'v = c'(grad lam) v - beta |c|^2, and s|v| <= |c|; and |grad phi| <= G M,
G^2 = 1 + (1 + 2 k_J/s)^2. No constant grows as tolerances shrink.
"""

import math
from dataclasses import dataclass

from .constants import ProblemConstants, SubproblemConstants, hessian_noise
from .counts import check_positive
from .units import (
    Constraint,
    ConstraintCurvature,
    Curvature,
    Gradient,
    Jacobian,
    Multiplier,
    MultiplierBend,
    MultiplierSlope,
    Number,
    Penalty,
    ThirdDerivative,
    Value,
)


@dataclass(frozen=True, kw_only=True)
class MeritConstants:
    """What the single loop needs to know of f and c; `weight` scales c beside the gradient, in M and in p."""

    singular_value: Jacobian  # s <= sigma_min(J)
    condition: Number  # k_J/s
    weight: MultiplierSlope  # Lam
    multiplier_bend: MultiplierBend  # L2, the Lipschitz constant of grad lam
    penalty: Penalty  # beta
    gradient_lipschitz: Curvature  # L_phi
    escape_lipschitz: ThirdDerivative  # rho'
    jacobian_lipschitz: ConstraintCurvature  # h
    jacobian_weight: Multiplier  # a_J: what an error of J adds to that of p
    gradient_noise: Gradient  # of (g, 2 Lam c, a_J J), almost surely
    sample_lipschitz: Curvature  # of the same, for one sample
    hessian_noise: Curvature  # of hess f + sum lam_j hess c_j
    gap: Value  # phi at the start minus infimum

    @property
    def searched(self) -> SubproblemConstants:
        """Of f + lam'c at fixed multipliers, as searches for negative curvature ask for them."""
        return SubproblemConstants(
            gradient_lipschitz=self.gradient_lipschitz,
            hessian_lipschitz=self.escape_lipschitz,
            gradient_noise=self.gradient_noise,
            hessian_noise=self.hessian_noise,
            gap=self.gap,
        )


def multiplier_slope(problem: ProblemConstants) -> MultiplierSlope:
    """L1 = l/s + sqrt(2) h k_g/s^2 >= |grad lam|.

    J(g + J'lam) = 0 gives grad lam = -(JJ')^-1 [dJ (g + J'lam) + J (hess f + sum lam_j hess c_j)]; the two parts of g, in Null(J)
    and across, are orthogonal, which makes sqrt(2) of 2.
    """
    s = problem.regularity
    return problem.objective_gradient_lipschitz / s + math.sqrt(2) * _bend(problem) * _slope(problem) / s**2


def multiplier_bend(problem: ProblemConstants) -> MultiplierBend:
    """L2 = 2 h^2 k_g/s^3 + 2 h' k_g/s^2 + (2 + sqrt(2)) h L1/s + l'/s, a Lipschitz constant of grad lam.

    From the product rule, with |d (JJ')^-1| <= 2 h/s^3, |d J^+| <= sqrt(2) h/s^2, |d (g + J'lam)| <= s L1 and
    |hess f + sum lam_j hess c_j| <= s L1.
    """
    s, h, slope = problem.regularity, _bend(problem), _slope(problem)
    third = math.sqrt(problem.constraint_count) * problem.constraint_hessian_lipschitz
    return (
        2 * h**2 * slope / s**3
        + 2 * third * slope / s**2
        + (2 + math.sqrt(2)) * h * multiplier_slope(problem) / s
        + problem.objective_hessian_lipschitz / s
    )


def merit_lipschitz(problem: ProblemConstants, weight: MultiplierSlope) -> Curvature:
    """L_phi = s L1 + k_c L2 + k_J L1 + beta (k_J^2 + h k_c),

    beta = 2 Lam/s, of grad phi = (g + J'lam) + (grad lam)'c + beta J'c.
    """
    s, first = problem.regularity, multiplier_slope(problem)
    k_c, k_j = problem.constraint_bound, problem.jacobian_bound
    penalised = 2 * weight / s * (k_j**2 + _bend(problem) * k_c)
    return s * first + k_c * multiplier_bend(problem) + k_j * first + penalised


def escape_lipschitz(problem: ProblemConstants, weight: MultiplierSlope) -> ThirdDerivative:
    """rho' = l' + h' k_g/s + beta (3 k_J h + k_c h') + 3 L1 h.

    All but the last is a Lipschitz constant of the Hessian of f + lam'c + (beta/2) |c|^2 at fixed lam; the last is what the
    moving of lam costs along a direction of Null(J), in the third order of the step.
    """
    s, h = problem.regularity, _bend(problem)
    third = math.sqrt(problem.constraint_count) * problem.constraint_hessian_lipschitz
    fixed = problem.objective_hessian_lipschitz + third * _slope(problem) / s
    penalised = 2 * weight / s * (3 * problem.jacobian_bound * h + problem.constraint_bound * third)
    return fixed + penalised + 3 * multiplier_slope(problem) * h


def merit_gap(problem: ProblemConstants, weight: MultiplierSlope, start: Value | None = None) -> Value:
    """phi(x_0) - inf phi <= phi(x_0) + kappa_f + min(k_g k_c/s, k_g^2/(4 Lam s)), for phi >= f - |lam|^2/(2 beta).

    phi(x_0) = `start` where it is known, else at most kappa_f + k_g k_c/s + Lam k_c^2/s.
    """
    s, slope, k_c = problem.regularity, _slope(problem), problem.constraint_bound
    at_most = problem.objective_bound + slope * k_c / s + weight * k_c**2 / s
    below = problem.objective_bound + min(slope * k_c / s, slope**2 / (4 * weight * s))
    return max(0.0, (at_most if start is None else start) + below)


def merit_weight(problem: ProblemConstants, gradient_tolerance: Gradient, feasibility: Constraint) -> MultiplierSlope:
    """Lam = max(L1, eps_g/eps_c): with it M <= eps_g says |w| <= eps_g and |c| <= eps_c."""
    check_positive(gradient_tolerance=gradient_tolerance, feasibility_tolerance=feasibility)
    return max(multiplier_slope(problem), gradient_tolerance / feasibility)


def merit_constants(
    problem: ProblemConstants,
    gradient_tolerance: Gradient,
    feasibility: Constraint,
    *,
    start: Value | None = None,
    sharp: bool = False,
) -> MeritConstants:
    """All of it; `start` is phi(x_0) where it is known, `sharp` takes the Hessians' noise from Assumption 3.3.

    Errors of (g, c, J) move p by at most e_g + 2 Lam e_c + a_J e_J, a_J = (k_g + 2 sqrt(2) Lam k_c)/s, while e_J <= s/2:
    projections onto Null(J) differ by e_J/s, pseudo-inverses by sqrt(2) (2/s^2) e_J (Wedin). Multipliers there are at most
    (k_g + eps_g)/s.
    """
    weight = merit_weight(problem, gradient_tolerance, feasibility)
    s, root = problem.regularity, math.sqrt(problem.constraint_count)
    of_jacobian = (_slope(problem) + 2 * math.sqrt(2) * weight * problem.constraint_bound) / s
    bent = hessian_noise(problem, (_slope(problem) + gradient_tolerance) / s, sharp)
    return MeritConstants(
        singular_value=s,
        condition=max(1.0, problem.jacobian_bound / s),
        weight=weight,
        multiplier_bend=multiplier_bend(problem),
        penalty=2 * weight / s,
        gradient_lipschitz=merit_lipschitz(problem, weight),
        escape_lipschitz=escape_lipschitz(problem, weight),
        jacobian_lipschitz=_bend(problem),
        jacobian_weight=of_jacobian,
        gradient_noise=math.hypot(
            problem.objective_gradient_noise,
            2 * weight * problem.constraint_noise,
            of_jacobian * root * problem.jacobian_noise,
        ),
        sample_lipschitz=math.hypot(
            problem.objective_gradient_lipschitz,
            2 * weight * problem.sampled_jacobian_bound,
            of_jacobian * root * problem.constraint_gradient_lipschitz,
        ),
        hessian_noise=bent(0.0),
        gap=merit_gap(problem, weight, start),
    )


def _slope(problem: ProblemConstants) -> Gradient:
    return problem.objective_gradient_bound


def _bend(problem: ProblemConstants) -> ConstraintCurvature:
    return math.sqrt(problem.constraint_count) * problem.constraint_hessian_bound

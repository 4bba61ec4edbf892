"""The constants of the problem (Assumptions 2.1, 2.2, 3.1-3.3) and of one subproblem (Lemmas 3.2-3.5).

Each of the four subproblem constants is bounded by an affine function of the penalty, c1 + alpha c2. Functions return
that function; `sharp=True` returns a smaller bound that is derived here and not in the paper.

Deviations from the paper:

1. Lemma 3.5 prints m where Lemma 3.2 has sqrt(m) for the same constant; sqrt(m) is used (erratum 17).
2. `sharp` replaces sums over the m constraints by Cauchy-Schwarz, |sum_j a_j v_j| <= |a| sqrt(m) max_j |v_j|, and
   bounds J_1'(C_2(x) - C_2(y)) by operator norms. With m = 1 both forms of the Lipschitz constants agree.
3. `sharp` bounds the Hessian noise from Assumption 3.3, whose sigma_{hess f} the paper states and does not use: its
   bound 2 L_g stays positive when there is no noise at all.
"""

import dataclasses
import math
from dataclasses import dataclass

from ..errors import InputError
from .units import (
    Constraint,
    ConstraintCurvature,
    ConstraintThirdDerivative,
    Count,
    Curvature,
    Gradient,
    Jacobian,
    Multiplier,
    Penalty,
    ThirdDerivative,
    Value,
)


@dataclass(frozen=True, kw_only=True)
class ProblemConstants:
    """What the paper assumes of f, c and their samples. Bounds hold on X; norms are Euclidean or operator norms.

    Noise constants bound |sample - mean| almost surely; zero means a deterministic term. `sigma_{hess f}` enters
    only the sharp Hessian noise.
    """

    dimension: Count  # d
    constraint_count: Count  # m

    objective_bound: Value  # kappa_f >= |f|
    objective_gradient_bound: Gradient  # kappa_{grad f} >= |grad f|
    constraint_bound: Constraint  # kappa_c >= |c|
    jacobian_bound: Jacobian  # kappa_{grad c} >= |J|
    constraint_hessian_bound: ConstraintCurvature  # kappa_{hess c} >= |hess c_j|, every j
    regularity: Jacobian  # C_reg: C_reg |c| <= |proj_T(-J'c)|

    objective_gradient_lipschitz: Curvature  # L_{grad f}, of grad F(., xi)
    objective_hessian_lipschitz: ThirdDerivative  # L_{hess f}
    constraint_gradient_lipschitz: ConstraintCurvature  # L_{grad c}, of each grad C_j(., zeta)
    constraint_hessian_lipschitz: ConstraintThirdDerivative  # L_{hess c}

    objective_gradient_noise: Gradient = 0.0  # sigma_{grad f}
    objective_hessian_noise: Curvature = 0.0  # sigma_{hess f}
    constraint_noise: Constraint = 0.0  # sigma_c
    jacobian_noise: Jacobian = 0.0  # sigma_{grad c}
    constraint_hessian_noise: ConstraintCurvature = 0.0  # sigma_{hess c}, every j

    def __post_init__(self):
        _check(self, positive=("dimension", "regularity"))

    @property
    def sampled_jacobian_bound(self) -> Jacobian:
        """L_c = kappa_{grad c} + sigma_{grad c}: bounds |grad C(x, zeta)|, hence the slope of C (Lemma 3.1)."""
        return self.jacobian_bound + self.jacobian_noise

    @property
    def sampled_constraint_bound(self) -> Constraint:
        """kappa_c + sigma_c: bounds |C(x, zeta)| (Lemma 3.1)."""
        return self.constraint_bound + self.constraint_noise


@dataclass(frozen=True, kw_only=True)
class SubproblemConstants:
    """Definition 3.1: what a solver needs to know of one augmented Lagrangian, at one multiplier and penalty."""

    gradient_lipschitz: Curvature  # L_g, of the sampled gradient
    hessian_lipschitz: ThirdDerivative  # L_H, of the sampled Hessian
    gradient_noise: Gradient  # s_g
    hessian_noise: Curvature  # s_H
    gap: Value  # Delta_k: value at the start minus infimum

    def __post_init__(self):
        _check(self, positive=("gradient_lipschitz", "hessian_lipschitz"))


@dataclass(frozen=True)
class Affine:
    """alpha -> fixed + alpha slope."""

    fixed: float
    slope: float

    def __call__(self, penalty: Penalty) -> float:
        return self.fixed + penalty * self.slope


def gradient_lipschitz(problem: ProblemConstants, multiplier_bound: Multiplier, sharp: bool = False) -> Affine:
    """Lemma 3.2: L_g <= L1 + alpha L2, with Lambda the multiplier bound and L_c = kappa_{grad c} + sigma_{grad c}.

    L1 = L_{grad f} + sqrt(m) L_{grad c} Lambda
    L2 = m (L_c^2 + L_{grad c} (kappa_c + sigma_c));  sharp: L_c^2 + sqrt(m) L_{grad c} (kappa_c + sigma_c)
    """
    m, slope = problem.constraint_count, problem.constraint_gradient_lipschitz
    squared, bent = problem.sampled_jacobian_bound**2, slope * problem.sampled_constraint_bound
    return Affine(
        problem.objective_gradient_lipschitz + math.sqrt(m) * slope * multiplier_bound,
        squared + math.sqrt(m) * bent if sharp else m * (squared + bent),
    )


def hessian_lipschitz(problem: ProblemConstants, multiplier_bound: Multiplier, sharp: bool = False) -> Affine:
    """Lemma 3.3: L_H <= L1 + alpha L2.

    L1 = L_{hess f} + sqrt(m) L_{hess c} Lambda
    L2 = m (2 L_{grad c} L_c + L_c (kappa_{hess c} + sigma_{hess c}) + L_{hess c} (kappa_c + sigma_c));  sharp: sqrt(m)
    """
    m, bound = problem.constraint_count, problem.sampled_jacobian_bound
    inner = (
        2 * problem.constraint_gradient_lipschitz * bound
        + bound * (problem.constraint_hessian_bound + problem.constraint_hessian_noise)
        + problem.constraint_hessian_lipschitz * problem.sampled_constraint_bound
    )
    return Affine(
        problem.objective_hessian_lipschitz + math.sqrt(m) * problem.constraint_hessian_lipschitz * multiplier_bound,
        (math.sqrt(m) if sharp else m) * inner,
    )


def gradient_noise(problem: ProblemConstants, multiplier_bound: Multiplier) -> Affine:
    """Lemma 3.4: s_g <= s1 + alpha s2, almost surely, for the pair estimator (3.1).

    s1 = sigma_{grad f} + sigma_{grad c} Lambda
    s2 = sigma_{grad c} (sigma_c + kappa_c) + kappa_{grad c} sigma_c
    """
    return Affine(
        problem.objective_gradient_noise + problem.jacobian_noise * multiplier_bound,
        problem.jacobian_noise * problem.sampled_constraint_bound + problem.jacobian_bound * problem.constraint_noise,
    )


def gradient_noise_mean_square(problem: ProblemConstants, multiplier_bound: Multiplier, penalty: Penalty) -> Gradient:
    """Root of E|sampled gradient - gradient|^2 for the pair estimator (3.1); derived here, at most Lemma 3.4.

    The error is (grad F - grad f) + (J_1 - J)'(lambda + alpha C_2) + alpha J'(C_2 - c). Its three parts are
    uncorrelated, because xi, zeta_1 and zeta_2 are independent, so that their squares add:
    sigma_{grad f}^2
    + sigma_{grad c}^2 ((Lambda + alpha kappa_c)^2 + alpha^2 sigma_c^2)
    + alpha^2 kappa_{grad c}^2 sigma_c^2.
    Enough for SG-HV-NC and Natasha2; SPIDER's concentration needs the almost sure bound.
    """
    multiplier = math.hypot(multiplier_bound + penalty * problem.constraint_bound, penalty * problem.constraint_noise)
    return math.hypot(
        problem.objective_gradient_noise,
        problem.jacobian_noise * multiplier,
        penalty * problem.jacobian_bound * problem.constraint_noise,
    )


def hessian_noise(problem: ProblemConstants, multiplier_bound: Multiplier, sharp: bool = False) -> Affine:
    """Lemma 3.5: s_H <= 2 (L1 + alpha L2) with the constants of Lemma 3.2 (erratum 17: sqrt(m), not m).

    sharp, from Assumption 3.3, s_H <= s1 + alpha s2:
    s1 = sigma_{hess f} + sqrt(m) sigma_{hess c} Lambda
    s2 = sqrt(m) ((kappa_c + sigma_c) sigma_{hess c} + sigma_c kappa_{hess c})
    + sigma_{grad c} (2 kappa_{grad c} + sigma_{grad c})
    """
    if not sharp:
        lipschitz = gradient_lipschitz(problem, multiplier_bound)
        return Affine(2 * lipschitz.fixed, 2 * lipschitz.slope)
    root = math.sqrt(problem.constraint_count)
    bent = problem.sampled_constraint_bound * problem.constraint_hessian_noise
    bent += problem.constraint_noise * problem.constraint_hessian_bound
    return Affine(
        problem.objective_hessian_noise + root * problem.constraint_hessian_noise * multiplier_bound,
        root * bent + problem.jacobian_noise * (2 * problem.jacobian_bound + problem.jacobian_noise),
    )


def subproblem_constants(
    problem: ProblemConstants, multiplier_bound: Multiplier, penalty: Penalty, gap: Value, sharp: bool = False
) -> SubproblemConstants:
    """Definition 3.1 at one penalty, for every multiplier of norm <= `multiplier_bound`; `gap` from `theory.gap`."""
    noise = hessian_noise(problem, multiplier_bound)(penalty)
    if sharp:
        noise = min(
            2 * gradient_lipschitz(problem, multiplier_bound, sharp=True)(penalty),
            hessian_noise(problem, multiplier_bound, sharp=True)(penalty),
        )
    return SubproblemConstants(
        gradient_lipschitz=gradient_lipschitz(problem, multiplier_bound, sharp)(penalty),
        hessian_lipschitz=hessian_lipschitz(problem, multiplier_bound, sharp)(penalty),
        gradient_noise=gradient_noise(problem, multiplier_bound)(penalty),
        hessian_noise=noise,
        gap=gap,
    )


def _check(record: ProblemConstants | SubproblemConstants, positive: tuple[str, ...]) -> None:
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if not math.isfinite(value) or value < 0 or (value == 0 and field.name in positive):
            wanted = "above zero" if field.name in positive else "of at least zero"
            raise InputError(
                f"{field.name} is {value}",
                f"a finite number {wanted}",
                "any upper bound will do for a constant (a lower one for regularity); a small positive one, not zero",
            )

"""What a solve costs: counts of sampled gradients and Hessian-vector products, and the terms of the work lemmas."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .constants import SubproblemConstants
from .units import Count, Curvature, Gradient, Number, Unit


@dataclass(frozen=True)
class Cost:
    """Definition 3.2: sampled gradients and Hessian-vector products of the augmented Lagrangian, one per theta."""

    gradients: Number = 0
    hessian_products: Number = 0

    @property
    def total(self) -> Number:
        """The paper's total work (section 5): gradients + 2 Hessian-vector products."""
        return float(self.gradients + 2 * self.hessian_products)

    def evaluations(self, constraint_count: Count) -> Number:
        """Definition 1.3 in single evaluations of F and C_j, from (3.1) and (3.2).

        A gradient is grad F, m values C_j, m gradients of C_j: 1 + 2m. A Hessian-vector product is one of F, m of the
        C_j, m values and 2m gradients (J_1 and J_2): 1 + 4m.
        """
        m = constraint_count
        return (1 + 2 * m) * self.gradients + (1 + 4 * m) * self.hessian_products

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.gradients + other.gradients, self.hessian_products + other.hessian_products)

    def __mul__(self, times: float) -> "Cost":
        return Cost(self.gradients * times, self.hessian_products * times)

    __rmul__ = __mul__


UNBOUNDED = Cost(math.inf, math.inf)


@dataclass(frozen=True)
class Work:
    """Cost of one subproblem solve: an upper bound of its expectation, and of its worst case (infinite if none)."""

    expected: Cost
    worst: Cost


@dataclass(frozen=True, kw_only=True)
class Term:
    """One product in a work lemma: the powers of Delta, L_g, L_H, s_g, s_H and of the two tolerances."""

    coefficient: float = 1.0
    gap: float = 0.0
    gradient_lipschitz: float = 0.0
    hessian_lipschitz: float = 0.0
    gradient_noise: float = 0.0
    hessian_noise: float = 0.0
    eps_g: float = 0.0
    eps_H: float = 0.0

    def value(
        self, constants: SubproblemConstants, gradient_tolerance: Gradient, curvature_tolerance: Curvature
    ) -> float:
        """The product for these numbers; a zero constant with a negative power makes it infinite."""
        factors = (
            (constants.gap, self.gap),
            (constants.gradient_lipschitz, self.gradient_lipschitz),
            (constants.hessian_lipschitz, self.hessian_lipschitz),
            (constants.gradient_noise, self.gradient_noise),
            (constants.hessian_noise, self.hessian_noise),
            (gradient_tolerance, self.eps_g),
            (curvature_tolerance, self.eps_H),
        )
        if any(base == 0 and power > 0 for base, power in factors):
            return 0.0
        if any(base == 0 and power < 0 for base, power in factors):
            return math.inf
        return self.coefficient * math.prod(base**power for base, power in factors)

    def unit(self) -> Unit:
        """The unit of the product. Work is a count, so it must be `Unit()`."""
        curvatures = self.gradient_lipschitz + self.hessian_noise + self.eps_H
        gradients = self.gradient_noise + self.eps_g
        return Unit(
            objective=self.gap + curvatures + gradients + self.hessian_lipschitz,
            length=-2 * curvatures - gradients - 3 * self.hessian_lipschitz,
        )

    def exponents(self, constants_grow: bool = True, gap_grows: bool = True) -> tuple[float, float]:
        """(a, b) such that the term is O(eps_g^-a eps_H^-b).

        In the last subproblem of MESCAL the penalty is O(1/eps_g), and each constant at most proportional to it; so is
        the gap by the deterministic bound (3.9), while (3.10)-(3.12) keep it bounded. Constants in a denominator are
        bounded below only, and gain nothing.
        """
        powers = (self.gradient_lipschitz, self.hessian_lipschitz, self.gradient_noise, self.hessian_noise)
        growth = sum(max(0.0, power) for power in powers) if constants_grow else 0.0
        growth += self.gap if gap_grows else 0.0
        return growth - self.eps_g, -self.eps_H


def order(
    terms: Iterable[Term],
    constants: SubproblemConstants,
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
) -> float:
    """The sum inside the O~(...) of a work lemma, without its hidden constants and logarithms."""
    return sum(term.value(constants, gradient_tolerance, curvature_tolerance) for term in terms)

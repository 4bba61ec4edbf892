"""Orders of work in the two tolerances: sums of eps_g^-a eps_H^-b, from the terms of a lemma."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from .cost import Term


@dataclass(frozen=True)
class Rate:
    """O~ of a sum of eps_g^-a eps_H^-b: the pairs (a, b) that nothing dominates, largest a first."""

    exponents: tuple[tuple[float, float], ...]

    def __str__(self) -> str:
        return " + ".join(_product(a, b) for a, b in self.exponents)

    def power(self, curvature: float = 1.0) -> float:
        """a such that the sum is O~(eps^-a) when eps_g = eps and eps_H = eps^curvature."""
        return max(a + curvature * b for a, b in self.exponents)


def rate(*pairs: tuple[float, float]) -> Rate:
    """The rate of a sum, without the terms that the others dominate.

    One term, or two by x^t y^(1-t) <= x + y: a pair goes where a convex combination of two others is at least as large
    in both exponents.
    """
    unique = set(pairs)
    kept = {pair for pair in unique if not _dominated(pair, unique - {pair})}
    return Rate(tuple(sorted(kept, reverse=True)))


def _dominated(pair: tuple[float, float], others: set[tuple[float, float]]) -> bool:
    for p, q in itertools.combinations_with_replacement(others, 2):
        # The best mixtures t p + (1-t) q are an end or where one exponent is met exactly.
        exact = ((pair[i] - q[i]) / (p[i] - q[i]) for i in (0, 1) if p[i] != q[i])
        for t in (0.0, *exact):
            if 0 <= t <= 1 and all(t * p[i] + (1 - t) * q[i] >= pair[i] - 1e-12 for i in (0, 1)):
                return True
    return False


def rate_of(terms: Iterable[Term], constants_grow: bool = True, gap_grows: bool = True) -> Rate:
    """The rate of a work lemma: in the last subproblem of MESCAL, or of one fixed problem (nothing grows).

    The sum over subproblems k = 0..K is of the order of its last member, as the penalty grows geometrically.
    """
    return rate(*(term.exponents(constants_grow, gap_grows) for term in terms))


def _product(a: float, b: float) -> str:
    parts = [f"eps_{name}^-{power:g}" for name, power in (("g", a), ("H", b)) if power]
    return " ".join(parts) or "1"

"""How many samples make a mean sharp, by one inequality for vectors and one for symmetric matrices.

Vectors (Pinelis 1994, theorem 3.5), terms with |x_i - mean| <= s:  P(|mean of n - mean| >= r) <= 2 exp(-n r^2/(2 s^2)).

Matrices (Mackey, Jordan, Chen, Farrell and Tropp 2014, corollary 4.2, matrix Hoeffding), symmetric terms with |X_i - mean| <= s
in the spectral norm: with A_i = s I their variance parameter is at most n s^2, so P(|mean of n - mean| >= r) <=
2 d exp(-n r^2/(2 s^2)). (Tropp 2012, theorem 1.3, has 8 in the place of 2, for bounds A_i that need not be multiples of I.)
"""

import math

from .counts import check_positive, check_probability, count
from .units import Count, Curvature, Gradient, Number


def vectors(noise: Gradient, error: Gradient, failure: Number) -> Count:
    """n = ceil(2 (s/r)^2 ln(2/p)): |mean of n gradients - gradient| <= r with probability >= 1 - p; no factor d."""
    check_positive(error=error)
    check_probability(failure=failure)
    return count(2 * (noise / error) ** 2 * math.log(2 / failure))


def matrices(noise: Curvature, error: Curvature, failure: Number, dimension: Count) -> Count:
    """n = ceil(2 (s/r)^2 ln(2d/p)): |mean of n Hessians - Hessian| <= r with probability >= 1 - p."""
    check_positive(error=error, dimension=dimension)
    check_probability(failure=failure)
    return count(matrix_factor(noise, error) * (math.log(dimension) + matrix_logarithm(failure)))


def matrix_factor(noise: Curvature, error: Curvature) -> Number:
    """a in n = ceil(a (ln d + l)): 2 (s/r)^2."""
    return 2 * (noise / error) ** 2


def matrix_logarithm(failure: Number) -> Number:
    """l in n = ceil(a (ln d + l)): ln(2/p)."""
    return math.log(2 / failure)

"""What repeated independent runs prove about Definition 1.1: means over runs of the three measures, with one-sided bounds.

    E |P_T(-grad L)| <= eps_g,   E |c| <= eps_g,   E min u'Hu >= -eps_H

each at a third of the failure probability, so that all three hold together with the confidence. Where the largest value b
that a measure can have is known, the bound holds for every law (Maurer and Pontil 2009, theorem 4), V the variance of R runs:

    E X <= mean + sqrt(2 V ln(2/a)/R) + 7 b ln(2/a)/(3 (R - 1))        but for probability a

otherwise it is Student's, mean + t_{1-a, R-1} sqrt(V/R), exact for normal laws and right in the limit for others.
(Definition 1.2, in probability, is measured by `success`.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from ..errors import InputError
from .counts import check_positive, check_probability
from .units import Count, Curvature, Gradient, Number

MEASURES = 3


@dataclass(frozen=True)
class Mean:
    """A mean over runs, and the bound of its expectation on the side that counts."""

    mean: float
    bound: float
    limit: float  # what the definition asks for
    above: bool  # whether the expectation has to stay below the limit, and is bounded from above

    @property
    def proved(self) -> bool:
        """Whether the bound is within the limit, on its side."""
        return self.bound <= self.limit if self.above else self.bound >= self.limit


@dataclass(frozen=True)
class ExpectedPoint:
    """Definition 1.1 measured on runs."""

    stationarity: Mean
    feasibility: Mean
    curvature: Mean
    runs: Count
    confidence: Number
    how: str  # "any law", or "Student's t"

    @property
    def proved(self) -> bool:
        """Whether all three conditions are proved at the confidence, together."""
        return self.stationarity.proved and self.feasibility.proved and self.curvature.proved

    def __str__(self) -> str:
        lines = [
            f"  {name}: mean {at.mean:.3g}, at {'most' if at.above else 'least'} {at.bound:.3g}, "
            f"asked {at.limit:.3g}: {'proved' if at.proved else 'not proved'}"
            for name, at in vars(self).items()
            if isinstance(at, Mean)
        ]
        head = f"Definition 1.1 on {self.runs} runs, confidence {self.confidence:g}, {self.how}:"
        return "\n".join([head, *lines])


def expected_point(
    measures: Sequence[tuple[Gradient, Number, Curvature]],
    gradient_tolerance: Gradient,
    curvature_tolerance: Curvature,
    *,
    confidence: Number = 0.95,
    largest: tuple[Gradient, Number, Curvature] | None = None,
) -> ExpectedPoint:
    """Definition 1.1 from one triple (stationarity, feasibility, curvature) of each of R independent runs of one algorithm.

    Take the ends of the certificate's intervals that are worst for the claim, `(c.stationarity.upper, c.feasibility.upper,
    c.curvature.lower)`, and one point of each run: iterates of one run are not independent. Curvature above zero, which an empty
    cone has without end, counts as zero: that only lowers its mean.

    **Arguments:**

    - `largest`: bounds of |P_T(-grad L)|, of |c| and of |min u'Hu| that hold for certain; with them the law does not matter.
    """
    check_positive(gradient_tolerance=gradient_tolerance, curvature_tolerance=curvature_tolerance)
    check_probability(confidence=confidence)
    columns = _columns(measures)
    columns[2] = [-min(value, 0.0) for value in columns[2]]
    share = (1 - confidence) / MEASURES
    uppers = [upper_bound(column, share, None if largest is None else largest[i]) for i, column in enumerate(columns)]
    means = [math.fsum(column) / len(column) for column in columns]
    return ExpectedPoint(
        stationarity=Mean(means[0], uppers[0], gradient_tolerance, True),
        feasibility=Mean(means[1], uppers[1], gradient_tolerance, True),
        curvature=Mean(-means[2], -uppers[2], -curvature_tolerance, False),
        runs=len(columns[0]),
        confidence=confidence,
        how="Student's t" if largest is None else "any law",
    )


def upper_bound(values: Sequence[Number], failure: Number, largest: Number | None = None) -> Number:
    """A bound of the expectation of i.i.d. values >= 0 that fails with probability `failure` at most."""
    runs, mean = len(values), math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / (runs - 1)
    if largest is None:
        quantile: Any = stats.t.ppf(1 - failure, runs - 1)
        return mean + float(quantile) * math.sqrt(variance / runs)
    if max(values) > largest:
        raise InputError(
            f"a run measured {max(values):.3g}, and no measure is said to exceed {largest:.3g}",
            "`largest` above all that can be measured",
            "correct it, or leave it out",
        )
    logarithm = math.log(2 / failure)
    return mean + math.sqrt(2 * variance * logarithm / runs) + 7 * largest * logarithm / (3 * (runs - 1))


def _columns(measures: Sequence[tuple[Gradient, Number, Curvature]]) -> list[list[float]]:
    rows = [tuple(float(value) for value in row) for row in measures]
    if len(rows) < 2 or any(len(row) != MEASURES for row in rows):
        raise InputError(
            f"{len(rows)} runs",
            "at least 2, each with stationarity, feasibility and curvature",
            "measure one point of each run",
        )
    if any(math.isnan(value) or value == -math.inf for row in rows for value in row) or any(
        min(row[:2]) < 0 or max(row[:2]) == math.inf for row in rows
    ):
        raise InputError(
            "a measure that is not a number, or not in its range",
            "stationarity and feasibility >= 0 and finite, curvature above minus infinity",
            "count a run without a finite point by the largest value that its measures can have",
        )
    return [list(column) for column in zip(*rows, strict=True)]

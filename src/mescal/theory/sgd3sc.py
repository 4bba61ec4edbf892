"""SGD3SC (Definition 4.2): the schedule of the last phase of Natasha2, on a strongly convex and smooth function.

Stage s of S = max(1, floor(log2(L/mu))) runs SGD on the function plus the quadratics (mu_j/2)|x - x_j|^2 added after
earlier stages, mu_j = 2^j mu; their sum is at most 2L, hence smoothness 3L. The integers are those of the
specification (3.3), which could not check them against the source.
"""

import math
from dataclasses import dataclass

from ..errors import InputError
from .counts import check_positive
from .units import Count, Curvature, StepSize


@dataclass(frozen=True)
class Segment:
    """`repeats` times: `steps` SGD steps of one size, then their average as the next start."""

    step_size: StepSize
    steps: Count
    repeats: Count


@dataclass(frozen=True)
class Stage:
    """One call of SGD on a function of this strong convexity."""

    strong_convexity: Curvature
    segments: tuple[Segment, ...]

    @property
    def steps(self) -> Count:
        """Gradients used by the stage."""
        return sum(segment.steps * segment.repeats for segment in self.segments)


def schedule(strong_convexity: Curvature, smoothness: Curvature, budget: Count) -> tuple[Stage, ...]:
    """Stages s = 0..S-1 with mu_s = 2^s mu, L' = 3L, T' = floor(T/S).

    floor(mu_s T'/(8L')) times ceil(4L'/mu_s) steps of size 1/(2L'), then once, for each k = 1..max(1, floor(log2(mu_s
    T'/(16L')))), ceil(2^(k+2) L'/mu_s) steps of size 1/(2^k L'). About T gradients; more where T is below 32 L'/mu.
    """
    check_positive(strong_convexity=strong_convexity, smoothness=smoothness, budget=budget)
    if strong_convexity > smoothness:
        raise InputError(
            f"strong convexity {strong_convexity:g} exceeds smoothness {smoothness:g}",
            "strong convexity <= smoothness",
            "no function has both; check the order of the arguments",
        )
    stages = max(1, math.floor(math.log2(smoothness / strong_convexity)))
    return tuple(_stage(strong_convexity * 2**s, 3 * smoothness, budget // stages) for s in range(stages))


def _stage(strong_convexity: Curvature, smoothness: Curvature, budget: Count) -> Stage:
    ratio = smoothness / strong_convexity
    repeats = math.floor(budget / (8 * ratio))
    long = (Segment(1 / (2 * smoothness), math.ceil(4 * ratio), repeats),) if repeats else ()
    halvings = max(1, math.floor(math.log2(max(1.0, budget / (16 * ratio)))))
    short = tuple(Segment(1 / (2**k * smoothness), math.ceil(2 ** (k + 2) * ratio), 1) for k in range(1, halvings + 1))
    return Stage(strong_convexity, long + short)

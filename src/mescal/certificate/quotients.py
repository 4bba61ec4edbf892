"""Whether derivatives are those of the function: difference quotients at x along a few random directions.

    a = |f(x + d) - f(x) - g'd| / |d|,      b = |grad L(x + d) - grad L(x) - H d| / |d|,      c and J like f and g

For functions that are twice differentiable both fall with |d|. Where a function has a kink or a jump at x, or its derivatives are
not its own (`stop_gradient`, a rule that lies), a or b stays or grows. What matters at the tolerance and stays as |d| falls from h
by 64 and 64 and 64, as long as it is above rounding, is reported. Steps are as short as rounding lets them be,
h = `SHARPNESS` sqrt(d) off / tolerance, off being the rounding bound of f: a kink of another row nearby is not met. Directions are
projected onto the tangent cone, and points onto X.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..oracle.evaluator import Evaluator
from ..oracle.look import At
from .certificate import Measured
from .request import DEFAULT_TOLERANCE, Request
from .rounded import Rounded

DIRECTIONS = 2  # random ones, each taken both ways
SHARPNESS = 2000.0  # errors of quotients by rounding, at the first step, are this many times smaller than what matters
SHORTER, SHRINKS = 64.0, 3  # by how much, and how often, steps are shortened where the first one shows a difference
SHORTEST, LONGEST = 1e-8, 1e-4  # of steps, in units of the largest coordinate, or of 1 where all are zero
FEW_ROWS = 16  # of c: for more, values and one gradient are cheaper than a whole look


class Seen(NamedTuple):
    """f, c and the gradient of the Lagrangian at a point near x."""

    objective: float
    constraint: np.ndarray
    slope: np.ndarray


@dataclass(frozen=True)
class Mismatch:
    """Sentences on what does not match; None where all does."""

    slope: str | None = None
    bend: str | None = None

    def on_stationarity(self, measured: Measured) -> Measured:
        """A stationarity that is only as good as the gradient."""
        return measured if self.slope is None else replace(measured, upper=np.inf)

    def on_curvature(self, measured: Measured) -> Measured:
        """A curvature that is only as good as the Hessian."""
        return measured if self.bend is None and self.slope is None else replace(measured, lower=-np.inf)

    @property
    def sentences(self) -> tuple[str, ...]:
        """For readers."""
        return tuple(sentence for sentence in (self.slope, self.bend) if sentence)


def mismatch(
    request: Request,
    judge: Evaluator,
    point: At,
    multipliers: np.ndarray,
    product: Callable[[np.ndarray], np.ndarray],
    off: Rounded,
) -> Mismatch:
    """What difference quotients at x say of the derivatives; `product` maps v to H v, H that of the Lagrangian."""
    x, tolerance = request.x, request.tolerance or DEFAULT_TOLERANCE
    if not np.isfinite(point.objective):
        return Mismatch()
    unit = float(np.abs(x).max(initial=0.0)) or 1.0
    here = Seen(point.objective, point.constraint, point.gradient + multipliers @ point.jacobian)
    wanted = SHARPNESS * np.sqrt(x.size) * off.objective / tolerance.gradient
    h = float(np.clip(wanted, SHORTEST * unit, LONGEST * unit))
    limits = tolerance.gradient / (8 * np.sqrt(x.size)), tolerance.curvature / 8
    random = np.random.default_rng([request.seed, 5]).standard_normal((DIRECTIONS, x.size))
    worst = [(0.0, 0.0, 0.0), (0.0, 0.0, 0.0)]  # of slopes and of bends: by how much, at h and in the end
    for z in (*random, *-random):
        along = request.project_tangent(z)
        if not np.linalg.norm(along) > 0:
            continue
        along = along / np.linalg.norm(along)
        first, errors = _quotients(request, judge, point, here, multipliers, product, off, h * along)
        if all(a <= limit + 4 * error for a, limit, error in zip(first, limits, errors, strict=True)):
            continue
        last, told = list(first), [False, False]
        for times in range(1, SHRINKS + 1):
            shorter = h / SHORTER**times * along
            found, noise = _quotients(request, judge, point, here, multipliers, product, off, shorter)
            last = [b if b > 4 * error else before for b, error, before in zip(found, noise, last, strict=True)]
            told = [told or b > 4 * error for told, b, error in zip(told, found, noise, strict=True)]
        for i, (a, b) in enumerate(zip(first, last, strict=True)):
            if a > limits[i] + 4 * errors[i] and told[i] and b > a / 2 and a / limits[i] > worst[i][0]:
                worst[i] = a / limits[i], a, b
    return Mismatch(_slope_sentence(*worst[0][1:], h), _bend_sentence(*worst[1][1:], h))


def _quotients(request, judge, point, here, multipliers, product, off, step) -> tuple[tuple, tuple]:
    """a (the worst of f and the rows of c) and b at the point of X next to x + step, and what rounding may make of them."""
    ahead = request.project(request.x + step)
    d = ahead - request.x
    length = float(np.linalg.norm(d))
    if length < 0.1 * float(np.linalg.norm(step)):  # X is thinner than the step
        return (0.0, 0.0), (0.0, 0.0)
    there = _seen(judge, ahead, multipliers)
    own = np.array([point.gradient @ d, *(point.jacobian @ d)])
    rise = np.array([there.objective - here.objective, *(there.constraint - here.constraint)])
    slopes = np.linalg.norm(np.concatenate([point.rounding.gradient[None], point.rounding.jacobian]), axis=1)
    rounding = np.array([off.objective, *point.rounding.constraint]) * 2 / length + slopes
    a = max(
        0.0, float(np.max(np.abs(rise - own) / length - 4 * rounding))
    )  # each row has its own rounding: taken off here
    b = float(np.linalg.norm(there.slope - here.slope - product(d))) / length
    return (a, b), (0.0, 2 * off.stationarity / length + 2 * off.hessian)


def _seen(judge: Evaluator, x: np.ndarray, multipliers: np.ndarray) -> Seen:
    if len(multipliers) <= FEW_ROWS:
        at = judge.at(x)
        return Seen(at.objective, at.constraint, at.gradient + multipliers @ at.jacobian)
    return Seen(*judge.values(x), judge.slope(x, 1.0, multipliers))


def _slope_sentence(a: float, b: float, h: float) -> str | None:
    if not a > 0:
        return None
    what = "jump" if b > 4 * a else "kink, or a derivative that is not the function's own,"
    return (
        f"Values do not change as their derivatives say: the slope along a random direction is off by {a:.3g} over {h:.3g}, and by "
        f"{b:.3g} over the shortest step above rounding. There is a {what} at x; look for abs, relu, where, floor, round, "
        "stop_gradient and rules of your own."
    )


def _bend_sentence(a: float, b: float, h: float) -> str | None:
    if not a > 0:
        return None
    return (
        f"Gradients do not change as the Hessian says: along a random direction they are off by {a:.3g} per unit over {h:.3g}, and "
        f"by {b:.3g} over the shortest step above rounding. The functions have a kink at x, or are not twice differentiable there."
    )

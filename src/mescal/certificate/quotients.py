"""Whether derivatives are those of the function: difference quotients at x along a few random directions.

    a = |f(x + d) - f(x) - g'd| / |d|,      b = |grad L(x + d) - grad L(x) - H d| / |d|,      c and J like f and g

    e = |L(x + d) - L(x) - (grad L(x) + grad L(x + d))'d / 2| / |d|^2

For functions that are twice differentiable all fall with |d|. Where a function has a kink or a jump at x, or its derivatives are
not its own (`stop_gradient`, a rule that lies), a or b stays or grows. What matters at the tolerance and stays as |d| falls from h
by 64 and 64 and 64, as long as it is above rounding, is reported. What does not matter at the tolerance is not followed, and bounds
what tighter tolerances can be met: stationarity is known up to the largest a, curvature up to the largest b that was let pass.
Steps are as short as rounding lets them be, h = `SHARPNESS` sqrt(d) off / tolerance, off being the rounding bound of f: a kink of
another row nearby is not met. Directions are projected onto the tangent cone, and points onto X. Functions that are smooth by their
equations alone (`smooth`) are not tried.

Where both f and its gradient are flat at x, as those of -3 stop_gradient(x)^2 at 0, neither a nor b sees that they do not belong
together: e does, over longer steps that rounding asks for, and where e > 2 b no kink on the way explains it (b = 6 e for a cube).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..oracle.evaluator import Evaluator
from ..oracle.look import At
from .certificate import Measured
from .request import DEFAULT_TOLERANCE, Request, Settled
from .rounded import Rounded
from .scalars import Frame
from .smooth import surely_smooth

DIRECTIONS = 2  # random ones, each taken both ways
SHARPNESS = 2000.0  # errors of quotients by rounding, at the first step, are this many times smaller than what matters
SHORTER, SHRINKS = 64.0, 3  # by how much, and how often, steps are shortened where the first one shows a difference
FURTHEST = 1e-2  # of the steps for e, in the same units
SHORTEST, LONGEST = 1e-8, 1e-4  # of steps, in units of the largest coordinate, or of 1 where all are zero
UNCOMPARED = "Values were not compared with derivatives, nor these with the Hessian: the judge's time was up."


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
    missing: str | None = None
    least: tuple[float, float] = (0.0, 0.0)  # gradient and curvature tolerances at which all that was let pass would be

    def on_stationarity(self, measured: Measured) -> Measured:
        """A stationarity that is only as good as the gradient."""
        if self.slope or self.missing:
            return replace(measured, upper=np.inf)
        return replace(measured, upper=max(measured.upper, self.least[0]))

    def on_curvature(self, measured: Measured) -> Measured:
        """A curvature that is only as good as the Hessian."""
        if self.sentences:
            return replace(measured, lower=-np.inf)
        return replace(measured, lower=min(measured.lower, -self.least[1])) if self.least[1] > 0 else measured

    @property
    def sentences(self) -> tuple[str, ...]:
        """For readers."""
        return tuple(sentence for sentence in (self.slope, self.bend, self.missing) if sentence)


class Worst(NamedTuple):
    """The largest difference: over the first step, over the shortest above rounding, and the first step."""

    first: float = 0.0
    last: float = 0.0
    step: np.ndarray | None = None


def mismatch(
    request: Request,
    judge: Evaluator,
    point: At,
    settled: Settled,
    product: Callable[[np.ndarray], np.ndarray],
    off: Rounded,
) -> Mismatch:
    """What difference quotients at x say of the derivatives; `product` maps v to H v, H that of the Lagrangian.

    All is in the coordinates that are settled: steps, and the look at x.
    """
    multipliers, _, frame = settled
    x, tolerance = request.x, request.tolerance or DEFAULT_TOLERANCE
    if not np.isfinite(point.objective) or surely_smooth(request.program):
        return Mismatch()
    unit = float(np.abs(frame.inward(x)).max(initial=0.0)) or 1.0
    here = Seen(point.objective, point.constraint, point.gradient + multipliers @ point.jacobian)
    wanted = SHARPNESS * np.sqrt(x.size) * off.objective / tolerance.gradient
    h = float(np.clip(wanted, SHORTEST * unit, LONGEST * unit))
    shares = 8 * np.sqrt(x.size), 8.0
    limits = tolerance.gradient / shares[0], tolerance.curvature / shares[1]
    passed = [0.0, 0.0]
    if request.budget.over:
        return Mismatch(missing=UNCOMPARED)
    random = np.random.default_rng([request.seed, 5]).standard_normal((DIRECTIONS, x.size))
    ways = [request.project_tangent(z) for z in (*random, *-random)]
    ways = [along / np.linalg.norm(along) for along in ways if np.linalg.norm(along) > 0]
    near = _Near(request, judge, point, here, multipliers, product, off, frame)
    worst: list[Worst] = [Worst(), Worst()]  # of slopes and of bends
    for along, (first, errors) in zip(ways, near.quotients([h * along for along in ways]), strict=True):
        if all(a <= limit + 4 * error for a, limit, error in zip(first, limits, errors, strict=True)):
            passed = [max(p, a - 4 * error) for p, a, error in zip(passed, first, errors, strict=True)]
            continue
        if request.budget.over:
            return Mismatch(missing=UNCOMPARED)
        last, told = list(first), [False, False]
        for found, noise in near.quotients([h / SHORTER**times * along for times in range(1, SHRINKS + 1)]):
            last = [b if b > 4 * error else before for b, error, before in zip(found, noise, last, strict=True)]
            told = [told or b > 4 * error for told, b, error in zip(told, found, noise, strict=True)]
        for i, (a, b) in enumerate(zip(first, last, strict=True)):
            stays = told[i] and b >= a / 2
            if stays and a <= limits[i] + 4 * errors[i]:
                passed[i] = max(passed[i], a - 4 * errors[i])
            elif stays and a > worst[i].first:
                worst[i] = Worst(a, b, h * along)
    turns = [near.turns(found) for found in worst]
    least = passed[0] * shares[0], passed[1] * shares[1]
    slope, bend = _slope_sentence(worst[0], turns[0][0], h), _bend_sentence(worst[1], turns[1][1], h)
    return Mismatch(slope, bend or near.apart(ways, unit, limits[1]), least=least)


@dataclass(frozen=True)
class _Near:
    """Points of X near x, some at a time."""

    request: Request
    judge: Evaluator
    point: At
    here: Seen
    multipliers: np.ndarray
    product: Callable[[np.ndarray], np.ndarray]
    off: Rounded
    frame: Frame

    def seen(self, points: list[np.ndarray]) -> list[Seen]:
        """What is found there; always as many points together, so that one program serves all."""
        together = 2 * DIRECTIONS
        assert len(points) <= together
        f, c, slope = self.judge.beside(np.stack([*points, *points[-1:] * (together - len(points))]), self.multipliers)
        return [Seen(float(f[k]), c[k], self.frame.slope(slope[k])) for k in range(len(points))]

    def end(self, step: np.ndarray) -> np.ndarray:
        """The point of X next to x + step."""
        return self.request.project(self.request.x + self.frame.outward(step))

    def quotients(self, steps: list[np.ndarray]) -> list[tuple[tuple, tuple]]:
        """For every step: a (the worst of f and the rows of c) and b at the point of X next to x + step, and what rounding may make
        of them.
        """
        if not steps:
            return []
        ends = [self.end(step) for step in steps]
        return [self._quotient(*given) for given in zip(steps, ends, self.seen(ends), strict=True)]

    def _quotient(self, step: np.ndarray, end: np.ndarray, there: Seen) -> tuple[tuple, tuple]:
        point, off, d = self.point, self.off, self.frame.inward(end - self.request.x)
        length = float(np.linalg.norm(d))
        if length < 0.1 * float(np.linalg.norm(step)):  # X is thinner than the step
            return (0.0, 0.0), (0.0, 0.0)
        own = np.array([point.gradient @ d, *(point.jacobian @ d)])
        rise = np.array([there.objective - self.here.objective, *(there.constraint - self.here.constraint)])
        slopes = np.linalg.norm(np.concatenate([point.rounding.gradient[None], point.rounding.jacobian]), axis=1)
        rounding = np.array([off.objective, *point.rounding.constraint]) * 2 / length + slopes
        # each row has its own rounding: taken off here
        a = float(np.max(np.maximum(np.abs(rise - own) / length - 4 * rounding, 0.0)))
        b = float(np.linalg.norm(there.slope - self.here.slope - self.product(d))) / length
        a, b = (part if np.isfinite(part) else np.inf for part in (a, b))  # a function without a value beside x
        return (a, b), (0.0, 2 * off.stationarity / length + 2 * off.hessian)

    def apart(self, ways: list[np.ndarray], unit: float, limit: float) -> str | None:
        """Whether values and gradients of the Lagrangian are those of two functions, by more than `limit` per square of a step."""
        noise = 2 * (self.off.objective + float(np.abs(self.multipliers) @ self.point.rounding.constraint))
        far = float(np.clip(np.sqrt(8 * noise / limit), LONGEST * unit, FURTHEST * unit))
        ends = [self.end(far * along) for along in ways]
        worst = 0.0
        for end, there in zip(ends, self.seen(ends) if ends else [], strict=True):
            d = self.frame.inward(end - self.request.x)
            length, here = float(np.linalg.norm(d)), self.here
            if length < 0.1 * far:
                continue
            rise = there.objective - here.objective + self.multipliers @ (there.constraint - here.constraint)
            e = abs(rise - (here.slope + there.slope) @ d / 2) / length**2
            b = float(np.linalg.norm(there.slope - here.slope - self.product(d))) / length
            if e > limit + 2 * b + 2 * noise / length**2 + 4 * self.off.stationarity / length:
                worst = max(worst, float(e))
        if not worst:
            return None
        return (
            f"Values do not change as gradients on the way say: over {far:.3g} by {worst:.3g} per square of the step. Derivatives "
            "are not the function's own; look for stop_gradient and rules of your own."
        )

    def turns(self, found: Worst) -> list[bool | None]:
        """Whether values, and gradients, change otherwise ahead than behind, as at a kink, by more than a fourth of what was found.

        Where they change alike both ways, derivatives are not the function's own. None where X does not reach both ways.
        """
        if found.step is None:
            return [None, None]
        ends = [self.end(sign * found.step) for sign in (1.0, -1.0)]
        length = float(np.linalg.norm(found.step))
        if np.linalg.norm(self.frame.inward(ends[0] + ends[1] - 2 * self.request.x)) > 0.01 * length:
            return [None, None]
        ahead, behind = self.seen(ends)
        values = [np.array([seen.objective, *seen.constraint]) for seen in (ahead, self.here, behind)]
        second = float(np.abs(values[0] - 2 * values[1] + values[2]).max()) / length
        bent = float(np.linalg.norm(ahead.slope - 2 * self.here.slope + behind.slope)) / length
        return [second > found.first / 4, bent > found.first / 4]


def _slope_sentence(found: Worst, turns: bool | None, h: float) -> str | None:
    if not found.first > 0:
        return None
    kink = "There is a kink at x, where no gradient describes the function: look for abs, relu, max and where"
    wrong = (
        "Values change alike ahead and behind, and not as the gradient says: it is not the function's own; look for stop_gradient, "
        "rules of your own, floor and round"
    )
    what = f"{kink}. Or: {wrong[0].lower()}{wrong[1:]}" if turns is None else kink if turns else wrong
    if found.last > 4 * found.first:
        what = "There is a jump at x: look for floor, round, sign, comparisons and where"
    return (
        f"Values do not change as their derivatives say: the slope along a random direction is off by {found.first:.3g} over "
        f"{h:.3g}, and by {found.last:.3g} over the shortest step above rounding. {what}."
    )


def _bend_sentence(found: Worst, turns: bool | None, h: float) -> str | None:
    if not found.first > 0:
        return None
    bent = "Gradients have a kink at x: the functions are not twice differentiable there"
    wrong = "They change alike ahead and behind: the Hessian is not that of the function"
    what = f"{bent}, or the Hessian is not their own" if turns is None else bent if turns else wrong
    return (
        f"Gradients do not change as the Hessian says: along a random direction they are off by {found.first:.3g} per unit over "
        f"{h:.3g}, and by {found.last:.3g} over the shortest step above rounding. {what}."
    )

"""A ray that shows that a problem is unbounded below: x + t d, t >= 0, in X and feasible, along which f falls and never slows down.

    d = (far - start)/|far - start|, or, where that will not do, -grad f(far)/|grad f(far)|, brought into the recession cone of X
    and the null space of the rows of J that bind;
    f(x + t d) is looked at for t = R (0, 1, 1e2, 1e4, 1e8, 1e12), R = max(1, |x|):  it must fall at a rate above the
    tolerance, and at the end at no less than half the rate of the beginning

A loss that flattens out (a logistic one) falls ever slower, and is not taken for unbounded. Feasible curves that are no rays are
not looked for. On streams the rates are estimated on common samples and must be sure to three standard errors.
"""

from dataclasses import dataclass

import numpy as np

from ..oracle import Tally
from ..oracle.draw import words
from ..oracle.subproblem import Array, Subproblem
from .reset import SMALLEST_RESET, sampled_look

FAR = 100.0  # times max(1, |x0|): how far a run may go before a ray is looked for; then times |x|
LENGTHS = (0.0, 1.0, 1e2, 1e4, 1e8, 1e12)  # times max(1, |x|)
KEPT = 0.5  # of the rate at the beginning: what must be left at the end
ROUNDS = 5  # of projections between the recession cone of X and the null space of J, and of Gauss-Newton steps
SURE = 3.0  # standard errors
SHOWN = 6  # entries of a printed direction
ROUNDINGS = 64.0  # units of rounding in which a row of c may be off, relative to what it is summed from


@dataclass(frozen=True)
class Ray:
    """x + t direction: f and the violation |max(c, 0)| (|c| for equalities) at some t, in the problem's units."""

    direction: np.ndarray
    lengths: np.ndarray
    objective: np.ndarray
    violation: np.ndarray

    def __str__(self) -> str:
        with np.printoptions(precision=4, threshold=SHOWN, edgeitems=SHOWN // 2, linewidth=1000):
            along = str(self.direction)
        values = ", ".join(f"{f:.4g} at t = {t:.4g}" for t, f in zip(self.lengths, self.objective, strict=True))
        kept = f"; violation {self.violation.max():.2g} at most" if self.violation.any() else ""
        return f"x + t {along}: objective {values}{kept}"


@dataclass(frozen=True)
class _Point:
    objective: float
    error: float
    gradient: Array
    constraint: Array
    jacobian: Array


def far_away(origin: Array, x: Array) -> float:
    """|x| at which a ray is looked for next."""
    first = FAR * max(1.0, float(np.linalg.norm(np.asarray(origin, np.float64))))
    size = float(np.linalg.norm(x))
    return first if size < first else FAR * size


def ray_from(
    sub: Subproblem, start: Array, far: Array, tolerance: float, key: tuple[int, ...]
) -> tuple[Ray | None, Array, Tally]:
    """A ray from a feasible point near `far` and away from `start`, if there is one; that point as z; and the work."""
    spent: list[Tally] = []
    size = sub.parameters

    def at(x: Array) -> _Point:
        point, work = _look(sub, x, key)
        spent.append(work)
        return point

    x, seen = _feasible(sub, far[:size].astype(np.float64), at, tolerance)
    if not (np.isfinite(seen.objective) and np.isfinite(seen.gradient).all() and np.isfinite(seen.constraint).all()):
        return None, far, sum(spent, Tally())
    z = np.concatenate([x, np.maximum(0, -seen.constraint[sub.inequality])]).astype(far.dtype)
    for towards in (x - start[:size], -seen.gradient):
        direction = _recession(sub, x, towards, seen)
        ray = None if direction is None else _along(sub, x, seen, direction, at, tolerance, far.dtype)
        if ray is not None:
            return ray, z, sum(spent, Tally())
    return None, z, sum(spent, Tally())


def _along(sub: Subproblem, x: Array, seen: _Point, direction: Array, at, tolerance: float, dtype) -> Ray | None:
    """The ray from x in a direction, if f falls along it without end."""
    reach = max(1.0, float(np.linalg.norm(x))) * np.asarray(LENGTHS)
    places = [x + t * direction for t in reach]
    points = [seen, *(at(y) for y in places[1:])]
    values, errors = np.asarray([p.objective for p in points]), np.asarray([p.error for p in points])
    violation = np.asarray([np.linalg.norm(_excess(sub, p.constraint)) for p in points])
    eps = ROUNDINGS * float(np.finfo(dtype if sub.looks is None else np.float64).eps)
    sizes = [eps * np.linalg.norm(np.abs(p.jacobian) @ np.abs(y)) for p, y in zip(points, places, strict=True)]
    stays = all(_is_inside(sub, y, dtype) for y in places) and (violation <= tolerance + np.asarray(sizes)).all()
    with np.errstate(invalid="ignore"):
        doubt = np.where(np.isfinite(errors), SURE * errors, np.abs(values) / 2)  # squares overflow before values do
        rates = (np.diff(values) + doubt[1:]) / np.diff(reach)
    rates = np.where(values[1:] == -np.inf, -np.inf, rates)
    falls = bool((rates < -tolerance).all() and rates[-1] <= KEPT * rates[0])
    return Ray(direction, reach, values, violation) if stays and falls else None


def _feasible(sub: Subproblem, x: Array, at, tolerance: float) -> tuple[Array, _Point]:
    """Gauss-Newton steps towards the constraints, in X."""
    seen = at(x)
    for _ in range(ROUNDS):
        excess = _excess(sub, seen.constraint)
        size = float(np.linalg.norm(excess))
        if size <= tolerance / 2 or not (np.isfinite(size) and np.isfinite(seen.jacobian).all()):
            break
        broken = excess != 0
        x = _project(sub, x - np.linalg.lstsq(seen.jacobian[broken], excess[broken], rcond=None)[0])
        seen = at(x)
    return x, seen


def _recession(sub: Subproblem, x: Array, step: Array, seen: _Point) -> Array | None:
    """The unit direction of a step in the recession cone of X, without what the constraints would object to."""
    d = step
    for _ in range(ROUNDS):
        length = float(np.linalg.norm(d))
        if not np.isfinite(length) or length == 0 or not np.isfinite(seen.jacobian).all():
            return None
        d = d / length
        bound = seen.jacobian @ d
        binding = ~sub.inequality | (bound > 0)
        if binding.any():
            rows = seen.jacobian[binding]
            d = d - np.linalg.lstsq(rows, rows @ d, rcond=None)[0]
        far = LENGTHS[-1] * max(1.0, float(np.linalg.norm(x)))
        d = (_project(sub, x + far * d) - x) / far
    length = float(np.linalg.norm(d))
    return d / length if length > KEPT else None


def _excess(sub: Subproblem, constraint: Array) -> Array:
    return np.where(sub.inequality, np.maximum(constraint, 0), constraint)


def _project(sub: Subproblem, x: Array) -> Array:
    return sub.project(np.concatenate([x, np.zeros(int(sub.inequality.sum()))]))[: sub.parameters]


def _is_inside(sub: Subproblem, x: Array, dtype) -> bool:
    moved = float(np.linalg.norm(_project(sub, x) - x))
    return moved <= ROUNDINGS * float(np.finfo(dtype).eps) * max(1.0, float(np.linalg.norm(x)))


def _look(sub: Subproblem, x: Array, key: tuple[int, ...]) -> tuple[_Point, Tally]:
    """f, c and J at x in the problem's units, with slacks left out."""
    if sub.looks is not None:
        before = sub.looks.tally
        at = sub.looks.at(x)
        return _Point(at.objective, 0.0, at.gradient, at.constraint, at.jacobian), sub.looks.tally - before
    z = np.concatenate([x, np.zeros(int(sub.inequality.sum()))]).astype(np.asarray(sub.lagrangian.multipliers).dtype)
    seen, work = sampled_look(sub.lagrangian, z, z, words(*key), np.int32(SMALLEST_RESET))
    estimate, size = seen.estimate, sub.parameters
    return _Point(
        float(estimate.objective) / sub.factor,
        float(np.sqrt(float(estimate.objective_variance))) / sub.factor,
        np.asarray(estimate.objective_gradient, np.float64)[:size] / sub.factor,
        np.asarray(estimate.constraint, np.float64) / sub.scale,
        np.asarray(estimate.jacobian, np.float64)[:, :size] / sub.scale[:, None],
    ), work.tally()

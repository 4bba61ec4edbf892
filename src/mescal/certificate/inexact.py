"""Curvature on a cone that is itself only known up to errors: of H, of the Jacobian, of the multipliers of the bounds of X.

With errors |H - H'| <= h, |J - J'| <= e (operator norms; primes are the truth), and multipliers of bounds known up to m:

- lower end: every d of the true cone has |A d| <= e |d|, A = [J, S] as estimated, so that for every r > 0
  min d'H'd over the true cone  >=  min (d'Hd + r |A d|^2)  -  r e^2  -  h,  the minimum taken without A d = 0.
  No rank and no angle is needed. Bounds count as strongly active only if their multipliers are with m taken off, and
  curved boundaries bend by no more than that: the cone is then no smaller than the true one.
- upper end: a unit direction u on a face of the set's tangent cone has a direction of the true cone on that face within
  t = (|A u| + e) / (sigma - e), sigma the smallest singular value of A on the face, if the conditions that are strict at u stay
  so: min d'H'd <= (u'H'u + (2 t + t^2) |H'|) / (1 - t^2 where that is positive). Otherwise there is no upper end.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from .cones import Cone, Curvature
from .second_order import SLOW, relaxed_cone, relaxed_rows
from .situation import Situation

PENALTIES = (
    1.0,
    4.0,
    16.0,
)  # of the relaxation, in units of |H| / (e sigma): best on a subspace; for cones with bounds, larger
ON_FACE = 1e-9  # a unit direction this close to a condition lies on its face
MOVED = (
    2.0  # a multiplier moves by at most so much more than the gradient: twice on a simplex, where a mean is taken off
)


@dataclass(frozen=True)
class Errors:
    """Bounds on the errors of H and J in operator norm, and of the gradient of the Lagrangian."""

    hessian: float
    jacobian: float
    gradient: float


Evaluate = Callable[[Situation, float | None], Curvature]


def lower_end(
    name: str, situation: Situation, found: Curvature, evaluate: Evaluate, norm: float, errors: Errors
) -> float:
    """A lower bound for the truth. `evaluate(situation, r)` is the curvature on this cone, relaxed by r if given."""
    if name == "whole":
        across = errors.jacobian * (2 * situation.length + errors.jacobian)
        return found.lower - errors.hessian - situation.penalty * across
    cautious = _doubted(name, situation, errors, -1)
    if errors.jacobian == 0:
        return (found if cautious is situation else evaluate(cautious, None)).lower - errors.hessian
    values = np.linalg.svd(relaxed_rows(name, cautious, SLOW), compute_uv=False)
    counted = values[values > 1e-10 * values.max(initial=0.0)]
    unit = max(norm, 1e-300) / (errors.jacobian * counted.min(initial=np.inf)) if counted.size else 0.0
    error = errors.jacobian * (situation.loosened**0.5 if name == "critical" else 1.0)
    relaxed = (evaluate(cautious, r * unit).lower - r * unit * error**2 for r in PENALTIES)
    return max(relaxed) - errors.hessian


def upper_end(
    name: str, situation: Situation, candidates: Iterable[tuple[np.ndarray, float]], norm: float, errors: Errors
) -> float:
    """An upper bound for the truth, inf where there is none.

    `candidates` are unit directions of the cone, each with an upper bound for u'H'u; `norm` is an upper bound for |H'|.
    """
    if name == "whole":
        return min((c + _penalised(situation, u, errors) for u, c in candidates), default=np.inf)
    bold = _doubted(name, situation, errors, 1)
    bold = replace(bold, face=bold.firm)  # what errors may keep from being let go is held
    (cone, bending), rows = relaxed_cone(name, bold, 1.0), relaxed_rows(name, bold, 1.0)
    norm = norm + float(bending.max(initial=0.0))
    upper = np.inf
    for u, curvature in candidates:
        lifted = _lifted(u, cone.size, rows)
        t = _distance(lifted, cone, rows, errors.jacobian)
        if t < 1:
            value = curvature + float(bending @ u[: bending.size] ** 2) + (2 * t + t**2) * norm
            # a projection is no longer than u, its part in x may be, by t
            shortest, longest = ((1 - t) ** 2, (1 + t) ** 2) if name == "critical" else (1 - t**2, 1.0)
            upper = min(upper, value / longest if value < 0 else value / shortest)
    return upper


def _lifted(u: np.ndarray, size: int, rows: np.ndarray) -> np.ndarray:
    """A direction in x with the slacks that its rows leave it, where the cone has more."""
    if size == u.size:
        return u
    slacks = rows[:, u.size :]
    return np.concatenate([u, np.maximum(-(rows[:, : u.size] @ u) @ slacks, 0.0) / (slacks**2).sum(axis=0)])


def _doubted(name: str, situation: Situation, errors: Errors, sign: int) -> Situation:
    """What pushes on the critical cone with all errors taken off, or added."""
    tangent = situation.tangent
    bounded = tangent is not None and (tangent.lower.any() or tangent.upper.any() or len(tangent.inequalities))
    if name != "critical" or not (bounded or situation.at_zero.any()):
        return situation
    return replace(situation, doubt=sign * MOVED * errors.gradient, spread=sign * errors.jacobian)


def _penalised(situation: Situation, u: np.ndarray, errors: Errors) -> float:
    return situation.penalty * (float(np.linalg.norm(situation.rows @ u)) + errors.jacobian) ** 2


def _distance(u: np.ndarray, cone: Cone, rows: np.ndarray, error: float) -> float:
    """How far the nearest direction with A'd = 0 on the face of `u` may be, A' within `error` of `rows`; inf if unknown."""
    if cone.violation(u) > ON_FACE:
        return np.inf
    if error == 0:
        return 0.0
    signed = np.flatnonzero((cone.lower | cone.upper) & cone.free)
    slopes = np.abs(cone.inequalities @ u)
    margins = np.concatenate([np.abs(u[signed]), slopes])
    free, held = cone.free.copy(), slopes <= ON_FACE
    if margins.size > 1:  # a single sign condition is void
        free[signed[np.abs(u[signed]) <= ON_FACE]] = False
    else:
        margins, held = np.zeros(0), np.zeros(len(slopes), bool)
    across = np.concatenate([cone.equalities, cone.inequalities[held]])[:, free]
    basis = np.linalg.svd(across, full_matrices=False)[2] if len(across) else across
    inside = rows[:, free] - (rows[:, free] @ basis.T) @ basis
    values = np.linalg.svd(inside, compute_uv=False)
    sigma = values.min(initial=np.inf) if len(rows) <= int(free.sum()) - len(basis) else 0.0
    if sigma <= error:
        return np.inf
    t = (float(np.linalg.norm(rows @ u)) + error) / (sigma - error)
    return t if (margins[margins > ON_FACE] >= t).all() else np.inf

"""The null space of the constraints as a cone to search: that of X, with rows of J beside it, and no slacks; and the way out."""

from dataclasses import replace

import numpy as np

from ...curvature import CriticalCone, Search
from ...oracle import Tally
from ...oracle.subproblem import Array, Seen, Subproblem
from ..base import EXHAUSTED, RUNNING, VERIFIED, Goal
from ..epoch import CURVATURE
from ..move import SURE, escape
from ..searching import MANY_ROWS, critical_cone, search_at
from .known import Known, at_multipliers, with_slack

SEARCH, ESCAPE = 1, 2  # what random numbers of an epoch are for, beside those of the single loop


def null_cone(sub: Subproblem, seen: Seen, at: Known, weak: float) -> CriticalCone:
    """The critical cone in x: that of X, J_j v = 0 for equalities and strongly active rows, J_j v <= 0 for weakly active ones."""
    cone, d = critical_cone(sub, seen, weak), sub.parameters
    active = ~sub.inequality
    active[sub.inequality] = at.z[d:] <= 0
    strong = ~sub.inequality | (active & (at.multipliers * sub.scale > weak))
    pad = lambda rows: np.concatenate([rows, np.zeros((len(rows), len(at.z) - d))], axis=1)
    rows = pad(at.jacobian[active & ~strong])
    lengths = np.linalg.norm(rows, axis=1)
    own = cone.bounds < d
    return replace(
        cone,
        free=np.concatenate([cone.free[:d], np.zeros(len(at.z) - d, bool)]),
        equal=np.concatenate([cone.equal, pad(at.jacobian[strong])]),
        bounds=cone.bounds[own],
        signs=cone.signs[own],
        rows=np.concatenate([cone.rows, rows[lengths > 0] / lengths[lengths > 0, None]]),
    )


def as_seen(sub: Subproblem, at: Known) -> Seen:
    """As searches see a point."""
    rows = np.concatenate([at.jacobian, sub.scale[:, None] * sub.columns], axis=1)
    slope = np.concatenate([at.gradient, np.zeros(rows.shape[1] - sub.parameters)]) + at.multipliers @ rows
    return Seen(
        at.z,
        at.value,
        at.objective,
        slope,
        with_slack(sub, at),
        at.multipliers,
        at.stationarity,
        np.inf,
        rows,
        at.noise[0],
    )


def left_along(
    search: Search, sub: Subproblem, at: Known, beta: float, goal: Goal, seed: tuple[int, ...]
) -> tuple[Array, int, float, Tally]:
    """Where to go on, the status, the curvature that was seen, and the work, at a point that is stationary and feasible."""
    error = SURE * float(np.sqrt(float(at.noise[0]) / max(1, goal.large_batch)))
    weak = max(goal.weak, goal.gradient) + error
    free = at_multipliers(sub, at.multipliers, 0.0)
    seen = as_seen(sub, at)
    cone = null_cone(free, seen, at, weak)
    if goal.judged and cone.weak <= MANY_ROWS:
        return at.z, VERIFIED, float("nan"), Tally()  # the judge looks for negative curvature, and says where
    batch, tolerance = goal.curvature_batch, CURVATURE * goal.curvature
    found, looked = search_at(search, free, seen, tolerance, (*seed, SEARCH), batch, weak, cone)
    if found.direction is None:
        return at.z, VERIFIED, found.curvature, looked
    d, direction = sub.parameters, found.direction.copy()
    active = at.z[d:] <= 0
    direction[d:] = np.where(active, np.maximum(0, -(at.jacobian @ direction[:d] / sub.scale)[sub.inequality]), 0)
    moved, tried = escape(
        at_multipliers(sub, at.multipliers, beta), at.z, direction, found.curvature, (*seed, ESCAPE), batch
    )
    stays = VERIFIED if goal.judged else EXHAUSTED
    return moved, stays if np.array_equal(moved, at.z) else RUNNING, found.curvature, looked + tried

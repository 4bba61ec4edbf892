"""f and c without slacks at a point, as the single loop knows them: resets, multipliers of least squares, and the merit of a move.

    lam = those of the tangential step,   L(x; lam, beta) at the best slacks,   s = max(0, -c) where lam is not positive

A reset is exact on finite populations; on a stream it is one batch, whose value is the change of L since the reset before, and as
sharp as the residuals of the one before ask for, or the tolerance where these are small.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from ...compiling import leaf
from ...oracle import Tally
from ...oracle.draw import words
from ...oracle.subproblem import Array, Subproblem
from ...sets import Reals
from ..base import Goal
from ..epoch import STEEPEST
from ..move import ROUNDINGS, SURE
from ..reset import NORM_TEST, SMALLEST_RESET, VERIFY, sampled_look
from .linear_step import Face, is_regular, linear_step

FALLEN = 0.9  # of the violation before: a fall that lets beta rise instead of a step back
RISE = 4.0  # of beta
ACCURACY = 1 / 3  # of what is left of a tolerance on a stream: the standard error of a reset that makes a candidate ...
SHARPEST = 1 << 21  # ... within so many thetas


class Known(NamedTuple):
    """f and c, without slacks, at a point, in the solver's units: estimates or exact; multipliers, and what follows from them."""

    z: Array
    objective: Any
    constraint: Array
    gradient: Array  # of f in x
    jacobian: Array  # in x
    multipliers: Array
    stationarity: Any  # |P_T(-(g + J'lam))| in x
    value: Any  # of L, from an arbitrary zero on a stream
    noise: (
        Array  # per theta: of the gradient of the Lagrangian, and of c in the problem's units; 0 where they are exact
    )
    regular: Any  # whether the working rows are independent


def at_multipliers(sub: Subproblem, multipliers: Array, penalty: float) -> Subproblem:
    """The subproblem at other multipliers and another penalty."""
    dtype = sub.lagrangian.penalty.dtype
    lagrangian = replace(sub.lagrangian, multipliers=leaf(multipliers, dtype), penalty=leaf(penalty, dtype))
    return Subproblem(lagrangian, sub.looks, True)


def face_of(sub: Subproblem) -> Face:
    """X as a step sees it."""
    if isinstance(sub.form.domain, Reals):
        return Face(None, lambda x, columns: columns)
    slack = np.zeros(int(sub.inequality.sum()))
    return Face(
        lambda x: sub.project(np.concatenate([x, slack]))[: len(x)],
        lambda x, columns: np.stack([sub.project_on_face_of(x, column) for column in columns.T], axis=1),
    )


def take_reset(
    sub: Subproblem, z: Array, before: Known | None, beta: float, smoothness: float, n: int, key: tuple[int, ...]
) -> tuple[Known, float, Tally]:
    """(g, c, J) at z, the value of L at the multipliers of the reset before, and what that value may be off by."""
    d, lam = sub.parameters, sub.multipliers if before is None else before.multipliers
    x, slack = z[:d].astype(np.float64), z[d:].astype(np.float64)
    shift = sub.scale * sub.spread(slack)
    if sub.looks is not None:
        tally = sub.looks.tally
        at = sub.lift(sub.looks.at(x, rounded=False), np.zeros(len(slack)))
        f, c, g, jacobian = at.objective, at.constraint, at.gradient[:d], at.jacobian[:, :d]
        work, noise, value = sub.looks.tally - tally, np.zeros(2), merit(sub, f, c, lam, beta)
        off = 0.0
        if before is not None:
            value = float(before.value) + value - merit(sub, float(before.objective), before.constraint, lam, beta)
            unit = ROUNDINGS * float(np.finfo(z.dtype).eps)
            off = unit * float(abs(f) + np.abs(g + lam @ jacobian) @ np.abs(x) + np.abs(lam) @ np.abs(c))
    else:
        own = at_multipliers(sub, lam, beta)
        start = z if before is None else settled(sub, before.z, before.constraint, lam, beta)
        seen, spent = sampled_look(own.lagrangian, z, start, words(*key), np.int32(n))
        at = jax.tree.map(lambda part: np.asarray(part, np.float64), seen)
        found = at.estimate
        f, c, g = float(found.objective), found.constraint - shift, found.objective_gradient[:d]
        jacobian, work = found.jacobian[:, :d], spent.tally()
        noise = np.stack([at.noise.stationarity, at.noise.constraint])
        value = 0.0 if before is None else float(before.value) + float(at.change)
        off = SURE * float(at.error)
    known = Known(z, f, c, g, jacobian, lam, np.inf, value, noise, True)
    return with_multipliers(sub, known, smoothness) if is_finite(known) else known, off, work


def with_multipliers(sub: Subproblem, at: Known, smoothness: float) -> Known:
    """With those of the tangential step, the slacks that they go with, and what is left of the gradient."""
    d, face = sub.parameters, face_of(sub)
    x = at.z[:d].astype(np.float64)
    allowed = np.where(sub.inequality, np.maximum(-at.constraint, 0), 0.0)
    step = linear_step(face, x, at.gradient, at.jacobian, allowed, ~sub.inequality, max(smoothness, 1 / STEEPEST))
    lam = step.multipliers
    slack = np.maximum(0, -at.constraint / sub.scale)[sub.inequality] * ~(lam > 0)[sub.inequality]
    z = np.concatenate([x, slack]).astype(at.z.dtype)
    left = sub.project_tangent(z, np.concatenate([-(at.gradient + lam @ at.jacobian), np.zeros(len(slack))]))[:d]
    broken = sub.inequality & (at.constraint > 0) & ~(lam > 0)
    regular = step.regular and is_regular(face, x, at.jacobian[~sub.inequality | broken | (lam > 0)])
    return at._replace(z=z, multipliers=lam, stationarity=float(np.linalg.norm(left)), regular=regular)


def room(sub: Subproblem, c: Array, lam: Array) -> Array:
    """The violation at the best slacks, those of rows with positive multipliers at zero."""
    return np.where(sub.inequality & ~(lam > 0), np.maximum(c, 0), c)


def with_slack(sub: Subproblem, at: Known) -> Array:
    """c with the slacks of z."""
    return at.constraint + sub.scale * sub.spread(at.z[sub.parameters :].astype(np.float64))


def settled(sub: Subproblem, z: Array, c: Array, lam: Array, beta: float) -> Array:
    """z with the slacks that minimise L for c without slacks as given."""
    rows, d = sub.inequality, sub.parameters
    if not rows.any():
        return z
    slack = np.maximum(0, -(c[rows] + lam[rows] / beta) / sub.scale[rows])
    return np.concatenate([z[:d], slack.astype(z.dtype)])


def merit(sub: Subproblem, f: float, c: Array, lam: Array, beta: float) -> float:
    """L at the best slacks."""
    equal = ~sub.inequality
    bent = np.maximum(0, lam + beta * c)[sub.inequality] ** 2 - lam[sub.inequality] ** 2
    return float(f + (lam[equal] + beta / 2 * c[equal]) @ c[equal] + bent.sum() / (2 * beta))


def may_rise(sub: Subproblem, there: Known, before: Known, beta: float, smoothness: float) -> bool:
    """Whether a larger beta is the answer to a step that L does not like: |c| fell, and beta is below what the step can need.

    That is L/sigma^2, sigma the smallest singular value of J; with L at least one, the scale that the solver's units have.
    """
    sizes = [float(np.linalg.norm(room(sub, at.constraint, before.multipliers))) for at in (there, before)]
    if not sizes[0] <= FALLEN * sizes[1]:
        return False
    values = np.linalg.svd(before.jacobian, compute_uv=False)
    return bool(len(values)) and beta * float(values[-1]) ** 2 <= max(smoothness, 1.0)


def is_finite(at: Known) -> bool:
    """Whether every number that was looked at is."""
    return all(
        bool(np.isfinite(part).all()) for part in (at.objective, at.constraint, at.gradient, at.jacobian, at.value)
    )


def thetas(sub: Subproblem, before: Known | None, goal: Goal, failures: int) -> int:
    """Thetas of the next reset: with errors of half the last residuals; where these are small, as the tolerance asks for."""
    if sub.population is not None:
        return goal.large_batch
    if before is None:
        return min(goal.large_batch, SMALLEST_RESET)
    slope, violation = float(before.stationarity), sub.violation(with_slack(sub, before))
    if slope <= closeness(sub) * goal.gradient and violation <= goal.ready:
        return sharpest(sub, before, goal)
    slope = max(slope, goal.gradient)
    errors = NORM_TEST * np.asarray([slope, max(violation, goal.ready * slope / goal.gradient)])
    wanted = float((before.noise / errors**2).max()) * 4.0 ** min(failures, 12)
    least = min(SMALLEST_RESET, goal.large_batch)
    return int(np.clip(wanted, least, goal.large_batch)) if np.isfinite(wanted) else goal.large_batch


def closeness(sub: Subproblem) -> float:
    """Of the tolerance: what a candidate's stationarity may be; less on streams, where the judge adds his own error."""
    return VERIFY if sub.population is not None else 1 - ACCURACY


def sharpest(sub: Subproblem, at: Known, goal: Goal) -> int:
    """Thetas of a reset that a candidate must stand: far fewer than the judge will look at, who is asked for nothing else."""
    if sub.population is not None:
        return goal.large_batch
    errors = ACCURACY * np.asarray([goal.gradient, goal.ready])
    wanted = float((at.noise / errors**2).max())
    return int(np.clip(wanted, SMALLEST_RESET, SHARPEST)) if np.isfinite(wanted) else SHARPEST

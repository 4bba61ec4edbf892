"""Moves that every practical solver makes: a gradient step in a diagonal metric with a trust radius, and an escape.

    x+ = P_X(x - min(1/L, R/|g_x|) g_x),  R = max(1, |x|/10);      s+ = max(0, s - g_s / (al scale^2))

The slack block of the Hessian is al times a diagonal, so slacks have their own, exact step; without it L >= al would make
the steps in x far too short. The projection stays exact in this metric. L is the secant along the solver's own steps, for free.
Inside of epochs slacks go along with x: steps are those of  min over s >= 0 of L,  whose curvature inactive rows do not enter.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..oracle import Lagrangian, Tally, Work
from ..oracle.draw import as_key, words
from ..oracle.subproblem import Array, Seen, Subproblem

RADIUS = 1.0  # trust radius while |x| <= 10, then a tenth of |x|: without one, secants from flat regions overshoot
DECAY = 0.97  # per step: how fast a smoothness that was seen once is forgotten
REACH = 8.0  # radii that an epoch may move: many steps over one flat region would else never be tested
LENGTHS = 2.0 ** -np.arange(12)  # of an escape, times max(1, |x|): both signs of each are tried
DECREASE = 1 / 8  # of |rho| r^2: what an escape of length r must bring; a quarter of what the quadratic model promises
GROUPS = 8  # independent groups of samples behind a paired difference
ROUNDINGS = 8.0  # units of rounding by which an exact value may be above another one and still count as no worse
SHORTEST = 1e-6  # of the longest move: rows nearer than that count as active
BISECTIONS = 30  # until the next row is found, to rounding
SURE = 2.0  # standard errors


def gradient_step(
    oracle: Lagrangian, z: jax.Array, gradient: jax.Array, smoothness: jax.Array, trust: jax.Array
) -> jax.Array:
    """One projected step; `trust` is the share of the natural radius that may be used."""
    (x, s), (gx, gs) = oracle.form.split(z), oracle.form.split(gradient)
    radius = trust * natural_radius(x)
    length = jnp.minimum(1 / smoothness, radius / jnp.maximum(jnp.linalg.norm(gx), jnp.finfo(z.dtype).tiny))
    return oracle.project(oracle.form.join(x - length * gx, s - gs / slack_curvature(oracle)))


def step_with_slacks(
    oracle: Lagrangian,
    z: jax.Array,
    gradient: jax.Array,
    smoothness: jax.Array,
    trust: jax.Array,
    jacobian: jax.Array | None,
    key: jax.Array,
    n: Any,
) -> tuple[jax.Array, Work]:
    """A gradient step whose slacks end where they are best for the new x, to first order; and its work.

    Slacks that are best for the old x lag one step behind, and al J'J dx of every inequality enters the gradient, inactive ones
    included: 1/L would have to be below 1/(al |J|^2). The change of c along the step is J dx where the last reset has J, else that
    of n thetas of `key`. These must not be the ones that tell the gradient's change, which would be biased by al Cov(J', J) dx / n.
    """
    moved, form = gradient_step(oracle, z, gradient, smoothness, trust), oracle.form
    rows = form.program.layout.inequality
    if not rows.any():
        return moved, Work.zero()
    (x, s), (_, gs) = form.split(z), form.split(gradient)
    landed = form.split(moved)[0]
    if jacobian is None:
        ends = jnp.stack([form.join(landed, s), z])
        values, work = jax.vmap(lambda y: oracle.constraint(y, key, n))(ends)
        change, work = values[0] - values[1], jax.tree.map(lambda leaf: leaf[0], work).times(2)
    else:
        change, work = jacobian[:, : x.size] @ (landed - x), Work.zero()
    lag = change[rows] / jnp.asarray(form.constraint_scale, z.dtype)[rows]
    return form.join(landed, jnp.maximum(0, s - gs / slack_curvature(oracle) - lag)), work


def secant(oracle: Lagrangian, change: jax.Array, step: jax.Array) -> jax.Array:
    """|dg_x| / |dx| along a step in the parameters; 0 for a step of no length."""
    (gx, _), (dx, _) = oracle.form.split(change), oracle.form.split(step)
    length = jnp.linalg.norm(dx)
    return jnp.where(length > 0, jnp.linalg.norm(gx) / jnp.maximum(length, jnp.finfo(dx.dtype).tiny), 0)


def natural_radius(x: jax.Array) -> jax.Array:
    """R = max(1, |x|/10)."""
    return RADIUS * jnp.maximum(1, jnp.linalg.norm(x) / 10)


def too_far(oracle: Lagrangian, z: jax.Array, reset: jax.Array, trust: jax.Array) -> jax.Array:
    """Whether an epoch has left the region that its next descent test can answer for: `REACH` radii around its reset."""
    x, _ = oracle.form.split(z)
    x0, _ = oracle.form.split(reset)
    return jnp.linalg.norm(x - x0) > REACH * trust * natural_radius(x0)


def slack_curvature(oracle: Lagrangian) -> Any:
    """The diagonal of the Hessian in the slacks: al scale_j^2."""
    form = oracle.form
    scale = jnp.asarray(form.constraint_scale)[form.program.layout.inequality]
    return oracle.penalty * scale**2


def best_slack(oracle: Lagrangian, z: jax.Array, constraint: jax.Array) -> jax.Array:
    """z with the slacks that minimise L for its x, given c(z) + s as it is at z: free where c is known exactly."""
    form = oracle.form
    if form.program.layout.slack_size == 0:
        return z
    x, s = form.split(z)
    rows = form.program.layout.inequality
    scale = jnp.asarray(form.constraint_scale)[rows]
    without = constraint[rows] - scale * s
    return form.join(x, jnp.maximum(0, -(without + oracle.multipliers[rows] / oracle.penalty) / scale))


def paired_differences(
    oracle: Lagrangian, points: jax.Array, z: jax.Array, key: jax.Array, n: Any
) -> tuple[jax.Array, jax.Array, Work]:
    """L(point) - L(z) for several points on the same samples: means and standard errors over independent groups."""
    each = jnp.maximum(jnp.asarray(n) // GROUPS, 2)
    stacked = jnp.concatenate([z[None], points])

    def group(i):
        values, works = jax.vmap(lambda p: oracle.value(p, jax.random.fold_in(key, i), each))(stacked)
        return values[1:] - values[0], jax.tree.map(lambda leaf: leaf[0], works)

    differences, works = jax.lax.map(group, jnp.arange(GROUPS))
    work = jax.tree.map(lambda leaf: leaf[0], works).times(GROUPS * stacked.shape[0])
    error = jnp.std(differences, axis=0, ddof=1) / jnp.sqrt(jnp.asarray(GROUPS, z.dtype))
    return jnp.mean(differences, axis=0), error, work


def rounding_of(seen: Seen) -> float:
    """What an exact value may be off by: the parts it is summed from, and z, are known to so many units of rounding."""
    parts = abs(seen.objective) + abs(seen.value - seen.objective)
    unit = ROUNDINGS * float(np.finfo(seen.z.dtype).eps)
    with np.errstate(invalid="ignore"):  # infinity times zero
        return unit * float(parts + np.abs(seen.gradient) @ np.abs(seen.z.astype(np.float64)))


def escape(
    sub: Subproblem, z: Array, direction: Array, curvature: float, key: tuple[int, ...], n: int
) -> tuple[Array, Tally]:
    """The best move along a direction of negative curvature, both signs and lengths max(1, |x|) 2^-j; z if none is sure.

    So no Hessian-Lipschitz constant is needed. Judged by exact values where there are populations alone, else by paired
    differences on n thetas. On sets, a move that would leave X is projected onto it; beside these stand the points at which the
    straight lines meet the next row. Where that is so near that no decrease can be told, going there without an increase is
    enough (the argument of SNAP: a smaller face, of which there are finitely many).
    """
    reach = max(1.0, float(np.linalg.norm(z[: sub.parameters]))) * LENGTHS
    points = [sub.project((z + r * direction).astype(z.dtype)) for r in np.concatenate([reach, -reach])]
    rows = [
        point for sign in (1.0, -1.0) if (point := _next_row(sub, z, sign * direction, float(reach[0]))) is not None
    ]
    if sub.looks is not None:
        return _exact_escape(sub, z, points, rows, curvature)
    stacked = np.stack([*points, *rows, *[z] * (2 - len(rows))])  # of one shape, for one program
    change, error, work = _compared(sub.lagrangian, stacked, z, words(*key), np.int32(n))
    change, error = np.asarray(change, np.float64), SURE * np.asarray(error, np.float64)
    lengths = np.linalg.norm((stacked - z).astype(np.float64), axis=1)
    tried = [
        Tried(stacked[i], change[i], error[i], lengths[i], i >= len(points))
        for i in range(len(stacked))
        if lengths[i] > 0
    ]
    best = chosen(tried, curvature)
    return z if best is None else best.z, work.tally()


class Tried(NamedTuple):
    """A point that an escape may go to: the change of L there, its error, how far it is, whether it lies on the next row."""

    z: Array
    change: float
    error: float
    length: float
    row: bool

    def leads_down(self, curvature: float) -> bool:
        """By as much as an escape of this length must bring."""
        return self.change + self.error <= -DECREASE * abs(curvature) * self.length**2


def chosen(tried: list[Tried], curvature: float) -> Tried | None:
    """The lowest of those that lead down enough; else of those that lead down; else the next row where nothing can be told."""
    enough = [t for t in tried if t.leads_down(curvature)]
    lower = [t for t in tried if t.change + t.error < 0]
    untold = [t for t in tried if t.row and t.change <= t.error and DECREASE * abs(curvature) * t.length**2 <= t.error]
    return min(enough or lower or untold, key=lambda t: t.change + t.error, default=None)


def _exact_escape(
    sub: Subproblem, z: Array, points: list[Array], rows: list[Array], curvature: float
) -> tuple[Array, Tally]:
    """By exact values, long moves first; once one leads down enough, until shorter ones lead down less."""
    start, work = sub.look(z)
    tried: list[Tried] = []
    lowest, rounding = np.inf, rounding_of(start)
    pairs = zip(points[: len(LENGTHS)], points[len(LENGTHS) :], strict=True)
    for pair in [*pairs, rows]:
        before = lowest
        for point in pair:
            length = float(np.linalg.norm((point - z).astype(np.float64)))
            if length > 0:
                seen, spent = sub.look(point)
                work = work + spent
                tried.append(Tried(seen.z, seen.value - start.value, rounding, length, pair is rows))
                lowest = min(lowest, tried[-1].change) if tried[-1].leads_down(curvature) else lowest
        if before < np.inf and lowest >= before:
            break
    best = chosen(tried, curvature)
    return z if best is None else best.z, work


def _next_row(sub: Subproblem, z: Array, direction: Array, longest: float) -> Array | None:
    """Where the line from z meets the next row of X or slack; None where it leaves X at once, or not within reach."""
    if _inside(sub, z, direction, longest) or not _inside(sub, z, direction, SHORTEST * longest):
        return None
    low, high = SHORTEST * longest, longest
    for _ in range(BISECTIONS):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if _inside(sub, z, direction, middle) else (low, middle)
    return sub.project((z + high * direction).astype(z.dtype))


def _inside(sub: Subproblem, z: Array, direction: Array, length: float) -> bool:
    """Whether a projection leaves z + length direction where it is, to rounding."""
    point = (z + length * direction).astype(z.dtype)
    moved = np.abs((sub.project(point) - point).astype(np.float64))
    return bool((moved <= 8 * np.finfo(z.dtype).eps * (np.abs(z) + length)).all())


@compiled
def _compared(oracle: Lagrangian, points: jax.Array, z: jax.Array, given: jax.Array, n: jax.Array) -> Any:
    return paired_differences(oracle, points, z, as_key(given), n)

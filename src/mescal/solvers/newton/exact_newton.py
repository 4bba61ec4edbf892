"""Newton's method on finite populations where a pass is cheap: on the host, in float64, around the judge's own programs.

    phi(x) = min over s >= 0 of L(x, s),     q(d) = g.d + d'Hd/2,     H = grad^2 f + w.grad^2 c + al J_A'J_A,    w = lam + al c

A are the equalities and the inequalities whose slack is zero: slacks are eliminated, as c being known allows.

1. The first steps of a solve are quasi-Newton steps (`quasi_newton`): they cost one look each. A solve that they do not finish goes
   on with the true Hessian: q is minimised in a ball by conjugate gradients (`trust_region`), negative curvature followed. Where
   the Hessian is formed, A is what holds at the end of the step (`_best_step`): with what holds at its start, steps run into
   one constraint and out of another by turns.
2. The length of a step is chosen by exact values. The look at the point that it leads to is the next iteration's.
3. On sets, steps are taken on the face that a projected gradient step ends on; what that step does across the face is kept
   (two-metric projection, Bertsekas 1982). Where the boundary is curved, its curvature is part of the model.

What is compiled is a look, and a Hessian, or its products where forming it would cost more: the certificate needs the same.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np

from ...curvature import Lanczos, Search
from ...oracle import Tally
from ...oracle.subproblem import Array, Seen, Subproblem
from ...sets import Reals
from ..base import (
    BROKEN,
    EXHAUSTED,
    FARAWAY,
    RUNAWAY,
    RUNNING,
    STATIONARY,
    VERIFIED,
    Goal,
    Memory,
    Outcome,
    Progress,
    SubSolver,
    fresh_progress,
    next_progress,
)
from ..epoch import BACKTRACK, CURVATURE, REGAIN
from ..move import REACH, escape, rounding_of
from ..reset import VERIFY
from ..searching import MANY_ROWS, critical_cone, search_at
from .quasi_newton import Pairs
from .trust_region import Step, truncated_cg

FORCING = 0.01  # of |g|: a residual that ends CG ...
FINAL = 0.25  # ... or this of the tolerance
ARMIJO = 1e-4  # of the model's decrease: what a step must bring
SHRINK = (0.05, 0.5)  # factors on a step that does not bring it: as far as a cubic through both ends says
TRIES = 12  # lengths of a step
PATIENCE = 20  # quasi-Newton steps of a solve
IDLE = 8  # such steps end a solve: what is left is rounding
LEAST_TRUST = 2.0**-10  # of the natural radius, at the start of a solve: what shrank it further belonged to another L
SMALLEST_TRUST = 1e-12  # of the natural radius: below it nothing leads down
ROUNDS = 8  # of a step, each with the constraints that the one before ended on
DENSE = 256  # parameters up to which the Hessian is formed; on spambase (57) and madelon (500) either way takes as long


class NewtonState(NamedTuple):
    """Progress, memory, and the present point."""

    progress: Progress
    memory: Memory
    at: Seen
    first_value: Array
    pairs: Pairs
    idle: Array  # steps in a row that brought neither the value nor the gradient down by more than rounding


class Model(NamedTuple):
    """phi beside x:  g.d + d'Hd/2 + (al/2) sum_j t_j^2,  t = c + lam/al + Jd, with max(0, t_j) where the slack of j is free.

    g and H are those of f + w.c without what the rows of J contribute to phi.
    """

    product: Callable[[Array], Array]
    gradient: Array
    rows: Array
    values: Array  # t at d = 0
    active: Array  # the rows that count there
    inequality: Array
    penalty: float

    def counted(self, d: Array) -> Array:
        """The rows that count at the end of a step."""
        return ~self.inequality | (self.values + self.rows @ d > 0)

    def rise(self, d: Array) -> float:
        """phi(x + d) - phi(x)."""
        there, here = (self.values + self.rows @ d)[self.counted(d)], self.values[self.active]
        return float(self.gradient @ d + d @ self.product(d) / 2 + self.penalty / 2 * (there @ there - here @ here))

    def step(self, sub: Subproblem, landed: Array, active: Array, radius: float, enough: float, cap: int) -> Step:
        """What minimises the quadratic function that phi is where these rows count, in a ball on a face."""
        rows = self.rows[active]
        slope = self.gradient + self.penalty * self.values[active] @ rows

        def product(v: Array) -> Array:
            return sub.project_on_face_of(landed, self.product(v) + self.penalty * (rows @ v) @ rows)

        return truncated_cg(product, sub.project_on_face_of(landed, slope), radius, enough, cap)


class ExactNewton(SubSolver):
    """What `newton-cg` is on a population that is looked at whole. See there for its settings."""

    products: int = eqx.field(static=True, default=40)
    search: Search = Lanczos()

    precise: ClassVar[bool] = True

    @property
    def name(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """That of the solver whose part it is."""
        return "newton-cg"

    def plan(self, goal: Goal, dtype: Any) -> Goal:
        """The goal itself: nothing is compiled with it."""
        return goal

    def init(self, sub: Subproblem, z: Array, plan: Goal, memory: Memory, key: Array) -> NewtonState:
        """A first look."""
        z = sub.project(z)
        at, work = sub.look(z)
        memory = Memory.of(memory.smoothness, memory.floor, max(float(memory.trust), LEAST_TRUST), np.float64)
        progress = fresh_progress(z, key)._replace(work=work)
        return NewtonState(
            progress, memory, at.arrays(), np.asarray(at.value), Pairs.none(sub.parameters), np.asarray(0)
        )

    def step(self, sub: Subproblem, state: NewtonState, plan: Goal, goal: Goal) -> NewtonState:
        """One Newton step, or what to do at a stationary point."""
        at, progress = state.at, state.progress
        steps, trust = int(progress.steps) + 1, float(state.memory.trust)
        work, looked, curvature, escaped = progress.work.tally(), Tally(), float(progress.curvature), 0
        status, smoothness, floor = RUNNING, float(state.memory.smoothness), float(state.memory.floor)
        pairs, idle = state.pairs, int(state.idle)
        if not at.finite:
            status = BROKEN
        elif at.stationarity <= VERIFY * goal.gradient:
            status, at, curvature, looked = self._at_stationary(sub, at, progress, goal)
            escaped, work = int(status == RUNNING), work + looked
        else:
            moved, smoothness, trust, spent = self._move(sub, state, goal, trust, smoothness)
            work = work + spent
            if moved is None:
                trust /= BACKTRACK
                status = EXHAUSTED if trust < SMALLEST_TRUST else RUNNING
            else:
                step, change = (getattr(moved, part) - getattr(at, part) for part in ("z", "gradient"))
                pairs = pairs.add(step[: sub.parameters], change[: sub.parameters])
                gained = at.value - moved.value > rounding_of(at) or moved.stationarity < at.stationarity
                idle = 0 if gained else idle + 1
                at, trust = moved, min(1.0, trust)
                status = EXHAUSTED if idle >= IDLE else RUNNING
        if status == RUNNING and steps >= goal.steps:
            status = EXHAUSTED
        if status == RUNNING and float(np.linalg.norm(at.z[: sub.parameters])) > goal.far:
            status = FARAWAY
        if status == RUNNING and steps > 1 and float(np.linalg.norm(at.constraint)) > goal.runaway:
            status = RUNAWAY
        progress = next_progress(progress, at.z, steps, status, work, looked, at.stationarity, curvature, escaped)
        memory = Memory.of(smoothness, floor, trust, np.float64)
        return NewtonState(progress, memory, at.arrays(), state.first_value, pairs, np.asarray(idle))

    def _at_stationary(
        self, sub: Subproblem, at: Seen, progress: Progress, goal: Goal
    ) -> tuple[int, Seen, float, Tally]:
        """Whether it ends here; else where negative curvature leads to."""
        weak, judged = max(goal.weak, goal.gradient), sub.violation(at.constraint) <= goal.ready
        if judged and critical_cone(sub, at, weak).weak <= MANY_ROWS:
            return VERIFIED, at, float(progress.curvature), Tally()  # the judge looks, with the same Hessian
        if not judged and not sub.stuck(at):
            return STATIONARY, at, float(progress.curvature), Tally()
        seed = (*(int(word) for word in progress.key), int(progress.steps))
        found, looked = search_at(self.search, sub, at, CURVATURE * goal.curvature, seed, goal.curvature_batch, weak)
        if found.direction is None:
            return VERIFIED, at, found.curvature, looked
        moved, tried = escape(sub, at.z, found.direction, found.curvature, seed, goal.curvature_batch)
        if np.array_equal(moved, at.z):
            return VERIFIED if judged else EXHAUSTED, at, found.curvature, looked + tried
        there, spent = sub.look(moved)
        return RUNNING, there, found.curvature, looked + tried + spent

    def _move(self, sub: Subproblem, state: NewtonState, goal: Goal, trust: float, smoothness: float):
        """Where a step leads that leads down (None if none does), the smoothness that was seen, the next trust, and the work."""
        assert sub.looks is not None
        at, before, d = state.at, sub.looks.tally, sub.parameters
        x, g = at.z[:d], at.gradient[:d]
        landed, across = _landed(sub, x, g, smoothness, trust)
        slope, radius = sub.project_on_face_of(landed, g), REACH * trust * natural_radius(x)
        if int(state.progress.steps) < PATIENCE:
            step = _quasi_newton(sub, state.pairs, landed, slope, radius)
            decrease = -float(slope @ step.d)
        else:
            enough = max(FORCING * float(np.linalg.norm(slope)), FINAL * goal.gradient)
            model = self._model(sub, at, boundary_curvature(sub, landed, g))
            if d <= DENSE:
                step, decrease = _best_step(sub, model, landed, slope, radius, enough)
            else:
                step = model.step(sub, landed, model.active, radius, enough, self.products)
                decrease = -float(slope @ step.d + step.d @ step.product / 2)
            smoothness = step.top if step.top > 0 else smoothness
        moved, length = self._along(sub, at, x + across, step, slope, decrease)
        if length == 1 or step.boundary:
            trust *= REGAIN * length if moved is not None else 1.0
        return moved, smoothness, trust, sub.looks.tally - before

    def _along(
        self, sub: Subproblem, at: Seen, start: Array, step: Step, slope: Array, decrease: float
    ) -> tuple[Seen | None, float]:
        """Where a step, made shorter until it leads down, leads to, and how much of it was taken; (None, 0) where none does."""
        falling, length, rounding = float(slope @ step.d), 1.0, rounding_of(at)
        for _ in range(TRIES):
            there, _ = sub.look(sub.project(np.concatenate([start + length * step.d, at.z[sub.parameters :]])))
            # stationarity still tells points apart whose values are equal to rounding
            closer = there.stationarity < at.stationarity
            if there.finite and there.value < at.value - ARMIJO * length * decrease + rounding * closer:
                return there, length
            length *= _shorter(at, there, falling, step.d, length)
        return None, 0.0

    def _model(self, sub: Subproblem, at: Seen, bending: Array) -> "Model":
        """What phi is beside x: H without the rows of constraints is a matrix where it is formed, else its products."""
        looks, d = sub.looks, sub.parameters
        assert looks is not None
        x, weight, factor = at.z[:d], at.multipliers * sub.scale / sub.factor, sub.factor
        if d <= DENSE:
            matrix = factor * looks.hessian(x, weight) + np.diag(bending)
            product = matrix.__matmul__
        else:
            product = lambda v: factor * looks.hessian_times(x, weight, v) + bending * v
        rows, slack = np.asarray(at.jacobian)[:, :d], sub.spread(at.z[d:])
        return Model(
            product,
            gradient=at.gradient[:d] - at.multipliers @ rows,
            rows=rows,
            values=at.multipliers / sub.penalty - sub.scale * slack,
            active=~sub.inequality | (slack <= 0),
            inequality=sub.inequality,
            penalty=sub.penalty,
        )

    def outcome(self, sub: Subproblem, start: Array, state: NewtonState, plan: Goal, goal: Goal):
        """The present point; nothing is left to measure."""
        at = state.at
        outcome = Outcome(
            z=at.z,
            value=at.value,
            first_value=state.first_value,
            objective=float(at.objective),
            constraint=at.constraint,
            multipliers=at.multipliers,
            stationarity=at.stationarity,
            regularity=at.regularity,
            step=1 / max(float(state.memory.smoothness), 1e-300),
            batch=goal.large_batch,
            large_batch=goal.large_batch,
        )
        return outcome, Tally()


def _best_step(
    sub: Subproblem, model: Model, landed: Array, slope: Array, radius: float, enough: float
) -> tuple[Step, float]:
    """Of the steps with the rows that count at the start, and then with those that counted at the end of the last one: the
    lowest of those that go down at their start; and how far down it is. The first one does.
    """
    found, tried, active = [], set(), model.active
    while len(tried) < ROUNDS and active.tobytes() not in tried:
        tried.add(active.tobytes())
        step = model.step(sub, landed, active, radius, enough, 2 * sub.parameters)
        if not found or slope @ step.d < 0:
            found.append((-model.rise(step.d), step))
        active = model.counted(step.d)
    decrease, step = max(found, key=lambda one: one[0])
    return step, decrease


def boundary_curvature(sub: Subproblem, landed: Array, g: Array) -> Array:
    """The diagonal that the boundary of X adds to the Hessian on a face: its curvature times the push of -g against it.

    A step along the tangent plane of a ball of radius R is bent back to it, which costs (-g.n) |d|^2 / (2 R).
    """
    domain = sub.form.domain
    tangent = None if isinstance(domain, Reals) else domain.tangent_cone(sub.form.program.parameters.arrays(landed))
    if tangent is None or not tangent.curvature.any():
        return np.zeros(len(landed))
    return tangent.bending(np.maximum(0, -(tangent.inequalities @ g)))


def _shorter(at: Seen, there: Seen, falling: float, d: Array, length: float) -> float:
    """The factor on a length that leads nowhere: to the minimiser of the cubic through values and slopes at both ends."""
    least, most = SHRINK
    if not there.finite:
        return least
    rising = float(there.gradient[: len(d)] @ d)
    bend = falling + rising - 3 * (at.value - there.value) / -length
    inside = bend**2 - falling * rising
    if not inside >= 0:
        return most
    root = np.sqrt(inside)
    below = rising - falling + 2 * root
    return float(np.clip(1 - (rising + root - bend) / below, least, most)) if below > 0 else most


def natural_radius(x: Array) -> float:
    """max(1, |x|/10)."""
    return max(1.0, float(np.linalg.norm(x)) / 10)


def _landed(sub: Subproblem, x: Array, g: Array, smoothness: float, trust: float) -> tuple[Array, Array]:
    """A point of the face that a projected gradient step ends on, and the part of that step that leaves the face of x."""
    slack = np.zeros(int(sub.inequality.sum()))
    length = min(1 / max(smoothness, 1e-300), trust * natural_radius(x) / max(float(np.linalg.norm(g)), 1e-300))
    landed = sub.project(np.concatenate([x - length * g, slack]))[: len(x)]
    across = landed - x
    return landed, across - sub.project_on_face_of(landed, across)


def _quasi_newton(sub: Subproblem, pairs: Pairs, landed: Array, slope: Array, radius: float) -> Step:
    """An L-BFGS step on a face, no longer than the radius; a first one of length 1 at most."""
    direction = sub.project_on_face_of(landed, pairs.direction(slope))
    if not direction @ slope < 0:
        direction = -slope
    length = float(np.linalg.norm(direction))
    longest = radius if int(pairs.count) else min(radius, 1.0)
    boundary = length > longest
    d = direction * (longest / length) if boundary else direction
    return Step(d, np.zeros_like(d), boundary, False, 0.0)

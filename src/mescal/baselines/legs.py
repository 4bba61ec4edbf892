"""A baseline as a method of the loop: legs of compiled steps, a measurement after each, and what the baseline makes of it.

Nothing is scaled, and no iterate is taken back: what the methods do not say is not done for them.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..certificate import Certificate
from ..oracle.draw import words
from ..oracle.subproblem import Subproblem
from ..problem import Problem
from ..run.between_solves import RESET_ACCURACY, SAMPLED, SMALLEST_RESET, moved_inwards, thetas_for
from ..run.loop import Run
from ..run.scaling import Scales
from ..run.settings import Settings
from ..run.setup import Setup, set_up
from ..run.state import Leg, Reading, State
from ..run.status import Status
from ..solvers.base import BROKEN, EXHAUSTED, STATIONARY, VERIFIED, Outcome
from ..solvers.drive import compiled_advance, compiled_begin
from ..solvers.move import natural_radius
from ..solvers.reset import regularity, sampled_look
from .bounds import look_around
from .measure import Measured, Seen, measure
from .view import Memory, Notes, View

if TYPE_CHECKING:
    from .baseline import Baseline

BOUNDS, MEASURE, NOISE = 1 << 29, 1 << 28, 3  # what random numbers are for: legs have smaller numbers
MOVED = 0.25  # of the trust radius: a move that makes bounds old
HALF = 0.5  # of the last residual: what a measurement far from the tolerance must tell apart


@dataclass(frozen=True)
class Legs:
    """The method of a baseline."""

    baseline: "Baseline"

    def cap(self, here: Setup) -> int:
        """Legs at most."""
        return here.settings.max_outer

    def reason(self, here: Setup, state: State) -> str:
        """As it was when the run was set up."""
        return here.reason

    def oracle(self, here: Setup, state: State) -> Subproblem:
        """The augmented Lagrangian at the method's multipliers and penalty."""
        return View(here, state).subproblem()

    def plan(self, here: Setup, state: State, oracle: Subproblem, goal: Any = None) -> tuple[State, Leg]:
        """The next leg, with bounds from near the present point: where they are from here, nothing is looked at."""
        state = _with_bounds(here, state, oracle)
        return state, Leg(None, self.baseline.plan(View(here, state)))

    def init(self, here: Setup, state: State, oracle: Subproblem, leg: Leg, copy: int = 0) -> Any:
        """The baseline's state at the start of a leg."""
        key = jax.random.fold_in(here.key, state.outer)
        z, own = jnp.asarray(state.z), state.memory.own
        return compiled_begin(here.solver, oracle.lagrangian, z, leg.plan, own, key)

    def step(self, here: Setup, oracle: Subproblem, leg: Leg) -> Any:
        """A chunk of its steps."""
        chunk = jnp.int32(here.solver.chunk)
        return compiled_advance(here.solver, oracle.lagrangian, leg.inner, leg.plan, chunk)

    def read(
        self, here: Setup, state: State, oracle: Subproblem, leg: Leg, stop: Status | None
    ) -> tuple[State, Reading | None]:
        """A measurement where the leg ended, as the baseline understands it."""
        inner, before, start = leg.inner, state.memory.seen, oracle.lagrangian
        state = replace(state, work=state.work + inner.progress.work.tally())
        if int(inner.progress.status) == BROKEN:
            return state, None
        state, measured = self._measured(here, state, oracle, inner)
        if measured is None:
            return state, None
        constraint = np.asarray(measured.seen.constraint, np.float64)
        multipliers = np.asarray(measured.multipliers, np.float64)
        stationarity, notes = float(measured.stationarity), state.notes
        residual = max(stationarity, float(np.linalg.norm(constraint)))
        state = replace(
            state,
            z=measured.z,
            multipliers=multipliers,
            penalty=state.penalty if measured.penalty is None else measured.penalty,
            memory=state.memory._replace(own=inner.memory, seen=measured.seen),
            notes=replace(notes, best=min(notes.best, notes.residual), residual=residual),
        )
        view = View(here, state)
        candidate = self.baseline.is_over(view, measured)
        outcome = Outcome(
            z=measured.z,
            value=start._combine(measured.seen.objective, measured.seen.constraint),
            first_value=start._combine(before.objective, before.constraint),
            objective=float(measured.seen.objective),
            constraint=measured.seen.constraint,
            multipliers=measured.multipliers,
            stationarity=measured.stationarity,
            regularity=regularity(start, measured.z, measured.seen),
            step=measured.step,
            batch=measured.batch,
            large_batch=state.notes.large_batch,
        )
        ended = VERIFIED if candidate else STATIONARY if stationarity <= view.target else EXHAUSTED
        asked = candidate and state.outer >= state.notes.patience
        return state, Reading(
            outcome, inner.progress, ended, constraint, multipliers, asked, stop=stop, measured=measured
        )

    def _measured(self, here: Setup, state: State, sub: Subproblem, inner: Any) -> tuple[State, Measured | None]:
        """The measurement after a leg as the method reads it, more sharply where it makes a candidate; None: not finite."""
        z = self.baseline.point(inner)
        state, first, full = _batches(here, state, sub, z)
        state = replace(state, memory=state.memory._replace(own=inner.memory))
        measured = None
        for again, n in enumerate((first, full)):
            state, seen = _measure(here, state, sub, z, n, again)
            if not all(bool(jnp.all(jnp.isfinite(part))) for part in seen):
                return state, None
            view = View(here, state)
            measured = self.baseline.read(view, sub.lagrangian, inner, z, seen)
            if n == full or not self.baseline.is_over(view, measured):
                break
        return state, measured

    def learn(
        self, here: Setup, state: State, oracle: Subproblem, reading: Reading, refused: Certificate | None
    ) -> State:
        """As the baseline does; the judge would refuse again where little has changed, and is asked later."""
        if refused is not None:
            refusals = state.notes.refusals + 1
            patience = state.outer + 2**refusals
            state = replace(state, notes=replace(state.notes, refusals=refusals, patience=patience))
        return self.baseline.learn(View(here, state), reading.measured).state


def prepare(problem: Problem, x0: Any, baseline: "Baseline", settings: Settings, warm: None = None) -> Run:
    """A run: slacks that meet the inequalities where they can, a first measurement, bounds, the method's memory."""
    here = set_up(problem, x0, baseline, settings)
    layout = here.program.layout
    scales = moved_inwards(Scales.plain(layout.size), layout, settings.tol)
    dual = np.zeros(layout.size)
    form, batch = here.form(scales), here.program.population or SMALLEST_RESET
    z = form.join(jnp.asarray(here.origin, here.dtype), jnp.zeros(layout.slack_size, here.dtype))
    state = State(
        z=z,
        multipliers=np.zeros(layout.size),  # of the present point, as the method understands it
        memory=Memory(None, dual, None, None, None),  # pyright: ignore[reportArgumentType]
        notes=Notes(batch, batch),
        scales=scales,
        penalty=settings.outer.penalty,
        micro=here.micro_batch(scales),
    )
    with here.watchdog:
        sub = View(here, state).subproblem()
        state, seen = _measure(here, state, sub, z, batch)
        probe = np.concatenate([[float(seen.objective)], np.asarray(seen.constraint, np.float64)])
        if layout.slack_size:
            x, slack = form.split(z)
            moved = form.join(x, jnp.maximum(slack - seen.constraint[jnp.asarray(layout.inequality)], 0))
            seen = seen._replace(constraint=seen.constraint + seen.jacobian @ (moved - z))
            state = replace(state, z=moved)
        state = replace(state, memory=state.memory._replace(seen=seen))
        state = _with_bounds(here, state, sub)
        state = baseline.begin(View(here, state)).state
    return Run(Legs(here.solver), here, state, probe)


def _with_bounds(here: Setup, state: State, sub: Subproblem) -> State:
    """With bounds at the present point, unless those at hand are from near it."""
    x, _ = here.form(state.scales).split(state.z)
    kept = state.memory
    if kept.looked_from is not None:
        far = float(jnp.linalg.norm(x - kept.looked_from))
        if far <= MOVED * float(natural_radius(x)):
            return state
    key = jax.random.fold_in(here.key, BOUNDS + state.outer)
    bounds, spent = look_around(sub.lagrangian, state.z, key)
    kept = kept._replace(bounds=bounds.after(kept.bounds), looked_from=x)
    return replace(state, work=state.work + spent.tally(), memory=kept)


def _measure(here: Setup, state: State, sub: Subproblem, z: jax.Array, n: int, again: int = 0) -> tuple[State, Seen]:
    key = jax.random.fold_in(jax.random.fold_in(here.key, MEASURE + state.outer), again)
    seen, spent = measure(sub, z, key, n)
    return replace(state, work=state.work + spent, notes=replace(state.notes, large_batch=n)), seen


def _batches(here: Setup, state: State, sub: Subproblem, z: jax.Array) -> tuple[State, int, int]:
    """Thetas of a measurement: what the last residual asks for, and what a candidate asks for."""
    population = here.program.population
    if population is not None:
        return state, population, population
    given = words(here.settings.seed, state.outer, NOISE)
    seen, spent = sampled_look(sub.lagrangian, z, z, given, np.int32(SMALLEST_RESET))
    state, view = replace(state, work=state.work + spent.tally()), View(here, state)
    gradient, violation, residual = view.target / SAMPLED, view.violation / SAMPLED, state.notes.residual
    far = max(1.0, HALF * residual / min(gradient, violation)) if np.isfinite(residual) else 1.0
    first, full = (
        max(
            thetas_for(float(seen.noise.stationarity), RESET_ACCURACY * gradient * scale, state.work.total),
            thetas_for(float(seen.noise.constraint), RESET_ACCURACY * violation * scale, state.work.total),
        )
        for scale in (far, 1.0)
    )
    return replace(state, notes=replace(state.notes, full_batch=full)), first, full

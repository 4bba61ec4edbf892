"""One run of a baseline on the host: legs of compiled steps, a measurement after each, and the judge at candidates.

Nothing is scaled, and no iterate is taken back: what the methods do not say is not done for them. Shared with `minimize`
are the clock, the budgets, the rows of the history, the judge and what a refusal by it costs.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ..oracle import Lagrangian, surrogate
from ..outer.clock import Clock
from ..outer.ending import hand_back, stop_between, stop_inside
from ..outer.goals import RESET_ACCURACY, SAMPLED, SMALLEST_RESET, gradient_tolerance, largest_reset, ready
from ..outer.inner import Solved
from ..outer.record import make_row, start_row
from ..outer.result import Result
from ..outer.scaling import Scales
from ..outer.settings import Settings
from ..outer.start import checked_start
from ..outer.state import State
from ..outer.status import Status
from ..outer.stops import Stops
from ..outer.verdict import is_infeasible, judge, learn_from_refusal
from ..outer.watchdog import Watchdog
from ..problem import EqualityForm, Problem
from ..solvers.base import BROKEN, EXHAUSTED, RUNNING, STATIONARY, VERIFIED, Outcome
from ..solvers.drive import compiled_advance as advance, compiled_begin as begin
from ..solvers.move import natural_radius
from ..solvers.reset import regularity
from ..theory.survey import Survey, survey
from .bounds import Bounds, look_around
from .measure import Reading, Seen, measure

if TYPE_CHECKING:
    from .base import Baseline

FIRST_LEG, LONGEST_LEG, LEG_GROWTH = 64, 8192, 1.25  # steps: rows and measurements are spaced geometrically
MOVED = 0.25  # of the trust radius: a move that makes bounds old
HALF = 0.5  # of the last residual: what a measurement far from the tolerance must tell apart
DECREASE = 0.5  # of the best residual so far: less than this is no progress


class Run(State):
    """One run: its state between legs, and what does not change in its course."""

    bounds: Bounds
    seen: Seen

    def __init__(self, problem: Problem, x0: Any, baseline: "Baseline", settings: Settings):
        self.clock = Clock()
        self.stops, self.watchdog = Stops(), Watchdog(settings.watchdog)
        with self.watchdog:  # the user's functions are traced here
            self._set_up(problem, x0, baseline, settings)
        self.watchdog.move("the first leg")

    def _set_up(self, problem: Problem, x0: Any, baseline: "Baseline", settings: Settings):
        self.problem, self.settings = problem, settings
        self.solver = replace(baseline, max_outer=0)  # the cap is `settings`'; other caps share compiled programs
        self.dtype = problem.working_type(x0, "x0")
        self.program, vector = problem.bind(x0, "x0", self.dtype)
        self.data = problem.device_data(self.program, self.dtype)
        self.key = jax.random.key(settings.seed, impl="threefry2x32")
        layout = self.program.layout
        self.scales = Scales(1.0, np.ones(layout.size))
        x = jnp.asarray(checked_start(problem, self.program, vector), self.dtype)
        super().__init__(
            z=self.form.join(x, jnp.zeros(layout.slack_size, self.dtype)),
            multipliers=np.zeros(layout.size),  # of the present point, as the method understands it
            memory=None,
            scales=self.scales,
            penalty=settings.penalty,
        )
        self.dual = np.zeros(layout.size)  # of the function that the method minimises
        self.begun, self.refusals, self.patience = 0, 0, 0
        self.residual = self.best = np.inf
        self.looked_from: Any = None  # where the bounds are from
        self.large_batch = self.full_batch = self.program.population or SMALLEST_RESET

    # ---- what a baseline may ask

    @property
    def form(self) -> EqualityForm:
        """The equality form, unscaled."""
        layout = self.program.layout
        return EqualityForm(
            self.program, self.problem.domain, np.float64(1.0), self.scales.constraints, np.ones(layout.slack_size)
        )

    def oracle(self) -> Lagrangian:
        """The augmented Lagrangian at the method's present multipliers and penalty."""
        return Lagrangian(self.form, self.data, self.array(self.dual), self.array(self.penalty), surrogate("ustat"))

    def array(self, values: Any) -> jax.Array:
        """Numbers as an array of the run's type."""
        return jnp.asarray(np.asarray(values, np.dtype(self.dtype)))

    @property
    def target(self) -> float:
        """The stationarity that is asked for; less than the tolerance where it is only estimated."""
        return gradient_tolerance(self) * self.tighter * (SAMPLED if self.program.population is None else 1.0)

    @property
    def violation(self) -> float:
        """The violation that a candidate may have."""
        return ready(self) * self.tighter

    @property
    def leg(self) -> int:
        """Steps of the next leg of a method that has no lengths of its own."""
        return int(min(FIRST_LEG * LEG_GROWTH**self.outer, LONGEST_LEG))

    @property
    def improved(self) -> bool:
        """Whether the last leg brought the residual down to a share of the best before."""
        return self.residual <= DECREASE * self.best

    def least(self, batch: int) -> int:
        """Steps before a leg may end by itself: a quarter, and enough to cost as much as the measurement that follows."""
        return int(np.clip(self.large_batch // (2 * batch), self.leg // 4, self.leg))

    # ---- measurements

    def _look_around(self, oracle: Lagrangian):
        """Bounds at the present point, unless those at hand are from near it."""
        x, _ = self.form.split(self.z)
        before = None if self.looked_from is None else self.bounds
        far = np.inf if self.looked_from is None else float(jnp.linalg.norm(x - self.looked_from))
        if far <= MOVED * float(natural_radius(x)):
            return
        bounds, spent = look_around(oracle, self.z, jax.random.fold_in(self.key, (1 << 29) + self.outer))
        self.work += spent.tally()
        self.bounds, self.looked_from = bounds.after(before), x

    def _survey(self, oracle: Lagrangian, z: jax.Array) -> Survey:
        seen = survey(oracle, z, jax.random.fold_in(self.key, (1 << 30) + self.outer))
        self.work += seen.work.tally()
        return seen

    def _measure(self, oracle: Lagrangian, z: jax.Array, n: int, again: int = 0) -> Seen:
        key = jax.random.fold_in(jax.random.fold_in(self.key, (1 << 28) + self.outer), again)
        seen, spent = measure(oracle, z, key, jnp.int32(n))
        self.work += spent.tally()
        self.large_batch = n
        return seen

    def _batches(self, oracle: Lagrangian, z: jax.Array) -> tuple[int, int]:
        """Thetas of a measurement: what the last residual asks for, and what a candidate asks for."""
        population = self.program.population
        if population is not None:
            return population, population
        noise = self._survey(oracle, z).noise
        gradient, violation = self.target / SAMPLED, self.violation / SAMPLED

        def wanted(scale: float) -> float:
            return max(
                float(noise.stationarity) / (RESET_ACCURACY * gradient * scale) ** 2,
                float(noise.constraint) / (RESET_ACCURACY * violation * scale) ** 2,
            )

        far = max(1.0, HALF * self.residual / min(gradient, violation)) if np.isfinite(self.residual) else 1.0
        sizes = [wanted(scale) if np.isfinite(wanted(scale)) else 0.0 for scale in (far, 1.0)]
        first, full = (int(np.clip(size, SMALLEST_RESET, largest_reset(self.work.total))) for size in sizes)
        self.full_batch = full
        return first, full

    def _read(self, oracle: Lagrangian, state: Any, z: jax.Array) -> Reading | None:
        """The measurement after a leg as the method reads it; None where it is not finite."""
        first, full = self._batches(oracle, z)
        for again, n in enumerate((first, full)):
            seen = self._measure(oracle, z, n, again)
            if not all(bool(jnp.all(jnp.isfinite(part))) for part in seen):
                return None
            reading = self.solver.read(self, oracle, state, z, seen)
            if n == full or not self._is_candidate(reading):
                break
        return reading

    def _is_candidate(self, reading: Reading) -> bool:
        size = float(jnp.linalg.norm(reading.seen.constraint))
        return float(reading.stationarity) <= self.target and size <= self.violation

    # ---- the loop

    def go(self) -> Result:
        """Legs until a certificate, a cap, a budget, or an interruption."""
        with self.stops, self.watchdog:
            try:
                status = self._start() or self._legs()
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
            self.watchdog.move("the last certificate")
            return hand_back(self, status, self.penalty)

    def _legs(self) -> Status:
        if self.settings.record == "exact":
            self.history.append(start_row(self))
        for k in range(self.settings.max_outer):
            self.outer, self.begun = k, k + 1
            status = self._leg()
            if status is not None:
                return status
        return Status.OUTER_LIMIT

    def _start(self) -> Status | None:
        """Slacks that meet the inequalities where they can, a first measurement, bounds, the method's memory."""
        oracle, layout = self.oracle(), self.program.layout
        self.seen = self._measure(oracle, self.z, self.large_batch)
        if not all(bool(jnp.all(jnp.isfinite(part))) for part in self.seen):
            return Status.NOT_FINITE
        if layout.slack_size:
            x, slack = self.form.split(self.z)
            rows = self.seen.constraint[jnp.asarray(layout.inequality)]
            moved = self.form.join(x, jnp.maximum(slack - rows, 0))
            self.seen = self.seen._replace(constraint=self.seen.constraint + self.seen.jacobian @ (moved - self.z))
            self.z = moved
        self._look_around(oracle)
        self.memory = self.solver.memory(self)
        return None

    def _leg(self) -> Status | None:
        baseline = self.solver
        oracle = self.oracle()
        if self.outer:
            self._look_around(oracle)
        before = self._value(oracle, self.seen)
        plan = baseline.plan(self)
        state = begin(baseline, oracle, self.z, plan, self.memory, jax.random.fold_in(self.key, self.outer))
        state, stop = self._chunks(oracle, state, plan)
        self.work += state.progress.work.tally()
        if int(state.progress.status) == BROKEN:
            return Status.NOT_FINITE
        reading = self._read(oracle, state, baseline.point(state))
        if reading is None:
            return Status.NOT_FINITE
        self.memory = state.memory
        self.z, self.seen = reading.z, reading.seen
        self.multipliers = np.asarray(reading.multipliers, np.float64)
        constraint = np.asarray(reading.seen.constraint, np.float64)
        regular = regularity(oracle, reading.z, reading.seen)
        self.best = min(self.best, self.residual)
        self.residual = max(float(reading.stationarity), float(np.linalg.norm(constraint)))
        candidate = self._is_candidate(reading)
        outcome = Outcome(
            z=reading.z,
            value=self._value(oracle, reading.seen),
            first_value=before,
            objective=float(reading.seen.objective),
            constraint=reading.seen.constraint,
            multipliers=reading.multipliers,
            stationarity=reading.stationarity,
            regularity=regular,
            step=reading.step,
            batch=reading.batch,
            large_batch=self.large_batch,
        )
        stationary = float(reading.stationarity) <= self.target
        ended = VERIFIED if candidate else STATIONARY if stationary else EXHAUSTED
        solved = Solved(outcome, state.progress, ended, stop)
        row = make_row(self, solved, constraint, self.penalty)
        if stop is not None:
            return stop
        if candidate and self.outer >= self.patience:
            if judge(self, self.multipliers, self.penalty).passes(self.settings.tolerance):
                return Status.CERTIFIED
            learn_from_refusal(self)
            self.refusals += 1
            self.patience = self.outer + 2**self.refusals  # it would refuse again where little has changed
        elif not candidate and is_infeasible(self, self.multipliers, self.penalty, float(regular)):
            return Status.INFEASIBLE
        baseline.learn(self, reading)
        return stop_between(self, row)

    def _chunks(self, oracle: Lagrangian, state: Any, plan: Any) -> tuple[Any, Status | None]:
        """Chunks of steps until the leg ends, or something ends the run."""
        chunk = jnp.int32(self.solver.chunk)
        while True:
            state = advance(self.solver, oracle, state, plan, chunk)
            running = int(state.progress.status) == RUNNING
            self.watchdog.move(f"leg {self.outer}")
            if not running:
                return state, None
            if (stop := stop_inside(self, state)) is not None:
                return state, stop

    def _value(self, oracle: Lagrangian, seen: Seen) -> jax.Array:
        """L from a measurement."""
        return oracle._combine(seen.objective, seen.constraint)

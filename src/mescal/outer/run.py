"""One run of MESCAL on the host: set-up, outer iterations, and where it may stop."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..oracle import Lagrangian, memory, surrogate
from ..oracle.evaluator import evaluator_of
from ..oracle.host import leaf
from ..oracle.subproblem import Subproblem
from ..problem import EqualityForm, Problem
from ..solvers.base import BROKEN, EXHAUSTED, FARAWAY, RUNAWAY, VERIFIED, Memory, Solver
from ..solvers.ray import Ray, ray_from
from .checkpoint import Checkpoints
from .clock import Clock
from .dual import complementary, dual_step, summable_bound
from .ending import hand_back, stop_between
from .goals import gradient_tolerance, ready, searches_always
from .history import Row
from .inner import Solved, solve
from .penalty import BOLD, RECOVER, RETRIES, RISE, next_penalty, runaway_size
from .record import make_row, start_row
from .result import Result
from .scaling import Scales, choose_scales
from .settings import Settings
from .start import Start, checked_start
from .state import State, Unfinished
from .status import Status
from .stops import Stops
from .survey import survey
from .verdict import is_infeasible, judge, learn_from_refusal
from .watchdog import Watchdog

if TYPE_CHECKING:
    from .promise import Promise

SURVEY = 1 << 30  # what random numbers of a run are for: outer iterations have smaller numbers
RAY = 3  # what random numbers of an outer iteration are for, beside those of `goals` and `verdict`
IDLE = 4  # inner solves in a row that end where they began before the inner tolerance is halved


class Run(State):
    """One run: its state, and what does not change in its course."""

    def __init__(self, problem: Problem, x0: Any, solver: Solver, settings: Settings, start: Start | None):
        self.clock = Clock()
        self.stops, self.watchdog = Stops(), Watchdog(settings.watchdog)
        with self.watchdog:  # the user's functions are traced here
            self._set_up(problem, x0, solver, settings, start)
        self.watchdog.move("the first step")

    # ---- set-up

    def _set_up(self, problem: Problem, x0: Any, solver: Solver, settings: Settings, start: Start | None):
        self.problem, self.settings = problem, settings
        given = start.x if x0 is None and start is not None else x0
        exact, _ = problem.bind(given, "x0")
        population = exact.population
        self.solver = solver.sized(population)
        self.reason = solver.reason(population)
        self.dtype = np.dtype(np.float64) if self.solver.precise else problem.working_type(given, "x0")
        self.program, vector = problem.bind(given, "x0", self.dtype)
        self.data = problem.device_data(self.program, None if self.solver.precise else self.dtype)
        self.looks = None if population is None else evaluator_of(problem, exact)
        self.asked = solver
        self.rule = surrogate(getattr(solver, "surrogate", "ustat"))
        self.key = None if self.solver.host else jax.random.key(settings.seed, impl="threefry2x32")
        self.begun = 0  # outer iterations
        self.unfinished: Unfinished | None = None  # an inner solve that a checkpoint brought
        self.checkpoints: Checkpoints | None = None
        self.warnings: tuple[str, ...] = ()
        self.ray: Ray | None = None
        layout = self.program.layout
        self.origin = checked_start(problem, self.program, vector)
        x = np.asarray(self.origin, self.dtype)
        plain = np.zeros(layout.size) if start is None else layout.rows(start.multipliers, "multipliers")
        slack = np.zeros(layout.slack_size) if start is None else layout.slack_rows(start.slack)[layout.inequality]
        self.scales = Scales(1.0, np.ones(layout.size))
        self._form: tuple[Scales, EqualityForm] | None = None
        super().__init__(
            z=np.concatenate([x, np.asarray(slack, self.dtype)]),
            multipliers=plain,
            memory=Memory.fresh(1.0, self.dtype),
            scales=self.scales,
            penalty=settings.penalty if start is None else max(settings.penalty, start.penalty),
            micro=self.micro_batch(),
        )
        self._survey(set_slack=start is None or x0 is not None)
        if start is not None:
            self.penalty = max(settings.penalty, self.scales.scaled_penalty(start.penalty))
        self.promise: Promise | None = None
        if self.solver.guarantee is not None:
            from .promise import make_promise  # here: practical modes need nothing of the theory

            self.promise = make_promise(self)
            self.warnings = self.promise.warnings

    def micro_batch(self) -> int:
        """Samples that the device looks at together: a row of each population, and parameters, per sample."""
        rows = [leaf for leaf in jax.tree.leaves(self.data) if leaf.ndim]
        width = sum(leaf.dtype.itemsize * int(np.prod(leaf.shape[1:])) for leaf in rows)
        return memory.micro_batch(width + self.form.size * np.dtype(self.dtype).itemsize)

    @property
    def form(self) -> EqualityForm:
        """The equality form in the solver's scales."""
        if self._form is None or self._form[0] is not self.scales:
            units, (f, c) = np.ones(self.program.layout.slack_size), (self.scales.objective, self.scales.constraints)
            self._form = self.scales, EqualityForm(self.program, self.problem.domain, np.float64(f), c, units)
        return self._form[1]

    def subproblem(self, penalty: float) -> Subproblem:
        """The subproblem at the present multipliers."""
        lagrangian = Lagrangian(
            self.form,
            self.data,
            leaf(self.scales.scaled_multipliers(self.multipliers), self.dtype),  # pyright: ignore[reportArgumentType]
            leaf(penalty, self.dtype),
            self.rule,
            self.micro,
        )
        return Subproblem(lagrangian, self.looks, self.solver.precise)

    def _survey(self, set_slack: bool):
        """Scales from the gradients at the start, and slacks that meet the inequalities there where they can."""
        seen = survey(self.subproblem(self.penalty), self.z, (self.settings.seed, SURVEY), not self.solver.precise)
        self.work += seen.work
        if set_slack and self.program.layout.slack_size:
            size = self.program.parameters.size
            rows = seen.constraint[self.program.layout.inequality]
            slack = np.maximum(self.z[size:] - rows, 0)
            self.z = np.concatenate([self.z[:size], slack.astype(self.dtype)])
        constraint, sizes = seen.constraint, seen.constraint_sizes
        self.probe = np.concatenate([[seen.objective_size], constraint, sizes])
        if self.settings.scale and self.solver.guarantee is None:  # formulas have units, and constants those of f and c
            self.scales = choose_scales(seen.objective_size, sizes)
        self.memory = Memory.fresh(seen.smoothness * self.scales.objective, self.dtype)
        self.runaway = runaway_size(constraint * self.scales.constraints, sizes * self.scales.constraints)

    # ---- the loop

    def go(self) -> Result:
        """Outer iterations until a certificate, a cap, a budget, or an interruption."""
        with self.stops, self.watchdog:
            try:
                status = self._iterate()
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
            self.watchdog.move("the last certificate")
            result = hand_back(self, status, self.penalty, self.warnings, self.reason)
        if self.checkpoints is not None and result.status.final:
            self.checkpoints.end()
        return result

    def _iterate(self) -> Status:
        if self.settings.record == "exact" and not self.history and bool(np.isfinite(self.z).all()):
            self.history.append(start_row(self))
        cap = self._outer_cap()
        while self.outer < cap:
            self.begun = self.outer + 1
            ended, row = self._outer_iteration()
            if ended is not None:
                return ended
            self.outer += 1
            try:
                stop = stop_between(self, row)
            except KeyboardInterrupt:
                stop = Status.INTERRUPTED
            self.save(None, force=stop is not None)
            if stop is not None:
                return stop
        self.save(None, force=True)
        return Status.OUTER_LIMIT

    def save(self, unfinished: Unfinished | None, force: bool = False):
        """A checkpoint, where the run keeps them and it is time."""
        if self.checkpoints is not None:
            self.checkpoints.save(self, unfinished, force)

    def _outer_cap(self) -> int:
        cap = self.settings.max_outer
        return cap if self.promise is None else min(cap, self.promise.last + 1)

    def _outer_iteration(self) -> tuple[Status | None, Row | None]:
        """One outer iteration: how it ended the run, if it did, and its row of the history."""
        k, settings = self.outer, self.settings
        penalty = self.penalty
        sub = self.subproblem(penalty)
        solved = solve(self, sub, penalty)
        inner, outcome = solved.status, solved.outcome
        moved = not np.array_equal(np.asarray(outcome.z), np.asarray(self.z))
        constraint = np.asarray(outcome.constraint, np.float64) / self.scales.constraints
        if inner == BROKEN and not np.isfinite(float(outcome.value)):
            return Status.NOT_FINITE, None
        if inner == RUNAWAY:
            self.penalty, self.retries = penalty * RECOVER, self.retries + 1  # again from where this one began
            self.runaway = np.inf if self.retries == RETRIES else self.runaway
            return None, make_row(self, solved, constraint, penalty)
        began, self.z = self.z, np.asarray(outcome.z)
        row = make_row(self, solved, constraint, penalty)
        if solved.stop is not None:
            return solved.stop, row
        if inner == FARAWAY:
            if self._is_unbounded(sub, began):
                return Status.UNBOUNDED, row
            inner = EXHAUSTED
        if inner == BROKEN:
            return Status.NOT_FINITE, row
        feasible = np.linalg.norm(constraint) <= ready(self)
        tilde = self.scales.multipliers(np.asarray(outcome.multipliers, np.float64))
        if self.program.population is not None:
            tilde = complementary(tilde, self._slack_by_row())
        if feasible and (inner == VERIFIED or self._is_stuck(solved)):
            self.watchdog.move("the judge")
            if judge(self, tilde, penalty).passes(settings.tolerance):
                self.multipliers = tilde
                return Status.CERTIFIED, row
            if learn_from_refusal(self, sub):
                return None, row  # away from here, and once more at these multipliers
        elif is_infeasible(self, tilde, penalty, float(outcome.regularity)):
            self.multipliers = tilde
            return Status.INFEASIBLE, row
        self.idle = 0 if moved or feasible else self.idle + 1
        if self.idle >= IDLE:
            self.tighter, self.idle = self.tighter / 2, 0
        violation = constraint * self.scales.constraints
        size = float(np.linalg.norm(violation))
        if self.first_violation is None:
            self.first_violation = size
        may_rise = inner != EXHAUSTED and not feasible and self.promise is None  # the theorems are about al_0 beta^k
        rise = 1.0 if not may_rise else BOLD if self.solver.precise else RISE
        growth = 1.0 if inner == EXHAUSTED and feasible and self.promise is None else settings.growth
        self.penalty = next_penalty(penalty, growth, size, self.last_violation, rise)
        self.last_violation = size
        scaled = dual_step(self.scales.scaled_multipliers(self.multipliers), violation, penalty, self._dual_bound(k))
        self.multipliers = self.scales.multipliers(scaled)
        return None, row

    def _is_unbounded(self, sub: Subproblem, began: np.ndarray) -> bool:
        """Whether a feasible ray of endless descent leads on from here; it is kept, with the point that it begins at."""
        key = (self.settings.seed, self.outer, RAY)
        self.ray, z, work = ray_from(sub, np.asarray(began), self.z, self.settings.tolerance.gradient, key)
        self.work += work
        if self.ray is not None:
            self.z = z
        return self.ray is not None

    def _is_stuck(self, solved: Solved) -> bool:
        """Whether the solver ended at a stationary point where it saw negative curvature and no way down: the judge decides.

        Where the boundary of X is curved, it bends what looks like negative curvature on its tangent space. Not every time.
        """
        stationary = float(solved.outcome.stationarity) <= gradient_tolerance(self) * self.scales.objective
        return solved.status == EXHAUSTED and stationary and self.promise is None and searches_always(self.outer)

    def _slack_by_row(self) -> np.ndarray:
        """The slack of every row of c; NaN for equalities."""
        layout = self.program.layout
        slack = np.full(layout.size, np.nan)
        slack[layout.inequality] = np.asarray(self.z, np.float64)[self.program.parameters.size :]
        return slack

    def _dual_bound(self, k: int) -> float:
        """gamma_k in the solver's units."""
        if self.promise is not None:
            return self.promise.dual_bound(k)
        assert self.first_violation is not None
        return summable_bound(k, self.first_violation) if self.settings.bounded_dual else np.inf

"""One run of MESCAL on the host: the state between outer iterations, and the iteration itself."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..certificate import Certificate
from ..oracle import Lagrangian, Tally, surrogate
from ..problem import EqualityForm, Problem
from ..solvers.base import BROKEN, EXHAUSTED, RUNAWAY, VERIFIED, Memory, Solver
from ..theory.survey import survey
from .clock import Clock
from .dual import complementary, dual_step, summable_bound
from .goals import gradient_tolerance, ready, searches_always
from .history import History, Row
from .inner import Solved, solve
from .promise import make_promise
from .record import make_row, start_row
from .result import Result, Seconds, WorkDone
from .scaling import Scales, choose_scales
from .settings import Settings
from .start import checked_start
from .status import Status
from .verdict import is_infeasible, judge, last_judgement, learn_from_refusal

SLOW = 0.5  # of the violation before: falling less than this, it asks for a larger penalty ...
RISE = 4.0  # ... by this factor, instead of the schedule's
FAR = 2.0  # natural sizes of the constraint: an inner solve that ends further from feasible ran away ...
RECOVER = 10.0  # ... and is repeated with a penalty larger by this factor ...
RETRIES = 12  # ... at most so often
IDLE = 4  # inner solves in a row that end where they began before the inner tolerance is halved


class Run:
    """The state of one run between outer iterations, on the host."""

    def __init__(self, problem: Problem, x0: Any, solver: Solver, settings: Settings, start: Result | None):
        self.clock = Clock()
        self.problem, self.settings = problem, settings
        self.program, vector = problem.bind(start.x if x0 is None and start is not None else x0, "x0")
        self.solver = solver.sized(self.program.population)
        self.reason = solver.reason(self.program.population)
        self.dtype = jax.dtypes.canonicalize_dtype(vector.dtype)
        self.data = problem.device_data(self.dtype)
        self.rule = surrogate(getattr(solver, "surrogate", "ustat"))
        self.key = jax.random.key(settings.seed, impl="threefry2x32")
        self.work, self.searches, self.judged = Tally(), Tally(), Tally()
        self.history = History()
        self.outer = 0
        self.penalty = settings.penalty if start is None else max(settings.penalty, start.penalty)
        self.tighter, self.idle, self.curvature_factor = 1.0, 0, 1
        self.certificate: Certificate | None = None
        self.certify_seconds = 0.0
        self.last_violation = np.inf
        self.first_violation: float | None = None  # |cbar(x_0)|, the scale of the bounded dual update
        self.scales = Scales(1.0, np.ones(self.program.layout.size))
        x = jnp.asarray(checked_start(problem, self.program, vector), self.dtype)
        slack = np.zeros(self.program.layout.slack_size)
        plain = np.zeros(self.program.layout.size)
        if start is not None:
            plain = self.program.layout.rows(start.multipliers, "multipliers")
            slack = self.program.layout.slack_rows(start.slack)[self.program.layout.inequality]
        self.multipliers = plain
        self.z = self.form.join(x, jnp.asarray(slack, self.dtype))
        self._survey(set_slack=start is None or x0 is not None)
        if start is not None:
            self.penalty = max(settings.penalty, self.scales.scaled_penalty(start.penalty))
        self.promise = make_promise(self)

    # ---- set-up

    @property
    def form(self) -> EqualityForm:
        """The equality form in the solver's scales."""
        units = np.ones(self.program.layout.slack_size)
        return EqualityForm(
            self.program, self.problem.domain, np.float64(self.scales.objective), self.scales.constraints, units
        )

    def oracle(self, penalty: float) -> Lagrangian:
        """The subproblem at the present multipliers."""
        return Lagrangian(
            self.form,
            self.data,
            jnp.asarray(self.scales.scaled_multipliers(self.multipliers), self.dtype),
            jnp.asarray(penalty, self.dtype),
            self.rule,
        )

    def _survey(self, set_slack: bool):
        """Scales from the gradients at the start, and slacks that meet the inequalities there where they can."""
        seen = survey(self.oracle(self.penalty), self.z, jax.random.fold_in(self.key, 1 << 30))
        self.work += seen.work.tally()
        if set_slack and self.program.layout.slack_size:
            x, slack = self.form.split(self.z)
            rows = np.asarray(seen.constraint)[self.program.layout.inequality]
            self.z = self.form.join(x, jnp.maximum(slack - jnp.asarray(rows, self.dtype), 0))
        self.memory = Memory.fresh(seen.smoothness, self.dtype)
        if self.settings.scale and self.solver.guarantee is None:  # formulas have units, and constants those of f and c
            self.scales = choose_scales(float(seen.objective_size), np.asarray(seen.constraint_sizes, np.float64))
            self.memory = Memory.fresh(seen.smoothness * self.scales.objective, self.dtype)
        sizes = np.linalg.norm(seen.constraint_sizes * self.scales.constraints)
        self.runaway = FAR * float(np.linalg.norm(seen.constraint * self.scales.constraints) + sizes)
        self.retries = 0

    # ---- the loop

    def go(self) -> Result:
        """Outer iterations until a certificate, a cap, a budget, or an interruption."""
        status = Status.OUTER_LIMIT
        try:
            if self.settings.record == "exact" and bool(jnp.all(jnp.isfinite(self.z))):
                self.history.append(start_row(self))
            for k in range(self._outer_cap()):
                self.outer = k
                status = self._outer_iteration()
                if status is not None:
                    break
            else:
                status = Status.OUTER_LIMIT
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        return self._result(status)

    def _outer_cap(self) -> int:
        cap = self.settings.max_outer
        return cap if self.promise is None else min(cap, self.promise.last + 1)

    def _outer_iteration(self) -> Status | None:
        k, settings = self.outer, self.settings
        penalty = self.penalty
        oracle = self.oracle(penalty)
        solved = solve(self, oracle, penalty)
        inner, outcome = solved.status, solved.outcome
        moved = bool(jnp.any(outcome.z != self.z))
        if inner == BROKEN and not np.isfinite(float(outcome.value)):
            return Status.NOT_FINITE
        if inner == RUNAWAY:
            return self._recover(solved, penalty)
        self.z = outcome.z
        constraint = np.asarray(outcome.constraint, np.float64) / self.scales.constraints
        row = make_row(self, solved, constraint, penalty)
        if solved.stop is not None:
            return solved.stop
        if inner == BROKEN:
            return Status.NOT_FINITE
        feasible = np.linalg.norm(constraint) <= ready(self)
        tilde = self.scales.multipliers(np.asarray(outcome.multipliers, np.float64))
        if self.program.population is not None:
            tilde = complementary(tilde, self._slack_by_row())
        if feasible and (inner == VERIFIED or self._is_stuck(solved)):
            if judge(self, tilde, penalty).passes(settings.tolerance):
                self.multipliers = tilde
                return Status.CERTIFIED
            learn_from_refusal(self)
        elif is_infeasible(self, tilde, penalty, float(outcome.regularity)):
            self.multipliers = tilde
            return Status.INFEASIBLE
        self.idle = 0 if moved or feasible else self.idle + 1
        if self.idle >= IDLE:
            self.tighter, self.idle = self.tighter / 2, 0
        violation = constraint * self.scales.constraints
        size = float(np.linalg.norm(violation))
        if self.first_violation is None:
            self.first_violation = size
        slow = inner != EXHAUSTED and not feasible and size > SLOW * self.last_violation
        rises = slow and self.promise is None  # the theorems are about al_0 beta^k
        self.penalty, self.last_violation = penalty * (max(RISE, settings.growth) if rises else settings.growth), size
        scaled = dual_step(self.scales.scaled_multipliers(self.multipliers), violation, penalty, self._dual_bound(k))
        self.multipliers = self.scales.multipliers(scaled)
        return self._over_budget(row)

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
        slack[layout.inequality] = np.asarray(self.form.split(self.z)[1], np.float64)
        return slack

    def _recover(self, solved: Solved, penalty: float) -> Status | None:
        """Back to where an inner solve began that ran away from the constraints, with a larger penalty."""
        constraint = np.asarray(solved.outcome.constraint, np.float64) / self.scales.constraints
        row = make_row(self, solved, constraint, penalty)
        self.penalty, self.retries = penalty * RECOVER, self.retries + 1
        if self.retries == RETRIES:
            self.runaway = np.inf
        return self._over_budget(row)

    def _over_budget(self, row: Row) -> Status | None:
        """Whether time, work or the user ends the run here."""
        if self.clock.seconds > self.settings.max_seconds:
            return Status.TIME_LIMIT
        if self.work.total > self.settings.max_work:
            return Status.WORK_LIMIT
        return Status.STOPPED if self.settings.callback is not None and self.settings.callback(row) else None

    def _dual_bound(self, k: int) -> float:
        """gamma_k in the solver's units."""
        if self.promise is not None:
            return self.promise.dual_bound(k)
        assert self.first_violation is not None
        return summable_bound(k, self.first_violation) if self.settings.bounded_dual else np.inf

    def _result(self, status: Status) -> Result:
        """Everything, with a certificate of the last good point whatever happened."""
        penalty = self.penalty
        certificate = last_judgement(self, penalty, status is not Status.NOT_FINITE)
        if (
            status is not Status.CERTIFIED
            and status is not Status.NOT_FINITE
            and certificate.passes(self.settings.tolerance)
        ):
            status = Status.CERTIFIED
        x, _ = self.form.split(self.z)
        return Result(
            x=self.program.parameters.restore(x),
            slack=certificate.slack,
            multipliers=certificate.multipliers,
            status=status,
            certificate=certificate,
            objective=certificate.objective.value,
            history=self.history,
            work=WorkDone(self.work, self.judged + certificate.work, self.searches),
            seconds=Seconds(self.clock.seconds, self.clock.compiling, self.certify_seconds),
            tolerance=self.settings.tolerance,
            solver=type(self.solver).name,
            seed=self.settings.seed,
            penalty=self.scales.penalty(penalty),
            outer_iterations=self.outer + 1,
            warnings=() if self.promise is None else self.promise.warnings,
            reason=self.reason,
        )

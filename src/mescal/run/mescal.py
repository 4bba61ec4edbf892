"""MESCAL, the paper's Algorithm 1 in its practical form (section 5), as a method of the loop: an augmented Lagrangian method.

    al_{k+1} = beta al_k;   z_k = solver(L(.; lam_k, al_k), from z_{k-1});   lam_{k+1} = lam_k + min(al_k, gamma_k/|c|) c

A leg is an inner solve. A point where it was verified and whose constraint is small is handed to the judge; if the judge
refuses, the run goes on, with a tighter inner tolerance or larger curvature batches according to what failed. Safeguards:

1. if the violation falls by less than half, the penalty grows fourfold; after an inner solve that was cut off it stays;
2. if inner solves keep ending where they began, their tolerance is halved: otherwise only lam would move;
3. if an inner solve runs away from the constraints, it is repeated from its start with a tenfold penalty;
4. if the violation stops falling, its regularity |P_T(-J'c)| / |c| is measured, and a locally infeasible problem is said
   to be one instead of running to the cap.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificate import Certificate
from ..oracle.draw import fold_in, words
from ..oracle.subproblem import Subproblem
from ..problem import Problem
from ..solvers.base import BROKEN, EXHAUSTED, FARAWAY, RUNAWAY, VERIFIED, Memory, Solver
from ..solvers.drive import advance, begin
from ..solvers.move import escape
from .between_solves import (
    BOLD,
    RECOVER,
    RETRIES,
    RISE,
    complementary,
    dual_step,
    gradient_tolerance,
    moved_inwards,
    next_goal,
    next_penalty,
    ready,
    runaway_size,
    searches_always,
    summable_bound,
)
from .judging import is_bent, on_a_ray
from .loop import Run
from .scaling import Scales, Survey, choose_scales, survey
from .settings import Settings
from .setup import Setup, Start, set_up
from .state import Leg, Reading, State
from .status import Status

if TYPE_CHECKING:
    from .paper_schedule import PaperSchedule
    from .theory_schedule import TheorySchedule

SURVEY = 1 << 30  # what random numbers of a run are for: outer iterations have smaller numbers
ESCAPE = 2  # what random numbers of an outer iteration are for, beside those of `between_solves`
IDLE = 4  # inner solves in a row that end where they began before the inner tolerance is halved


@dataclass(frozen=True)
class Notes:
    """Numbers that are kept between outer iterations."""

    runaway: float = np.inf  # a violation of this size, in the solver's units, is one that an inner solve ran away to
    retries: int = 0  # inner solves repeated because they ran away
    idle: int = 0  # inner solves in a row that ended where they began
    last_violation: float = np.inf
    first_violation: float | None = None  # |cbar(x_0)|, the scale of the bounded dual update


@dataclass(frozen=True)
class Mescal:
    """The method; in a theory mode with the schedule of its theorem, in a paper mode with that of section 5."""

    schedule: "TheorySchedule | PaperSchedule | None" = None

    def cap(self, here: Setup) -> int:
        """Outer iterations at most."""
        cap = here.settings.max_outer
        return cap if self.schedule is None else min(cap, self.schedule.last + 1)

    def reason(self, here: Setup, state: State) -> str:
        """As it was when the run was set up."""
        return here.reason

    def oracle(self, here: Setup, state: State) -> Subproblem:
        """The subproblem at the present multipliers and penalty."""
        multipliers = state.scales.scaled_multipliers(state.multipliers)
        return here.subproblem(state.scales, multipliers, state.penalty, state.micro)

    def plan(self, here: Setup, state: State, oracle: Subproblem, goal: Any = None) -> tuple[State, Leg]:
        """The next inner solve."""
        boost = None
        if goal is None and self.schedule is None:
            state, goal = next_goal(here, state, oracle)
        elif goal is None and self.schedule is not None:
            state, goal, boost = self.schedule.request(here, state, oracle.lagrangian)
        return state, Leg(goal, here.solver.plan(goal, here.dtype), None, boost)

    def key(self, here: Setup, state: State) -> Any:
        """Random numbers of the present outer iteration."""
        return words(here.settings.seed, state.outer) if here.solver.host else fold_in(here.key, state.outer)

    def init(self, here: Setup, state: State, oracle: Subproblem, leg: Leg, copy: int = 0) -> Any:
        """The solver's state at the present point."""
        key = self.key(here, state)
        key = key if leg.boost is None else fold_in(key, copy)
        return begin(here.solver, oracle, state.z, leg.plan, state.memory, key)

    def step(self, here: Setup, oracle: Subproblem, leg: Leg) -> Any:
        """A chunk of the solver's steps."""
        pace = here.solver.pace(leg.goal)
        return advance(here.solver, oracle, leg.inner, leg.plan, leg.goal, pace, here.is_over)

    def read(
        self, here: Setup, state: State, oracle: Subproblem, leg: Leg, stop: Status | None
    ) -> tuple[State, Reading | None]:
        """The solver's outcome; where copies are asked for, that of the one that passes."""
        after, reading = self.read_one(here, state, oracle, leg, stop)
        if leg.boost is None or stop is not None:
            return after, reading
        from .boosted import best_of_copies  # here: practical modes need nothing of the theory

        return best_of_copies(self, here, state, leg, after, reading)

    def read_one(
        self, here: Setup, state: State, oracle: Subproblem, leg: Leg, stop: Status | None
    ) -> tuple[State, Reading | None]:
        """How one inner solve ended: its work, memory and point become the run's."""
        solver, progress, scales = here.solver, leg.inner.progress, state.scales
        outcome, spent = solver.outcome(
            oracle if solver.host else oracle.lagrangian, state.z, leg.inner, leg.plan, leg.goal
        )
        after = replace(
            state,
            work=state.work + progress.work.tally() + spent,
            searches=state.searches + progress.searches.tally(),
            judged=state.judged + outcome.watched,
            memory=leg.inner.memory,
        )
        ended = int(progress.status)
        if ended == BROKEN and not np.isfinite(float(outcome.value)):
            return after, None
        if ended != RUNAWAY:
            after = replace(after, z=np.asarray(outcome.z))
        if ended == FARAWAY and stop is None:
            after = on_a_ray(here, after, oracle, state.z)
        constraint = np.asarray(outcome.constraint, np.float64) / scales.constraints
        multipliers = scales.multipliers(np.asarray(outcome.multipliers, np.float64))
        if here.program.population is not None:
            multipliers = complementary(multipliers, _slack_by_row(here, after))
        return after, Reading(
            outcome=outcome,
            progress=progress,
            ended=ended,
            constraint=constraint,
            multipliers=multipliers,
            candidate=self.is_candidate(here, after, constraint, ended, float(outcome.stationarity)),
            moved=not np.array_equal(np.asarray(outcome.z), np.asarray(state.z)),
            stop=stop,
        )

    def is_candidate(self, here: Setup, state: State, constraint: np.ndarray, ended: int, stationarity: float) -> bool:
        """Whether a point that is feasible enough was verified, or is one where the solver got stuck: the judge decides.

        It is stuck at a stationary point where it saw negative curvature and no way down. Where the boundary of X is curved, it
        bends what looks like negative curvature on its tangent space. Not every time.
        """
        if np.linalg.norm(constraint) > ready(here, state) or ended == RUNAWAY:
            return False
        stationary = stationarity <= gradient_tolerance(here, state) * state.scales.objective
        stuck = ended == EXHAUSTED and stationary and self.schedule is None and searches_always(state.outer)
        return ended == VERIFIED or stuck

    def learn(
        self, here: Setup, state: State, oracle: Subproblem, reading: Reading, refused: Certificate | None
    ) -> State:
        """The next multipliers and penalty; or the same, once more from elsewhere."""
        notes = state.notes
        if reading.ended == RUNAWAY:
            tried = notes.retries + 1
            runaway = np.inf if tried == RETRIES else notes.runaway
            return replace(state, penalty=state.penalty * RECOVER, notes=replace(notes, retries=tried, runaway=runaway))
        if refused is not None and is_bent(here, refused):
            state, away = escaped(here, state, oracle, refused)
            if away:
                return state
        feasible = np.linalg.norm(reading.constraint) <= ready(here, state)
        idle = 0 if reading.moved or feasible else notes.idle + 1
        tighter, idle = (state.tighter / 2, 0) if idle >= IDLE else (state.tighter, idle)
        violation = reading.constraint * state.scales.constraints
        size = float(np.linalg.norm(violation))
        first = size if notes.first_violation is None else notes.first_violation
        practical = self.schedule is None  # theorems are about al_0 beta^k
        cut_off = practical and reading.ended in (EXHAUSTED, FARAWAY)
        growth = 1.0 if cut_off else here.settings.outer.growth
        rise = 1.0 if not practical or cut_off or feasible else BOLD if here.solver.precise else RISE
        scaled = state.scales.scaled_multipliers(state.multipliers)
        dual = reading.outcome.dual
        moved_by = violation if dual is None else np.asarray(dual, np.float64)
        scaled = dual_step(scaled, moved_by, state.penalty, self._dual_bound(here, state.outer, first))
        return replace(
            state,
            multipliers=state.scales.multipliers(scaled),
            penalty=next_penalty(state.penalty, growth, size, notes.last_violation, rise),
            tighter=tighter,
            notes=replace(notes, idle=idle, last_violation=size, first_violation=first),
        )

    def _dual_bound(self, here: Setup, k: int, first_violation: float) -> float:
        """gamma_k in the solver's units."""
        if self.schedule is not None:
            return self.schedule.dual_bound(k)
        return summable_bound(k, first_violation) if here.settings.outer.bounded_dual else np.inf


def prepare(problem: Problem, x0: Any, solver: Solver, settings: Settings, warm: Start | None) -> Run:
    """A run of MESCAL, from x0, or from where another one ended."""
    here = set_up(problem, warm.x if x0 is None and warm is not None else x0, solver, settings)
    with here.watchdog:
        state, seen = _start(here, warm, set_slack=warm is None or x0 is not None)
        if here.solver.single_loop and here.solver.mode == "practical":
            from .single_loop import begun  # here: MESCAL needs nothing of it

            return begun(here, state, seen.probe)
        if here.solver.single_loop:
            from .single_theory import begun

            return begun(here, state, seen.probe)
        if here.solver.mode == "practical":
            return Run(Mescal(), here, state, seen.probe)
        if here.solver.mode == "paper":
            from .paper_schedule import make_schedule  # here: practical modes need none
        else:
            from .theory_schedule import make_schedule

        state, schedule = make_schedule(here, state)
    return Run(Mescal(schedule), replace(here, warnings=(*here.warnings, *schedule.warnings)), state, seen.probe)


def _start(here: Setup, warm: Start | None, set_slack: bool) -> tuple[State, Survey]:
    """The first state: scales from the gradients at the start, and slacks that meet the inequalities there where they can."""
    layout, settings, solver = here.program.layout, here.settings, here.solver
    scales = Scales.plain(layout.size)
    x = np.asarray(here.origin, here.dtype)
    multipliers, slack = np.zeros(layout.size), np.zeros(layout.slack_size)
    penalty = settings.outer.penalty
    if warm is not None:
        multipliers = layout.rows(warm.multipliers, "multipliers")
        slack = layout.slack_rows(warm.slack)[layout.inequality]
        penalty = max(penalty, warm.penalty)
    z, micro = np.concatenate([x, np.asarray(slack, here.dtype)]), here.micro_batch(scales)
    sub = here.subproblem(scales, multipliers, penalty, micro)
    seen = survey(sub, z, (settings.seed, SURVEY), not solver.precise)
    if set_slack and layout.slack_size:
        best = np.maximum(z[x.size :] - seen.constraint[layout.inequality], 0)
        z = np.concatenate([x, best.astype(here.dtype)])
    if settings.outer.scale and solver.mode == "practical":  # plans have units, and those of f and c
        scales = choose_scales(seen.objective_size, seen.constraint_sizes)
    if warm is not None:
        penalty = max(settings.outer.penalty, scales.scaled_penalty(warm.penalty))
    scales = moved_inwards(scales, layout, settings.tol)
    return State(
        z=z,
        multipliers=multipliers,
        memory=Memory.fresh(seen.smoothness * scales.objective, here.dtype),
        notes=Notes(runaway_size(seen.constraint * scales.constraints, seen.constraint_sizes * scales.constraints)),
        scales=scales,
        penalty=penalty,
        micro=micro,
        work=seen.work,
    ), seen


def escaped(here: Setup, state: State, sub: Subproblem, certificate: Certificate) -> tuple[State, bool]:
    """Move along the direction of the most negative curvature that the judge found, where that leads down, and whether it did."""
    if sub.looks is None or certificate.direction is None:
        return state, False
    z, direction = np.asarray(state.z), np.zeros(sub.form.size)
    direction[: sub.parameters] = certificate.direction
    curvature = certificate.curvature.value * state.scales.objective
    moved, work = escape(sub, z, direction, curvature, (here.settings.seed, state.outer, ESCAPE), 0)
    return replace(state, z=moved, work=state.work + work), not np.array_equal(moved, z)


def _slack_by_row(here: Setup, state: State) -> np.ndarray:
    """The slack of every row of c; NaN for equalities."""
    layout = here.program.layout
    slack = np.full(layout.size, np.nan)
    slack[layout.inequality] = np.asarray(state.z, np.float64)[here.program.parameters.size :]
    return slack

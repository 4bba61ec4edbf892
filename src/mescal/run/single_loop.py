"""The single loop as a method: legs of one solver that keeps to the constraints by itself, and MESCAL where it cannot.

A leg goes on until its point is stationary, feasible and without negative curvature, or a cap. Multipliers are those of its last
point, least squares; nothing is learnt between two legs but what the judge says. Where the rows of J are not independent, where
there are more than `MOST_ROWS`, or where legs end at no candidate, the run goes on as MESCAL with SPIDER, from there, and says so.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ..certificate import Certificate
from ..oracle.subproblem import Subproblem
from ..solvers.base import EXHAUSTED, IRREGULAR
from ..solvers.null_space import MOST_ROWS
from ..solvers.single_loop.known import at_multipliers
from ..solvers.spider import Spider
from .judging import is_bent
from .loop import Run
from .mescal import Mescal, Notes, escaped
from .setup import Setup
from .state import Leg, Reading, State
from .status import Status

REASONS = (
    "",
    f"MESCAL with spider took over since there are more than {MOST_ROWS} constraints",
    "MESCAL with spider took over since the constraints' gradients were not independent",
    "MESCAL with spider took over since the single loop came to no candidate",
)
MANY, DEPENDENT, STUCK = 1, 2, 3
PATIENCE = 2  # legs in a row without a candidate, or with a refused one that nothing could be learnt from


@dataclass(frozen=True)
class LoopNotes(Notes):
    """What MESCAL keeps, and since when it has taken over."""

    given_up: int = 0  # an index of `REASONS`; 0: the single loop goes on
    fruitless: int = 0  # legs in a row that came to nothing


@dataclass(frozen=True)
class SingleLoop:
    """The method."""

    after: Mescal = field(default_factory=Mescal)  # what goes on where it gives up

    def cap(self, here: Setup) -> int:
        """Legs at most."""
        return here.settings.max_outer

    def reason(self, here: Setup, state: State) -> str:
        """Why MESCAL took over, where it did."""
        return REASONS[state.notes.given_up]

    def oracle(self, here: Setup, state: State) -> Subproblem:
        """L at the present multipliers and beta."""
        return self.after.oracle(_who(here, state), state)

    def plan(self, here: Setup, state: State, oracle: Subproblem, goal: Any = None) -> tuple[State, Leg]:
        """The next leg; its tolerances and batches are those of an inner solve."""
        return self.after.plan(_who(here, state), state, oracle, goal)

    def init(self, here: Setup, state: State, oracle: Subproblem, leg: Leg, copy: int = 0) -> Any:
        """The solver's state at the present point."""
        return self.after.init(_who(here, state), state, oracle, leg, copy)

    def step(self, here: Setup, oracle: Subproblem, leg: Leg) -> Any:
        """A chunk of epochs."""
        return self.after.step(_of(here, leg), oracle, leg)

    def read(
        self, here: Setup, state: State, oracle: Subproblem, leg: Leg, stop: Status | None
    ) -> tuple[State, Reading | None]:
        """The solver's outcome, and multipliers and beta as they are now."""
        after, reading = self.after.read(_who(here, state), state, oracle, leg, stop)
        if state.notes.given_up or reading is None:
            return after, reading
        return replace(after, multipliers=reading.multipliers, penalty=float(leg.inner.penalty)), reading

    def learn(
        self, here: Setup, state: State, oracle: Subproblem, reading: Reading, refused: Certificate | None
    ) -> State:
        """The multipliers of the point; a move along what the judge found; MESCAL where the loop can do no more."""
        notes = state.notes
        if notes.given_up:
            return self.after.learn(_who(here, state), state, oracle, reading, refused)
        if (
            reading.ended == IRREGULAR
        ):  # what dependent rows have for multipliers, and the beta that followed, mean nothing
            started = replace(state, multipliers=np.zeros_like(state.multipliers), penalty=here.settings.outer.penalty)
            return _given_up(started, DEPENDENT)
        if refused is not None and is_bent(here, refused):
            scaled = state.scales.scaled_multipliers(reading.multipliers)
            state, away = escaped(here, state, at_multipliers(oracle, scaled, state.penalty), refused)
            if away:
                return replace(state, notes=replace(notes, fruitless=0))
        fruitless = notes.fruitless + 1 if reading.ended == EXHAUSTED or not reading.moved else 0
        if fruitless >= PATIENCE:
            return _given_up(state, STUCK)
        return replace(state, notes=replace(notes, fruitless=fruitless))


def begun(here: Setup, state: State, probe: np.ndarray) -> Run:
    """A run of the single loop from a state of MESCAL's; MESCAL's own where there are too many rows."""
    state = replace(state, notes=LoopNotes(**asdict(state.notes)))
    if here.program.layout.size > MOST_ROWS:
        state = _given_up(state, MANY)
    return Run(SingleLoop(), here, state, probe)


def _given_up(state: State, why: int) -> State:
    return replace(state, notes=replace(state.notes, given_up=why))


def _who(here: Setup, state: State) -> Setup:
    """With SPIDER in the solver's place once MESCAL has taken over."""
    return here if not state.notes.given_up else replace(here, solver=_second(here))


def _of(here: Setup, leg: Leg) -> Setup:
    """The same, by what a leg is made of."""
    return here if leg.plan == () else replace(here, solver=_second(here))


def _second(here: Setup) -> Spider:
    return Spider(search=here.solver.search).sized(here.program.population)

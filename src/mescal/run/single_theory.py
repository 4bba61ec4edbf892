"""The single loop in theory mode as a method: one leg, whose parameters and success probability are those of `theory.null_space`.

There is no outer loop, hence no penalty that grows and no K*: a leg ends at a point that is stationary, feasible and without
negative curvature, or has used up its steps, and the judge looks at what it ended with. `success=p` needs no copies: the
failure that is allowed, 1 - p, is an argument of the formulas; steps grow like 1/(1 - p), batches like its logarithm.
"""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from ..certificate import Certificate
from ..errors import InputError
from ..oracle.draw import fold_in
from ..oracle.subproblem import Subproblem
from ..sets import Reals
from ..solvers.base import IRREGULAR, VERIFIED, Goal
from ..solvers.null_space import MOST_ROWS
from ..solvers.paper.theory_mode import LARGEST, TheorySolver
from ..theory import merit, null_space
from ..theory.constants import ProblemConstants
from ..theory.estimates import measure_constants
from .between_solves import gradient_tolerance
from .loop import Run
from .mescal import Mescal, Notes
from .setup import Setup
from .state import Leg, Reading, State
from .status import Status
from .theory_schedule import ESTIMATED, check_sizes

CONTRADICTED = "the constraints' gradients came closer to dependent than the constants allow: no guarantee holds there"


@dataclass(frozen=True)
class TheoryNotes(Notes):
    """What MESCAL keeps, and whether the run met what its constants exclude."""

    contradicted: int = 0


@dataclass(frozen=True)
class SingleTheory:
    """The method."""

    solver: TheorySolver
    constants: ProblemConstants
    legs: Mescal = field(default_factory=Mescal)  # takes a leg for us: what is asked of it is not what MESCAL asks

    def cap(self, here: Setup) -> int:
        """One leg."""
        return 1

    def reason(self, here: Setup, state: State) -> str:
        """Why the guarantee is void, where it is."""
        return CONTRADICTED if state.notes.contradicted else ""

    def oracle(self, here: Setup, state: State) -> Subproblem:
        """f, c and their derivatives; the multipliers in it are not used."""
        return self.legs.oracle(here, state)

    def plan(self, here: Setup, state: State, oracle: Subproblem, goal: Any = None) -> tuple[State, Leg]:
        """The leg."""
        if goal is None:
            state, goal = self._goal(here, state, oracle)
        return self.legs.plan(here, state, oracle, goal)

    def _goal(self, here: Setup, state: State, oracle: Subproblem) -> tuple[State, Goal]:
        """The constants of the merit function; on finite populations with its value at the start."""
        gradient, tolerance = gradient_tolerance(here, state), here.settings.tol
        weight = merit.merit_weight(self.constants, gradient, tolerance.gradient)
        start = None
        if oracle.looks is not None:
            before = oracle.looks.tally
            at = oracle.looks.at(np.asarray(state.z, np.float64), rounded=False)
            state = replace(state, work=state.work + (oracle.looks.tally - before))
            multipliers = -np.linalg.lstsq(at.jacobian.T, at.gradient, rcond=None)[0]
            penalty = 2 * weight / self.constants.regularity
            start = float(at.objective + (multipliers + penalty / 2 * at.constraint) @ at.constraint)
        constants = merit.merit_constants(
            self.constants, gradient, tolerance.gradient, start=start, sharp=self.solver.sharp
        )
        success = here.asked.success
        return state, Goal(
            gradient=gradient,
            curvature=tolerance.curvature,
            steps=LARGEST,
            population=here.program.population,
            large_batch=0,
            curvature_batch=0,
            constants=constants,
            dual_batch=2,
            dimension=self.constants.dimension,
            failure=1 - (null_space.SUCCESS_PROBABILITY if success is None else success),
        )

    def init(self, here: Setup, state: State, oracle: Subproblem, leg: Leg, copy: int = 0) -> Any:
        """The solver's state at the start."""
        return self.legs.init(here, state, oracle, leg, copy)

    def step(self, here: Setup, oracle: Subproblem, leg: Leg) -> Any:
        """A chunk of steps."""
        return self.legs.step(here, oracle, leg)

    def read(
        self, here: Setup, state: State, oracle: Subproblem, leg: Leg, stop: Status | None
    ) -> tuple[State, Reading | None]:
        """The point, with its multipliers of least squares: a candidate where the leg came to its end."""
        after, reading = self.legs.read(here, state, oracle, leg, stop)
        if reading is None:
            return after, None
        notes = replace(after.notes, contradicted=int(reading.ended == IRREGULAR))
        after = replace(after, multipliers=reading.multipliers, penalty=leg.goal.constants.penalty, notes=notes)
        return after, reading._replace(candidate=reading.ended == VERIFIED)

    def learn(
        self, here: Setup, state: State, oracle: Subproblem, reading: Reading, refused: Certificate | None
    ) -> State:
        """Nothing: there is no other leg."""
        return state


def begun(here: Setup, state: State, probe: np.ndarray) -> Run:
    """A run of the theory mode, or an error where the derivation does not hold; constants are estimated where none were given."""
    _check(here)
    form, constants, warnings = here.form(state.scales), here.asked.constants, ()
    if constants is None:
        key = fold_in(here.key, (1 << 30) - 1)
        estimated = measure_constants(form, here.data, state.z, key, independent=True)
        state = replace(state, work=state.work + estimated.work)
        constants, warnings = estimated.constants, (ESTIMATED,)
    check_sizes(constants, form)
    state = replace(state, notes=TheoryNotes(**asdict(state.notes)))
    assert isinstance(here.solver, TheorySolver)
    return Run(SingleTheory(here.solver, constants), replace(here, warnings=warnings), state, probe)


def _check(here: Setup):
    """Raise where nothing is derived."""
    layout, domain, name = here.program.layout, here.problem.domain, here.solver.name
    if layout.slack_size:
        raise InputError(
            f"{layout.slack_size} inequalities for the solver {name!r}",
            "equalities alone: nothing is derived for it where active rows change",
            "use 'spider-theory', whose theorem takes them, or 'null-space', whose answer is judged",
        )
    if not isinstance(domain, Reals):
        raise InputError(
            f"the domain {domain} for the solver {name!r}",
            "all of space: nothing is derived for it on other sets",
            "leave the domain out, or use 'spider-theory' or 'null-space'",
        )
    if not 1 <= layout.size <= min(MOST_ROWS, here.program.parameters.size):
        raise InputError(
            f"{layout.size} scalar constraints on {here.program.parameters.size} variables for the solver {name!r}",
            f"from 1 to {MOST_ROWS} of them, and no more than variables: their gradients are to be independent",
            "use 'spider-theory'",
        )
    if here.asked.option != "II":
        raise InputError(
            f"option={here.asked.option!r} for the solver {name!r}",
            "'II': its guarantee is a probability",
            "leave option out, or give success=0.95",
        )

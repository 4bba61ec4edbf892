"""What a theory mode is asked for, outer iteration by outer iteration: Algorithm 1 as its theorems are about it.

    al_k = al_0 beta^k, k = 0..K*;   gamma_k summable;   |S^d| = ceil(sigma_c^2/eps^2);   tolerances eps_g, eps_H throughout

Option II: every solve succeeds with the probability of its theorem, or, boosted, with p_k = p^(1/(K*+1)), so that x_K is
good and the work is as predicted, together, with probability >= p. Option I: solves are boosted until the two measures
hold in expectation (`theory.boosting`).

1. The constants of subproblem k are those of Lemmas 3.2-3.5 at the multiplier that it has, |lam_k| <= Lambda.
2. Its gap is 2 kappa_f + |lam_k|^2/al_k + al_k kappa_c^2, which always holds; on finite populations L(z_{k-1}) is known,
   and the bound that follows from it is used where it is smaller.
3. The dual sample also tells how stationary the point is: it has at least (s_g/eps_g)^2 thetas.
4. gamma_k = al_0 (kappa_c + sigma_c) log^2 2/((k+1) log^2(k+2)): Lambda, and with it K*, are known before the run.
5. Where a condition of the theorems does not hold the run goes on, and `result.warnings` says so: X other than R^d, slacks of
inequalities included; tolerances that the lemma on the solver's work does not allow; a success probability that is not
proved for the constants in use.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..compiling import compiled
from ..errors import InputError
from ..oracle import Lagrangian
from ..oracle.draw import fold_in
from ..problem import EqualityForm
from ..sets import Reals
from ..solvers.base import Goal
from ..solvers.paper.theory_mode import LARGEST, TheorySolver
from ..theory import boosting, gap, natasha2, outer
from ..theory.boosting import Boost
from ..theory.complexity import SOLVERS
from ..theory.constants import ProblemConstants, SubproblemConstants, subproblem_constants
from ..theory.counts import count
from ..theory.estimates import measure_constants
from ..theory.outer import Schedule
from .between_solves import gradient_tolerance
from .setup import Setup
from .state import State

EVERYWHERE = (
    "The theorems are about X = R^d. Here {what}, so that moves are projected and searches keep to the face of the point:"
    " parameters follow the formulas, but no probability is promised."
)
UNMET = (
    "Subproblem {k} is outside of what the lemma on the work of {name} allows: {what} The steps stay right; the predicted order of"
    " their number is not promised."
)
ESTIMATED = (
    "The constants of the theorems were estimated from samples near the start, since none were given: parameters follow"
    " the formulas, but no probability is promised."
)


@dataclass(frozen=True)
class TheorySchedule:
    """The theory's schedule for one run."""

    solver: TheorySolver
    constants: ProblemConstants
    schedule: Schedule
    last: int  # K*
    option: str
    success: float | None
    dual_batch: int
    warnings: tuple[str, ...] = ()

    def dual_bound(self, k: int) -> float:
        """gamma_k."""
        return outer.dual_bound(k, self.constants.sampled_constraint_bound, self.schedule.initial_penalty)

    def request(self, here: Setup, state: State, oracle: Lagrangian) -> tuple[State, Goal, Boost | None]:
        """What is asked of each copy of the present inner solve, and how copies are checked (None: one copy, unchecked)."""
        size, penalty = float(np.linalg.norm(state.multipliers)), state.penalty
        local = Schedule(initial_penalty=penalty, growth=self.schedule.growth, multiplier_bound=size)
        bound = gap.deterministic_bound(self.constants, local, 0)
        if oracle.population is not None:
            value, work = _value(oracle, state.z)
            state = replace(state, work=state.work + work.tally())
            bound = min(bound, gap.bound_from_values(float(value), -self.constants.objective_bound, size, penalty))
        constants = subproblem_constants(self.constants, size, penalty, bound, sharp=self.solver.sharp)
        gradient, curvature = gradient_tolerance(here, state), here.settings.tol.curvature
        boost = self._boost(constants, gradient, curvature, local)
        if boost is not None:
            gradient, curvature = boost.gradient_tolerance, boost.curvature_tolerance
        goal = Goal(
            gradient=gradient,
            curvature=curvature,
            steps=LARGEST,
            population=oracle.population,
            large_batch=0,
            curvature_batch=0,
            constants=constants,
            dual_batch=min(LARGEST, max(self.dual_batch, count((constants.gradient_noise / gradient) ** 2))),
            dimension=self.constants.dimension,
        )
        return state, goal, boost

    def _boost(
        self, constants: SubproblemConstants, gradient: float, curvature: float, local: Schedule
    ) -> Boost | None:
        base = self.solver.guarantee
        assert base is not None
        if self.option == "I":
            bound = boosting.gradient_bound(self.constants, local, local.initial_penalty)
            one = boosting.option_one(constants, gradient, curvature, bound, base)
            halves = one.gradient_tolerance, one.curvature_tolerance
            return boosting.boost(constants, *halves, 1 - one.failure, base)
        if self.success is None:
            return None
        wanted = outer.success_probability(self.success, self.last, "both")
        return boosting.boost(constants, gradient, curvature, wanted, base) if wanted > base else None


def make_schedule(here: Setup, state: State) -> tuple[State, TheorySchedule]:
    """The schedule of a theory mode from the constants, which are estimated where none were given."""
    solver, form, settings = here.solver, here.form(state.scales), here.settings
    assert isinstance(solver, TheorySolver)
    warnings: tuple[str, ...] = ()
    constants = here.asked.constants
    if constants is None:
        estimated = measure_constants(form, here.data, state.z, fold_in(here.key, (1 << 30) - 1))
        state = replace(state, work=state.work + estimated.work)
        constants, warnings = estimated.constants, (ESTIMATED,)
    check_sizes(constants, form)
    start = float(np.linalg.norm(state.multipliers))
    total = outer.dual_bound_total(constants.sampled_constraint_bound, state.penalty)
    schedule = Schedule(
        initial_penalty=state.penalty,
        growth=settings.outer.growth,
        multiplier_bound=outer.multiplier_bound(start, total),
    )
    tolerance = settings.tol.gradient
    samples = outer.dual_sample_size(constants.constraint_noise, tolerance)
    if samples > LARGEST:
        raise InputError(
            f"the dual update asks for {samples:.3g} samples of the constraint",
            f"at most 2^31 - 1 = {LARGEST}",
            "loosen the tolerance, or use a practical mode",
        )
    last = outer.iteration_bound(constants, schedule, tolerance)
    warnings = (*warnings, *_unmet(here, constants, schedule, last))
    return state, TheorySchedule(
        solver=solver,
        constants=constants,
        schedule=schedule,
        last=last,
        option=here.asked.option,
        success=here.asked.success,
        dual_batch=max(2, samples),
        warnings=warnings,
    )


def _unmet(here: Setup, constants: ProblemConstants, schedule: Schedule, last: int) -> tuple[str, ...]:
    """What the theorems ask for and this run does not meet, in sentences."""
    said, asked, name = [], here.asked, here.solver.name.removesuffix("-theory")
    layout = here.program.layout
    if not isinstance(here.problem.domain, Reals):
        said.append(EVERYWHERE.format(what=f"X is {here.problem.domain}"))
    elif layout.slack_size:
        said.append(EVERYWHERE.format(what="the slacks of inequalities have to be >= 0"))
    if name == natasha2.NAME and (asked.success is not None or asked.option == "I"):
        said.append(natasha2.UNPROVEN)
    if name in SOLVERS:
        tolerances = here.settings.tol.gradient, here.settings.tol.curvature
        for k in sorted({0, last}):
            bound = gap.deterministic_bound(constants, schedule, k)
            local = subproblem_constants(
                constants, schedule.multiplier_bound, schedule.penalty(k), bound, sharp=here.solver.sharp
            )
            found = SOLVERS[name].violations(local, *tolerances)
            if found:
                said.append(UNMET.format(k=k, name=here.solver.name, what=" ".join(found)))
                break
    return tuple(said)


def check_sizes(constants: ProblemConstants, form: EqualityForm):
    """Raise where constants are those of a problem of another size."""
    for what, given, found in (
        ("variables, slacks of inequalities included", constants.dimension, form.size),
        ("scalar constraints", constants.constraint_count, form.constraints),
    ):
        if given != found:
            raise InputError(
                f"constants of a problem with {given} {what}; this one has {found}",
                f"constants of the equality form, with {found}",
                "leave constants out to have them estimated, or correct them",
            )


@compiled
def _value(oracle: Lagrangian, z):
    return oracle.exact_value(z)

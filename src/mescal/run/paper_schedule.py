"""Algorithm 1 as the paper's section 5 ran it: what a paper mode is asked for, outer iteration by outer iteration.

    al_k = 1.1^(k+1);   lam_0 = 0;   gamma_k infinite;   the same tolerances throughout;   nothing is scaled, and al_k never rises
    by more;   inner solves end by the paper's test in z = (x, s), the run where |c(x) + s| <= eps_g, too, and the judge agrees

The test is exact, so that p_k is 1 where it is met. Every one of these can be set: al_0 and beta by `Outer(penalty=, growth=)`, the
others by the solver. What the first look at a problem costs is no step of the algorithm and counted with the judge's work.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import InputError
from ..oracle import Lagrangian, Tally
from ..solvers.base import Goal
from ..solvers.paper.paper_mode import PaperSolver
from .between_solves import gradient_tolerance
from .setup import Setup
from .state import State

NEVER = 2**62  # an outer iteration that is not reached: the cap is `max_outer`


@dataclass(frozen=True)
class PaperSchedule:
    """The schedule of one run."""

    solver: PaperSolver
    last: int = NEVER
    warnings: tuple[str, ...] = ()

    def dual_bound(self, k: int) -> float:
        """gamma_k."""
        return held(self.solver.gamma, k)

    def request(self, here: Setup, state: State, oracle: Lagrangian) -> tuple[State, Goal, None]:
        """What is asked of the present inner solve."""
        return (
            state,
            Goal(
                gradient=gradient_tolerance(here, state) * state.tighter,
                curvature=here.settings.tol.curvature,
                steps=self.solver.inner_steps,
                population=here.program.population,
                large_batch=0,
                curvature_batch=0,
                dual_batch=held(self.solver.dual_batch, state.outer),
                penalty=float(state.penalty),
            ),
            None,
        )


def held(sequence: tuple[Any, ...], k: int) -> Any:
    """The k-th of a sequence whose last one holds on."""
    return sequence[min(k, len(sequence) - 1)]


def make_schedule(here: Setup, state: State) -> tuple[State, PaperSchedule]:
    """The schedule, with lambda_0 in the state; a paper mode needs finite populations, since its test is exact."""
    solver, size = here.solver, here.program.layout.size
    assert isinstance(solver, PaperSolver)
    if here.looks is None:
        raise InputError(
            f"a stream for the solver {solver.name!r}",
            "finite populations, as in the paper's experiments: its test looks at all rows",
            f"use {solver.name.replace('-paper', '-theory')!r} or {solver.name.removesuffix('-paper')!r}, which take streams",
        )
    given = solver.multipliers
    if len(given) not in (1, size):
        raise InputError(
            f"{len(given)} multipliers to start with", f"1 or {size}, one for each row of c", "leave them out"
        )
    first = np.broadcast_to(np.asarray(given, np.float64), (size,)).copy()
    started = state.multipliers if state.multipliers.any() else first
    return replace(state, multipliers=started, work=Tally(), judged=state.judged + state.work), PaperSchedule(solver)

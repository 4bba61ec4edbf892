"""A large problem is solved on some of its rows first: most of the way to a solution costs a fraction of a pass then.

The solution on n rows is off by what n rows say of the whole, some c n^(-1/2). What is left on all of them takes a few
passes, where a start from nowhere takes dozens (measured: benchmarks/growth.py). Nothing depends on it but work: the run
that follows is an ordinary one with a warm start, and its certificate is about all rows.
"""

import logging
import math
from dataclasses import replace
from typing import Any

from ..problem import Population, Problem
from ..problem.subsample import subsample
from ..solvers.base import Solver
from .limits import Clock, Signals
from .loop import Run
from .mescal import prepare
from .result import Result
from .settings import Settings
from .setup import Start
from .status import Status

log = logging.getLogger("mescal")


def begin(
    problem: Problem, x0: Any, solver: Solver, settings: Settings, start: Start | None
) -> tuple[Run, Start | None]:
    """The run, and what it starts from: the solution on some rows, where the solver asks for one and it was found."""
    if start is not None:
        return prepare(problem, x0, solver, settings, start), start
    clock = Clock()
    first, rows = _rehearse(problem, x0, solver, settings)
    if first is None:
        return prepare(problem, x0, solver, settings, None), None
    start = Start.of(first) if first.converged else None
    run = prepare(problem, None if start else x0, solver, settings, start)
    ended = "it began at a solution" if start else "no solution to begin at was found"
    here = replace(
        run.here,
        clock=clock,
        signals=Signals(asked=first.status is Status.INTERRUPTED),
        reason=f"{run.here.reason}; {ended} on {rows} rows, which took {first.work.total:.2g} of the evaluations",
    )
    state = replace(
        run.state,
        work=run.state.work + first.work.solver,
        judged=run.state.judged + first.work.judge,
        searches=run.state.searches + first.work.searches,
    )
    return run._replace(here=here, state=state), start


def _rehearse(problem: Problem, x0: Any, solver: Solver, settings: Settings) -> tuple[Result | None, int]:
    sizes = [source.size for source in problem.sources]
    largest = max((size or 0 for size in sizes), default=0)
    rows = math.ceil(solver.share(None if None in sizes else largest) * largest)
    if rows >= largest or not all(isinstance(source, Population) for source in problem.sources):
        return None, rows  # a part of rows on disk may exceed memory, and sharded ones are not at hand
    log.info("First a solution on %d rows of each population, then on all", rows)
    quiet = replace(settings, callback=None, progress=None, checkpoint=None, record=None)
    run, _ = begin(subsample(problem, rows, settings.seed), x0, solver, quiet, None)
    return run.go(), rows

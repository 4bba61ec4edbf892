"""Curves of a run, a point for every look at L from outside: with work, least eigenvalue, stationarity and feasibility.

A paper mode is looked at where it looks at itself; a practical solver after every step, which is an epoch, by `Watched` around it.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from mescal.oracle.subproblem import Subproblem
from mescal.solvers.base import Solver, SubSolver
from mescal.solvers.paper.paper_mode import Look, exact_look


class Watched(SubSolver):
    """A practical solver whose every step is looked at; nothing in it changes, and no look is work of its own."""

    name: ClassVar[str] = "watched"

    solver: Any
    watch: Callable[[float, Look], Any]

    def sized(self, population: int | None) -> "Watched":
        """The solver inside, for a population."""
        assert isinstance(self.solver, Solver)
        return Watched(self.solver.sized(population), self.watch)

    def pace(self, goal):
        """Of the solver inside."""
        return self.solver.pace(goal)

    def plan(self, goal, dtype):
        """Of the solver inside."""
        return self.solver.plan(goal, dtype)

    def init(self, oracle, z, plan, memory, key):
        """Of the solver inside."""
        return self.solver.init(oracle, z, plan, memory, key)

    def step(self, oracle, state, plan, goal=None):
        """Of the solver inside, and a look."""
        state = self.solver.step(oracle, state, plan, goal)
        progress = state.progress
        z, steps, work = np.asarray(progress.z), int(progress.steps), progress.work.tally().total
        look, _ = exact_look(oracle, z, goal, steps, work, np.inf)
        self.watch(oracle.penalty, in_own_units(oracle, look))
        return state

    def outcome(self, oracle, start, state, plan, goal):
        """Of the solver inside."""
        return self.solver.outcome(oracle, start, state, plan, goal)


def in_own_units(sub: Subproblem, look: Look) -> Look:
    """A look at L in units of the problem; that of the solver is `factor` times L, with constraints in a unit of their own."""
    return look._replace(
        stationarity=look.stationarity / sub.factor,
        curvature=look.curvature / sub.factor,
        constraint=look.constraint / sub.scale,
    )


class Curve:
    """Points of a run, from the looks at its inner solves."""

    def __init__(self):
        self.looks: list[tuple[int, Any]] = []  # each with its outer iteration
        self.outer, self.penalty = -1, np.nan

    def __call__(self, penalty: float, look: Any):
        """One look; an inner solve begins where the penalty is another one, or steps count from one again."""
        if penalty != self.penalty or look.steps <= self.looks[-1][1].steps:
            self.outer, self.penalty = self.outer + 1, penalty
        self.looks.append((self.outer, look))

    def points(self, begun: Sequence[float]) -> list[list[float]]:
        """Outer iteration, work, curvature, stationarity, feasibility; an inner solve begins at so much work of the run."""
        return [
            [outer, begun[outer] + look.work, look.curvature, look.stationarity, float(np.linalg.norm(look.constraint))]
            for outer, look in self.looks
        ]


def thinned(points: Sequence[Sequence[float]], most: int = 150) -> list[Sequence[float]]:
    """At most so many points, evenly, with the last one of every outer iteration."""
    every = -(-len(points) // most)
    last = [i + 1 == len(points) or points[i + 1][0] != point[0] for i, point in enumerate(points)]
    return [point for i, point in enumerate(points) if i % every == 0 or last[i]]

"""Inner solves of paper modes, watched step by step, on the subproblem of a small problem with one inequality."""

from typing import ClassVar

import numpy as np

from mescal.curvature import Search
from mescal.curvature.contract import nothing
from mescal.oracle import Lagrangian, Work, surrogate
from mescal.oracle.evaluator import evaluator_of
from mescal.oracle.subproblem import Subproblem
from mescal.problem import equality_form
from mescal.solvers.base import Goal, Memory
from mescal.solvers.drive import advance, begin
from mescal.testing.exercises import ROWS, nearest

PENALTY = 2.0


class Nowhere(Search):
    """Finds nothing, for one product."""

    name: ClassVar[str] = "nowhere"

    def __call__(self, oracle, z, tolerance, key, batch):
        return nothing(z), Work.of(hvp_samples=1)


def subproblem_of_nearest() -> Subproblem:
    """The subproblem of a problem with one inequality, at a multiplier, a penalty, and no slack."""
    at = nearest()
    program, _ = at.problem.bind(at.x0, dtype=np.dtype(np.float32))
    exact, _ = at.problem.bind(at.x0)
    oracle = Lagrangian(
        equality_form(program, at.problem.domain),
        at.problem.device_data(program, np.float32),
        np.asarray([0.1], np.float32),  # pyright: ignore[reportArgumentType]
        np.asarray(PENALTY, np.float32),  # pyright: ignore[reportArgumentType]
        surrogate("cross"),
    )
    return Subproblem(oracle, evaluator_of(at.problem, exact))


def walk(solver, sub, calls):
    """States after every one of so many calls of `step`, the start first."""
    goal = Goal(1e-6, 1e-6, 100, ROWS, ROWS, ROWS, penalty=PENALTY)
    plan = solver.plan(goal, np.float32)
    z, key = 3 * np.ones(sub.form.size, np.float32), np.array([0, 1], np.uint32)
    states = [begin(solver, sub, z, plan, Memory.fresh(1.0, np.float32), key)]
    for _ in range(calls):
        states.append(advance(solver, sub, states[-1], plan, goal, 1))
    return [state.progress for state in states]


def lengths(walked):
    points = np.stack([np.asarray(progress.z, np.float64) for progress in walked])
    return np.linalg.norm(np.diff(points, axis=0), axis=1)

"""What deterministic peers share: exact passes over finite data, or over the average of a fixed number of draws.

On a stream they solve the average of `task.draws` samples, drawn once; every pass over it counts that many evaluations, so
that the budget is the same as everyone's. More draws make the average sharper and leave fewer passes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .._measure import clock
from ..harness.functions import First, Functions, domain_is_bounds
from ..harness.task import Answer, Kind, Task

EXACT_HESSIAN = 60  # variables, and rows times variables at most the next number, up to which Hessians are exact
EXACT_COST = 100_000


class Exhausted(Exception):
    """The budget is spent."""


def small(functions: Functions) -> bool:
    """Whether dense exact Hessians cost little: few variables and few rows."""
    n, population = functions.x0.size, functions.program.population or 1
    return n <= EXACT_HESSIAN and n * population <= EXACT_COST


@dataclass(frozen=True)
class Deterministic:
    """A peer that needs exact functions."""

    name: str
    run: Callable[[Functions, Task, Callable[..., First]], Answer]
    products: bool = False  # whether it asks for Hessian products where Hessians cost too much
    kind: Kind = "peer"
    stops: bool = True

    def declines(self, task: Task) -> str | None:
        """Domains other than bounds, and streams without an average."""
        if task.stream and task.average is None:
            return "it needs exact values"
        return domain_is_bounds(task.problem)

    def solve(self, task: Task) -> Answer:
        """Run it on the exact functions; compiled before the clock starts."""
        functions = self._functions(task)
        start = clock()
        functions.first(functions.x0)
        if small(functions):
            functions.hessian(functions.x0, 1.0, np.zeros(functions.m))
        elif self.products:
            functions.hessian_operator(functions.x0, 1.0, np.zeros(functions.m)).matvec(functions.x0)
        compiled = clock() - start
        functions.reset()
        last = [functions.x0]
        start = clock()

        def charged(x) -> First:
            if functions.work + functions.per_pass > task.budget.work or clock() - start > task.budget.seconds:
                raise Exhausted
            last[0] = np.array(x)
            return functions.first(x)

        try:
            answer = self.run(functions, task, charged)
        except Exhausted:
            answer = Answer(last[0], False, "evaluation limit", 0.0, 0.0)
        return replace(answer, work=functions.work, seconds=clock() - start, compile=compiled)

    def _functions(self, task: Task) -> Functions:
        key = ("functions", task.draws, task.seed if task.stream else None)
        if key not in task.memo:
            problem, size = task.fixed()
            task.memo[key] = Functions(problem, task.x0, size)
        return task.memo[key]

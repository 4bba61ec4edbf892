"""What people use today: the augmented Lagrangian with scipy's L-BFGS-B on full gradients.

Fair best effort: float64, slacks eliminated in closed form, multipliers and penalties as in MESCAL's practical schedule,
warm starts, and its own stopping test on values it has already computed, so that nothing is over-solved.
"""

from dataclasses import dataclass

import numpy as np
import scipy.optimize

import mescal
from mescal.oracle.evaluator import evaluator_of
from mescal.oracle.lagrangian import one_pass

from .._measure import clock
from ..harness.functions import Functions, domain_is_bounds
from ..harness.task import Answer, Kind, Task

VERIFY, READY = 0.9, 0.95  # of the tolerance: stationarity and violation that end a solve, as in MESCAL
MEMORY = 10  # pairs, scipy's default
OUTER, INNER = 200, 3000


@dataclass(frozen=True)
class Solved:
    """Where it ended and what it cost."""

    x: np.ndarray
    multipliers: np.ndarray
    slack: np.ndarray
    passes: int
    population: int
    outer: int
    finished: bool
    status: str = ""

    @property
    def work(self) -> int:
        """Gradients per theta: passes times the size of a pass."""
        return self.passes * self.population


class LbfgsB:
    """AL + L-BFGS-B on one problem; compiled once."""

    def __init__(self, problem: mescal.Problem, x0: np.ndarray):
        self.x0 = np.asarray(x0, np.float64)
        self.program, _ = problem.bind(self.x0)
        self.looks = evaluator_of(problem, self.program)
        population = self.program.population
        assert population is not None
        self.population = population
        self.low, self.high = Functions(problem, x0).bounds()

    def evaluate(
        self, x: np.ndarray, multipliers: np.ndarray, penalty: float
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """Value and gradient in x at the best slacks, the constraint with them, and the slacks; few constraints in one pass."""
        at = self.looks.at(x) if one_pass(self.program) else None
        objective, constraint = self.looks.values(x) if at is None else (at.objective, at.constraint)
        inequality = self.program.layout.inequality
        slack = np.where(inequality, np.maximum(0, -(constraint + multipliers / penalty)), 0.0)
        shifted = constraint + slack
        weight = multipliers + penalty * shifted
        gradient = self.looks.slope(x, 1.0, weight) if at is None else at.gradient + weight @ at.jacobian
        value = objective + (multipliers + penalty / 2 * shifted) @ shifted
        return float(value), gradient, shifted, slack[inequality]

    def solve(self, tol: float, max_passes: float = np.inf, max_seconds: float = np.inf) -> Solved:
        """To stationarity and feasibility of `tol`; the second order is nobody's business here."""
        return self._solve(tol, max_passes, clock() + max_seconds)

    def _stationarity(self, x: np.ndarray, gradient: np.ndarray) -> float:
        """The length of the step that a unit gradient step makes within the bounds."""
        return float(np.linalg.norm(x - np.clip(x - gradient, self.low, self.high)))

    def _solve(self, tol: float, max_passes: float, deadline: float) -> Solved:
        x, lam = self.x0, np.zeros(self.program.layout.size)
        passes, last = 0, None
        for k in range(OUTER):
            penalty = 1.1 ** (k + 1)
            seen: dict[str, np.ndarray] = {}

            def full(x, lam=lam, penalty=penalty, seen=seen):
                nonlocal passes
                if seen and (passes >= max_passes or clock() > deadline):
                    raise StopIteration
                passes += 1
                value, gradient, constraint, slack = self.evaluate(x, lam, penalty)
                seen.update(x=np.array(x), gradient=gradient, constraint=constraint, slack=slack)
                return value, gradient

            def small(xk, seen=seen):
                if np.array_equal(xk, seen["x"]) and self._stationarity(seen["x"], seen["gradient"]) <= VERIFY * tol:
                    raise StopIteration

            options = {"maxiter": INNER, "maxcor": MEMORY, "ftol": 0.0, "gtol": VERIFY * tol / np.sqrt(x.size)}
            bounds = scipy.optimize.Bounds(self.low, self.high)
            try:
                x = scipy.optimize.minimize(
                    full, x, jac=True, method="L-BFGS-B", bounds=bounds, callback=small, options=options
                ).x
                if not np.array_equal(x, seen["x"]):
                    full(x)
            except StopIteration:
                return Solved(seen["x"], lam, seen["slack"], passes, self.population, k + 1, False, "evaluation limit")
            violation = np.linalg.norm(seen["constraint"])
            lam = lam + penalty * seen["constraint"]
            last = (x, lam, seen["slack"])
            if violation <= READY * tol and self._stationarity(x, seen["gradient"]) <= tol:
                return Solved(*last, passes, self.population, k + 1, True, "stationary and feasible")
        assert last is not None
        return Solved(*last, passes, self.population, OUTER, False, "outer limit")


@dataclass(frozen=True)
class AugmentedLbfgsB:
    """The peer as a method; on streams it solves the average of `task.draws` samples."""

    name: str = "AL + L-BFGS-B"
    kind: Kind = "peer"
    stops: bool = True

    def declines(self, task: Task) -> str | None:
        """Domains other than bounds."""
        return domain_is_bounds(task.problem)

    def solve(self, task: Task) -> Answer:
        """Compiled before the clock starts."""
        key = ("al-lbfgsb", task.draws, task.seed if task.stream else None)
        problem, size = task.fixed()
        start = clock()
        if key not in task.memo:
            task.memo[key] = LbfgsB(problem, task.x0)
            task.memo[key].solve(1e-1, max_passes=2)
        peer, compiled = task.memo[key], clock() - start
        start = clock()
        solved = peer.solve(task.tol, task.budget.work / size, task.budget.seconds)
        seconds = clock() - start
        multipliers = {}
        layout = peer.program.layout
        for name, rows in zip(layout.names, layout.slices, strict=True):
            multipliers[name] = solved.multipliers[rows]
        return Answer(
            solved.x,
            solved.finished,
            solved.status,
            solved.passes * size,
            seconds,
            compiled,
            multipliers,
            {"iterations": solved.outer},
        )


METHODS = (AugmentedLbfgsB(),)

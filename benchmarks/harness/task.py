"""What a method is given and what it hands back: one protocol for our solvers, the baselines and the peers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

import mescal

Kind = Literal["ours", "baseline", "peer"]


@dataclass(frozen=True)
class Budget:
    """What a run may use: evaluations (gradients + 2 Hessian products, per sample) and seconds."""

    work: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Task:
    """A problem, a tolerance, a seed and a budget.

    **Arguments:**

    - `problem`: what the method sees; a stream or finite data.
    - `judged`: what its answer is held to: the same problem in expectation, exact where that is known.
    - `average`: for streams, the average over a number of draws and a seed, for methods that need one fixed problem.
    - `draws`: how many they average over.
    - `cone`: the cone on which curvature decides.
    - `memo`: what methods keep between solves of the same problem, such as compiled functions.
    """

    name: str
    problem: mescal.Problem
    x0: np.ndarray
    tol: float
    seed: int
    budget: Budget
    judged: mescal.Problem
    average: Callable[[int, int], mescal.Problem] | None = None
    draws: int = 1
    cone: str = "critical"
    memo: dict[Any, Any] = field(default_factory=dict)

    @property
    def stream(self) -> bool:
        """Whether samples are drawn, so that no exact pass exists."""
        return self.problem.bind(self.x0)[0].population is None

    def fixed(self) -> tuple[mescal.Problem, int]:
        """A problem whose values can be computed exactly, and the samples in one pass over it."""
        population = self.problem.bind(self.x0)[0].population
        if population is not None:
            return self.problem, population
        if self.average is None:
            raise ValueError(f"{self.name} is a stream without a known average")
        key = ("average", self.draws, self.seed)
        if key not in self.memo:
            self.memo[key] = self.average(self.draws, self.seed)
        return self.memo[key], self.draws


@dataclass(frozen=True)
class Answer:
    """Where a method ended.

    **Arguments:**

    - `claims`: whether its own stopping test was met; None where it has none.
    - `status`: its own last words.
    - `work`: gradients + 2 Hessian products per sample; a pass over N samples counts N.
    - `seconds`: of the solve, compilation apart and without our certificate.
    - `compile`: seconds of compiling, where known.
    - `multipliers`: by constraint, where the method has them.
    """

    x: np.ndarray
    claims: bool | None
    status: str
    work: float
    seconds: float
    compile: float = 0.0
    multipliers: dict[str, np.ndarray] | None = None
    details: dict[str, Any] = field(default_factory=dict)


class Named(Protocol):
    """What a stored run says of its method."""

    @property
    def name(self) -> str:
        """How it is called in tables."""
        ...

    @property
    def kind(self) -> Kind:
        """Whose it is."""
        ...


class Method(Named, Protocol):
    """A way to solve tasks."""

    @property
    def stops(self) -> bool:
        """Whether it has a stopping test of its own; otherwise it spends its budget."""
        ...

    def declines(self, task: Task) -> str | None:
        """Why it cannot solve such a task; None where it can."""
        ...

    def solve(self, task: Task) -> Answer:
        """Solve it, with its own stopping test, within the budget."""
        ...

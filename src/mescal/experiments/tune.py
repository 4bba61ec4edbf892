"""Settings of a solver by a grid on one problem, as the paper's section 5 set its solvers: every trial, the choice, and the cost.

    trials in order of the grid, the solver's defaults first;   a trial ends where it has cost what the best one did
    the choice:  least work among those that were certified

The cost of the search is the work of all trials together. It is no part of what the chosen settings are said to need, so that both
numbers are kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..certificate import Tolerance
from ..errors import InputError
from ..problems import NamedProblem
from ..run import minimize
from ..solvers import Solver, get
from .reproduce import PAPER, PAPER_CONE

MOST = 1e7  # work of a trial, where nothing else ends it


@dataclass(frozen=True)
class Trial:
    """What one choice of settings led to."""

    options: dict[str, Any]
    certified: bool
    status: str
    work: float
    outer_iterations: int
    objective: float


@dataclass(frozen=True)
class Tuned:
    """A grid search: its trials in the order in which they were made."""

    problem: str
    solver: str
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial | None:
        """The certified trial of least work; None if there was none."""
        return min((trial for trial in self.trials if trial.certified), key=lambda trial: trial.work, default=None)

    @property
    def work(self) -> float:
        """Of all trials: what the search cost."""
        return sum(trial.work for trial in self.trials)


def choices(solver: Solver, grid: Mapping[str, Sequence[Any]] | None = None) -> list[dict[str, Any]]:
    """The settings that a grid asks to try; without one, the solver's own. Its defaults come first, where they are among them."""
    grid = getattr(solver, "grid", {}) if grid is None else grid
    if not grid or not all(len(values) for values in grid.values()):
        raise InputError(
            f"no grid for the solver {solver.name!r}", "settings and the values to try", "give grid={'batch': (16, 64)}"
        )
    found = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    return sorted(found, key=lambda options: any(getattr(solver, name, None) != options[name] for name in options))


def tune(
    named: NamedProblem,
    solver: str,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    tol: Tolerance | float = PAPER,
    seed: int = 0,
    max_outer: int = 100,
    max_work: float = MOST,
    told: Callable[[Trial], Any] = lambda trial: None,
    **options: Any,
) -> Tuned:
    """Try every choice of a grid on a problem.

    **Arguments:**

    - `named`: the problem, of `mescal.problems.get`.
    - `solver`, `options`: a name of `mescal.solvers.names()`, and settings that all trials share.
    - `grid`: values to try, by setting; the solver's own where it has one, as paper modes do.
    - `tol`, `seed`, `max_outer`, `max_work`: of every trial. The certificate looks at all of space, as the paper's test does.
    - `told`: called with every trial when it is over.
    """
    common = get(solver, **options)
    trials: list[Trial] = []
    least = max_work
    for chosen in choices(common, grid):
        result = minimize(
            named.problem,
            named.x0,
            solver=get(solver, **options | chosen),
            tol=tol,
            cone=PAPER_CONE,
            seed=seed,
            max_outer=max_outer,
            max_work=least,
        )
        work = float(result.work.total)
        trial = Trial(chosen, result.converged, result.status.name, work, len(result.history), float(result.objective))
        least = min(least, work) if result.converged else least
        trials.append(trial)
        told(trial)
    return Tuned(named.name, solver, tuple(trials))

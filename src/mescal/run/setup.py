"""What does not change in the course of a run: the problem bound to its start, the solver, what was asked, clock and signals."""

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ..certificate import Tolerance
from ..compiling import compiled, leaf
from ..errors import InputError
from ..oracle import Lagrangian, Surrogate, memory, surrogate
from ..oracle.evaluator import Evaluator, evaluator_of
from ..oracle.subproblem import Subproblem
from ..problem import Data, EqualityForm, Problem, Program, agree
from ..problem.layout import Layout, is_rounded, refuse_too_large
from ..problem.statements.lifting import joined
from ..sets import ConvexSet, Reals
from .limits import Clock, Signals, Watchdog
from .result import Result
from .scaling import Scales
from .settings import Settings
from .state import State

ROUNDED = (
    "x0 was given in float64, and {} computes in {}, to which it was rounded: write "
    "jax.config.update('jax_enable_x64', True) first to have float64, or solver='newton-cg', which always computes in it."
)


@dataclass(frozen=True)
class Start:
    """What a run takes over from one before it."""

    x: Any
    slack: dict[str, np.ndarray]
    multipliers: dict[str, np.ndarray]
    penalty: float

    @classmethod
    def of(cls, result: Result | None) -> "Start | None":
        """From where a run ended."""
        if result is None:
            return None
        return cls(joined(result.x, result.auxiliary), result.slack, result.multipliers, result.penalty)


@dataclass(frozen=True)
class Setup:
    """A run, but for its state."""

    problem: Problem
    settings: Settings
    solver: Any  # a sub-solver or a baseline: what takes the steps ...
    asked: Any  # ... and what was asked for
    dtype: np.dtype
    program: Program
    data: tuple[Data | None, ...]
    looks: Evaluator | None  # at all rows; None where there are streams
    rule: Surrogate
    origin: np.ndarray  # where it starts
    clock: Clock
    signals: Signals
    watchdog: Watchdog
    key: Any = None  # of programs that are compiled whole
    reason: str = ""  # for the solver
    warnings: tuple[str, ...] = ()
    checkpoints: Any = None
    forms: dict[int, tuple[Scales, EqualityForm]] = field(default_factory=dict)
    latest: list[tuple[tuple, Subproblem]] = field(default_factory=list)  # planned with, then solved: made once

    def form(self, scales: Scales) -> EqualityForm:
        """The equality form in the solver's scales."""
        known = self.forms.get(id(scales))
        if known is None or known[0] is not scales:
            sizes = np.float64(scales.objective), scales.constraints
            made = EqualityForm(self.program, self.problem.domain, *sizes, scales.inward)
            known = self.forms[id(scales)] = scales, made
        return known[1]

    def lagrangian(self, scales: Scales, multipliers: np.ndarray, penalty: float, micro: int) -> Lagrangian:
        """The augmented Lagrangian, at multipliers and a penalty in the solver's units."""
        weights, size = leaf(multipliers, self.dtype), leaf(penalty, self.dtype)
        return Lagrangian(self.form(scales), self.data, weights, size, self.rule, micro)

    def subproblem(self, scales: Scales, multipliers: np.ndarray, penalty: float, micro: int) -> Subproblem:
        """The same as solvers on the host see it."""
        precise = getattr(self.solver, "precise", False)
        asked = id(self.form(scales)), multipliers.tobytes(), float(penalty), micro, precise
        if not self.latest or self.latest[0][0] != asked:
            lagrangian = self.lagrangian(scales, multipliers, penalty, micro)
            self.latest[:] = [(asked, Subproblem(lagrangian, self.looks, precise))]
        return self.latest[0][1]

    def micro_batch(self, scales: Scales) -> int:
        """Samples that the device looks at together: a row of each population, and parameters, per sample."""
        rows = [leaf for leaf in jax.tree.leaves(self.data) if leaf.ndim]
        width = sum(leaf.dtype.itemsize * int(np.prod(leaf.shape[1:])) for leaf in rows)
        return memory.micro_batch(width + self.form(scales).size * self.dtype.itemsize)

    def is_over(self) -> bool:
        """Whether a signal, or the limit on seconds, ends the run."""
        return agree(self.signals.asked or self.clock.here > self.settings.max_seconds)

    def parameters(self, state: State) -> Any:
        """x as the user wrote it."""
        return self.program.parameters.restore(self.form(state.scales).split(state.z)[0])

    def slack(self, state: State) -> np.ndarray:
        """The slacks of the inequalities as they were stated: where bounds are moved inwards, there is so much more room."""
        layout = self.program.layout
        if not layout.slack_size:
            return np.zeros(0)
        slack = np.asarray(self.form(state.scales).split(state.z)[1], np.float64)
        return np.where(slack > 0, slack + state.scales.inward[layout.inequality], 0.0)


def set_up(problem: Problem, x0: Any, asked: Any, settings: Settings) -> Setup:
    """Bind a problem to its start, in the precision of the solver; the user's functions are traced here."""
    clock, watchdog = Clock(), Watchdog(settings.outer.watchdog)
    with watchdog:
        x0 = problem.lifted(x0, "x0")
        exact, _ = problem.bind(x0, "x0")
        solver = asked.sized(exact.population)
        dtype = np.dtype(np.float64) if solver.precise else problem.working_type(x0, "x0")
        program, vector = problem.bind(x0, "x0", dtype)
        _refuse_exact_equalities(program.layout, settings.tol)
        setup = Setup(
            problem=problem,
            settings=settings,
            solver=solver,
            asked=asked,
            dtype=np.dtype(dtype),
            program=program,
            data=problem.device_data(program, None if solver.precise else dtype),
            looks=None if exact.population is None else evaluator_of(problem, exact),
            rule=surrogate(getattr(asked, "surrogate", "ustat")),
            origin=_checked_start(problem, program, vector),
            clock=clock,
            signals=Signals(),
            watchdog=watchdog,
            key=None if solver.host else jax.random.key(settings.seed, impl="threefry2x32"),
            reason=asked.reason(exact.population),
            warnings=(ROUNDED.format(solver.name, np.dtype(dtype)),) if is_rounded(x0, dtype) else (),
        )
    watchdog.move("the first step")
    return setup


def _refuse_exact_equalities(layout: Layout, tolerance: Tolerance):
    """Raise where equalities are to be met exactly."""
    if tolerance.feasibility == 0 and "==" in layout.kinds:
        name = layout.names[layout.kinds.index("==")]
        raise InputError(
            f"feasibility=0 with the equality constraint {name!r}",
            "inequalities alone, which have an inside: only there a point can be seen to meet them exactly",
            "give a small positive feasibility, or state the equality as two inequalities with some room between them",
        )


def _checked_start(problem: Problem, program: Program, vector: np.ndarray) -> np.ndarray:
    """x0 projected onto the domain, in which it must lie to rounding."""
    if isinstance(problem.domain, Reals):
        return vector
    refuse_too_large(vector, jax.dtypes.canonicalize_dtype(np.float64), "x0")  # what cannot be projected is not near
    inside, projected = _placed(problem.domain, program.parameters.arrays(vector))
    if not bool(inside):
        raise InputError(
            f"x0 lies outside of {problem.stated_domain}",
            "a point of the domain",
            "project it first, by the project(x0) of the domain",
        )
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(projected)])


@compiled
def _placed(domain: ConvexSet, x: Any) -> tuple[jax.Array, Any]:
    return domain.contains(x), domain.project(x)

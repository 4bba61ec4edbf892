"""What a run hands back: the point, its multipliers and certificate, what it cost, and why it ended."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..certificate import Certificate, Tolerance
from ..forms import APART
from ..importing import on_first_use
from ..oracle import Tally
from ..problem.constraint import Held, held
from ..solvers.ray import Ray
from .history import History
from .status import Status

SHOWN = 6  # rows of constraints that a printed result has


@dataclass(frozen=True)
class WorkDone:
    """Work in thetas: of the solver (its own tests and refused certificates included), and of the judge beside it."""

    solver: Tally
    judge: Tally
    searches: Tally

    @property
    def gradients(self) -> float:
        """Gradients of the solver; a value counts a third."""
        return self.solver.gradients

    @property
    def hvps(self) -> float:
        """Hessian-vector products of the solver."""
        return float(self.solver.hvps)

    @property
    def total(self) -> float:
        """gradients + 2 hvps."""
        return self.solver.total

    @property
    def certificate(self) -> float:
        """What the judge spent, in the same units."""
        return self.judge.total


@dataclass(frozen=True)
class Seconds:
    """Wall-clock seconds: all, of which tracing, lowering and compiling, and of which the final certificate."""

    total: float
    compile: float
    certificate: float

    @property
    def running(self) -> float:
        """Without compiling."""
        return self.total - self.compile


@dataclass(frozen=True)
class Tried:
    """How the run from one start came out. `minimiser` numbers distinct certified objectives from the lowest, None without one."""

    objective: float
    violation: float
    status: Status
    work: float
    seconds: float
    minimiser: int | None


@dataclass(frozen=True)
class Spread:
    """How the runs from several starts came out, in their order: of so many that were `asked` for, `chosen` is returned."""

    asked: int
    chosen: int
    tried: tuple[Tried, ...]

    @property
    def certified(self) -> int:
        """How many are certified."""
        return sum(one.status.converged for one in self.tried)

    @property
    def distinct(self) -> int:
        """How many certified objectives differ by more than a valley as level as their ends would explain: at least so many."""
        return len({one.minimiser for one in self.tried} - {None})

    @property
    def objectives(self) -> np.ndarray:
        """Of the certified ones, in their order."""
        return np.array([one.objective for one in self.tried if one.status.converged])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        begun = "" if len(self.tried) == self.asked else f", {len(self.tried)} of them begun"
        found = self.objectives
        ends = (
            f", objectives from {found.min():.6g} to {found.max():.6g}, at least {self.distinct} distinct"
            if found.size
            else ""
        )
        return f"best of {self.asked} starts{begun} (number {self.chosen}): {self.certified} certified{ends}"


@dataclass(frozen=True)
class Result:
    """The outcome of `minimize`. Read from a run folder, `x` is flat: without its problem, its structure is not known."""

    x: Any = field(metadata=APART)
    slack: dict[str, np.ndarray]
    multipliers: dict[str, np.ndarray]
    status: Status
    certificate: Certificate
    objective: float
    history: History = field(metadata=APART)
    work: WorkDone
    seconds: Seconds
    tolerance: Tolerance
    solver: str
    seed: int
    penalty: float
    outer_iterations: int
    warnings: tuple[str, ...] = ()  # of the run; those of the judge are the certificate's
    reason: str = ""  # for the solver, where it was chosen by `auto`
    auxiliary: dict[str, np.ndarray] = field(default_factory=dict)  # scalars that statements added, by name
    ray: Ray | None = None  # from x, where the problem was found to be unbounded
    spread: Spread | None = None  # of several starts, whose work and seconds are those of all

    @property
    def converged(self) -> bool:
        """Whether the certificate meets the tolerance: computed afresh, in float64, with its error added."""
        return self.status.converged

    @property
    def missing(self) -> tuple[str, ...]:
        """What the certificate lacks: every measure that does not meet the tolerance, or is not known to, in words."""
        return self.certificate.missing(self.tolerance)

    @property
    def held(self) -> list[tuple[Held, float]]:
        """Every row of the constraints in the terms in which it was stated, with its multiplier."""
        rows = held(self.certificate.constraints, self.certificate.terms)
        multipliers = (float(v) for name in self.certificate.constraints for v in np.ravel(self.multipliers[name]))
        return list(zip(rows, multipliers, strict=True))

    def constraint_lines(self, most: int = SHOWN) -> list[str]:
        """The constraints in words, at most so many rows: those that are violated first, and then those that cost most."""
        allowed = self.tolerance.violation
        told = [(row.violated(allowed), abs(price), i) for i, (row, price) in enumerate(self.held)]
        chosen = sorted(i for _, _, i in sorted(told, key=lambda one: (-one[0], -one[1]))[:most])
        lines = [
            f"{row.name}: {row.words(allowed)}; multiplier {price:.4g}"
            for row, price in map(self.held.__getitem__, chosen)
        ]
        more = len(told) - len(chosen)
        return [*lines, f"and {more} row{'' if more == 1 else 's'} more, with smaller multipliers"] if more else lines

    def plot(self, against: str = "work") -> Any:
        """The run's curves against `"work"` or `"seconds"`: a matplotlib figure. `result.certificate.plot(tol)` shows its end."""
        return on_first_use("report.drawing").plot_result(self, against)

    def explain(self) -> str:
        """Paragraphs for a reviewer: what was measured and how, with which error, on which cone, and what is not promised."""
        return on_first_use("report.words").explain(self)

    def _repr_html_(self) -> str:
        return on_first_use("report.cards").result_card(self)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        c = self.certificate
        measures = ", ".join(
            f"{check.sentence}: {c.parts}" if check.name == "feasibility" else check.sentence
            for check in c.checks(self.tolerance)
        )
        lines = [
            f"{'CERTIFIED' if self.converged else 'NOT CERTIFIED'}: {self.status}",
            f"  objective {self.objective:.6g}, {measures}",
            f"  relative stationarity {c.relative_stationarity.value:.3g}, on the cone {c.cone!r}"
            + (f"; {c.stationarity.how}" if c.confidence else ""),
            *(f"  {line}" for line in self.constraint_lines()),
            f"  {self.solver}: {self.outer_iterations} outer iteration{'' if self.outer_iterations == 1 else 's'}, "
            f"{self.work.total:.3g} evaluations, "
            f"{self.seconds.total:.2f} s of which {self.seconds.compile:.2f} s compiling and "
            f"{self.seconds.certificate:.2f} s certifying, which overlap",
        ]
        if self.missing:
            lines.insert(1, f"  missing: {'; '.join(self.missing)}")
        if self.ray is not None:
            lines.insert(1, f"  {self.ray}")
        if self.spread is not None:
            lines.append(f"  {self.spread}")
        if self.reason:
            lines.append(f"  {self.reason}")
        return "\n".join([*lines, *(f"  warning: {sentence}" for sentence in (*self.warnings, *c.warnings))])

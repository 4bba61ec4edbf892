"""A user's own solver: a class in a Python file, a `Solver` or a `Baseline` with a `name`, whose settings have defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..baselines import Baseline
from ..registry import is_complete, make
from ..solvers import Solver
from .own_file import OwnFile

IN_DOUBT = "write a class with a `name`, derived from one of mescal.solvers or mescal.baselines"
SHOWN = 8  # digits of the file's digest: a changed file makes other runs, in other folders and rows of a table


@dataclass(frozen=True)
class OwnSolver(OwnFile):
    """Where a user's solver is written."""

    what: ClassVar[str] = "solver"
    kind: ClassVar[str] = "class"
    returns: ClassVar[str] = "of a solver, whose settings have defaults"
    flag: ClassVar[str] = "--solver-file"
    example: ClassVar[str] = "my_solver.py:MySolver"

    @property
    def name(self) -> str:
        """With the beginning of the digest."""
        return f"{self.place}@{self.sha256[:SHOWN]}"

    def make(self, options: Mapping[str, Any]) -> Solver | Baseline:
        """Run the file, and make a solver with these settings."""
        module = self.module()
        known = {
            key: value
            for key, value in vars(module).items()
            if is_complete(value, Solver) or is_complete(value, Baseline)
            if value.__module__ == module.__name__
        }
        kind = f"solver in {self.place.partition(':')[0]}"
        return self.guarded(lambda: make(kind, self.function, known, options, IN_DOUBT))


def own_solver(text: str) -> OwnSolver:
    """The solver that `path.py:Class` names. Reads the file but runs nothing."""
    return OwnSolver.named(text)

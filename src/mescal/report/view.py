"""A stored run as the report reads it: what was asked, what came out, and its curves against work."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..certificate import Check, Tolerance
from ..experiments.result_file import About
from ..experiments.store import StoredRun
from ..experiments.task import asked_of
from ..forms import typed
from ..run import Result
from ..run.settings import Outer
from .curves import Curve

# The three measures of the paper's figures, in their order.
MEASURES = ("curvature", "stationarity", "feasibility")


@dataclass(frozen=True, eq=False)
class View:
    """One stored run."""

    run: StoredRun

    @property
    def config(self) -> Mapping[str, Any]:
        """What was asked."""
        return self.run.config

    @property
    def result(self) -> Result | None:
        """What came out, or nothing yet."""
        return self.run.result

    @property
    def about(self) -> About | None:
        """What is said beside the result."""
        return self.run.about

    @property
    def ended(self) -> bool:
        """Whether there is a result."""
        return self.run.result is not None

    @property
    def certified(self) -> bool:
        """Whether the run ended with a certificate."""
        return self.run.converged

    @property
    def problem(self) -> str:
        """The name of the problem."""
        return self.config["problem"]

    @property
    def solver(self) -> str:
        """The name of the solver, with the settings that are not its defaults."""
        name = self.config.get("solver") or ("unknown" if self.result is None else self.result.solver)
        asked = asked_of(self.config.get("options", {}), typed(Outer, self.config.get("outer", {})))
        return name + "".join(f", {key}={value}" for key, value in asked.items())

    @property
    def seed(self) -> int:
        """The seed."""
        return self.run.seed

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of the problem."""
        return self.config.get("parameters", {})

    @property
    def tolerance(self) -> Tolerance:
        """The tolerance that the run had to meet."""
        return self.run.tolerance

    @cached_property
    def checks(self) -> dict[str, Check]:
        """The measures of its certificate that its tolerance says something about, by name."""
        if self.result is None:
            return {}
        return {check.field: check for check in self.result.certificate.checks(self.tolerance)}

    @property
    def status(self) -> str:
        """How the run ended, in words."""
        return "no result yet" if self.result is None else self.result.status.word

    @property
    def place(self) -> str:
        """The folder, seen from the working folder; of a folder elsewhere the last two parts, without people's names."""
        path = self.run.path
        if path.is_absolute():
            path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(*path.parts[-2:])
        return path.as_posix()

    def number(self, of: Callable[[Result], Any]) -> float:
        """A number of the result; NaN where there is none yet."""
        return math.nan if self.result is None else float(of(self.result))

    @cached_property
    def history(self) -> dict[str, list[Any]]:
        """The columns of the history."""
        return {} if self.result is None else self.result.history.table()

    @property
    def exact(self) -> bool:
        """Whether the history holds the judge's measures."""
        return all(f"exact:{name}" in self.history for name in MEASURES)

    def curve(self, name: str, against: str = "work") -> Curve:
        """A column of the history against work or seconds, the judge's where there is one; `multipliers` is their norm."""
        work = np.asarray(self.history.get(against, ()), np.float64)
        if name == "multipliers":
            columns = [values for column, values in self.history.items() if column.startswith("multiplier:")]
            values = np.linalg.norm(np.asarray(columns, np.float64), axis=0) if columns else np.full(work.shape, np.nan)
        else:
            column = f"exact:{name}" if self.exact and f"exact:{name}" in self.history else name
            values = self.history.get(column, np.full(work.shape, np.nan))
        return Curve(work, np.asarray(values, np.float64))

"""A stored run as the report reads it: what was asked, what came out, and its curves against work."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..certificate import Tolerance
from ..experiments.result_file import long_tolerance
from ..experiments.store import StoredRun
from ..run import Status
from .curves import Curve

# The three measures of a certificate, in the order of the paper's figures.
MEASURES = ("curvature", "stationarity", "feasibility")
EMPTY_CONE = "the cone is {0}"  # the judge's words where there is no direction to test, and curvature is +infinity


@dataclass(frozen=True)
class Reading:
    """One measure of a certificate; numbers that JSON cannot hold are infinite again."""

    value: float
    lower: float
    upper: float
    how: str

    @classmethod
    def of(cls, content: Any) -> "Reading":
        """From result.json; a bare number is its own interval."""
        if not isinstance(content, Mapping):
            number = math.nan if content is None else float(content)
            return cls(number, number, number, "")
        how = str(content.get("how", ""))
        missing = math.inf if EMPTY_CONE in how else math.nan
        value, lower = (_number(content.get(name), missing) for name in ("value", "lower"))
        return cls(value, lower, _number(content.get("upper"), math.inf), how)

    @property
    def interval(self) -> bool:
        """Whether the error is worth drawing."""
        return self.upper - self.lower > 1e-9 * max(1e-3, abs(self.value)) if math.isfinite(self.value) else False


@dataclass(frozen=True, eq=False)
class View:
    """One stored run; `result` is empty while the run has not ended."""

    run: StoredRun

    @property
    def config(self) -> Mapping[str, Any]:
        """What was asked."""
        return self.run.config

    @property
    def result(self) -> Mapping[str, Any]:
        """What came out, or nothing yet."""
        return self.run.result or {}

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
        return str(self._either("problem", "unnamed"))

    @property
    def solver(self) -> str:
        """The name of the solver, with the settings that are not its defaults."""
        options = self._either("options", {}) or {}
        return str(self._either("solver", "unknown")) + "".join(f", {k}={v}" for k, v in options.items())

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self._either("seed", 0))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of the problem."""
        return self._either("parameters", {}) or {}

    @cached_property
    def tolerance(self) -> Tolerance:
        """The tolerance that the run had to meet."""
        return long_tolerance(self._either("tol", 0.01))

    @property
    def status(self) -> Status | None:
        """How the run ended; None if it has not, or if this version does not know the word."""
        return Status.__members__.get(str(self.result.get("status", "")).upper())

    @property
    def place(self) -> str:
        """The folder, seen from the working folder; of a folder elsewhere the last two parts, without people's names."""
        path = self.run.path
        if path.is_absolute():
            path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(*path.parts[-2:])
        return path.as_posix()

    @property
    def seconds(self) -> float:
        """Seconds without compilation."""
        seconds = self.result.get("seconds", {})
        return float(seconds.get("total", math.nan)) - float(seconds.get("compile", 0.0) or 0.0)

    @property
    def warnings(self) -> list[str]:
        """The judge's sentences that a reader must not miss."""
        return [str(sentence) for sentence in self.result.get("certificate", {}).get("warnings", [])]

    def number(self, *path: str) -> float:
        """A number of result.json by its path; NaN where there is none."""
        content: Any = self.result
        for name in path:
            content = content.get(name) if isinstance(content, Mapping) else None
        return Reading.of(content).value

    def reading(self, measure: str) -> Reading:
        """One measure of the certificate."""
        return Reading.of(self.result.get("certificate", {}).get(measure))

    @property
    def exact(self) -> bool:
        """Whether the history holds the judge's measures."""
        return all(f"exact:{name}" in self.run.history for name in MEASURES)

    def curve(self, name: str) -> Curve:
        """A column of the history against total work, the judge's where there is one; `multipliers` is their norm."""
        history = self.run.history
        work = np.asarray(history.get("work", ()), np.float64)
        if name == "multipliers":
            columns = [values for column, values in history.items() if column.startswith("multiplier:")]
            values = np.linalg.norm(np.stack(columns), axis=0) if columns else np.full(work.shape, np.nan)
        else:
            column = f"exact:{name}" if self.exact and f"exact:{name}" in history else name
            values = history.get(column, np.full(work.shape, np.nan))
        return Curve(work, np.asarray(values, np.float64))

    def _either(self, name: str, otherwise: Any) -> Any:
        return self.config[name] if name in self.config else self.result.get(name, otherwise)


def _number(value: Any, missing: float) -> float:
    return missing if value is None else float(value)

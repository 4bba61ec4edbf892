"""A store of runs that can be stopped and continued: one line of JSON per run; what is there is not run again."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import mescal

from .judge import Verdict
from .task import Answer, Named, Task

KEYS = ("method", "problem", "noise", "seed", "tol")


class Store:
    """Runs by key, appended to a file as they end; without a file, kept for as long as it lives."""

    def __init__(self, path: Path | None, keys: tuple[str, ...] = KEYS):
        self.path, self.keys = path, keys
        lines = [] if path is None else path.read_text().splitlines() if path.exists() else []
        self.rows: dict[tuple, dict[str, Any]] = {}
        for line in lines:
            self._keep(json.loads(line))

    def _keep(self, row: dict[str, Any]):
        self.rows[tuple(row[key] for key in self.keys)] = row

    def has(self, *key: Any) -> bool:
        """Whether the run of these keys is there."""
        return key in self.rows

    def add(self, row: dict[str, Any]):
        """Keep a run and write it down at once."""
        self._keep(row)
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(_plain(row), allow_nan=False) + "\n")

    def all(self) -> Iterable[dict[str, Any]]:
        """Every run."""
        return self.rows.values()


def row_of(method: Named, task: Task, noise: float, answer: Answer, verdict: Verdict) -> dict[str, Any]:
    """A run as it is stored."""
    return {
        "method": method.name,
        "kind": method.kind,
        "problem": task.name,
        "noise": noise,
        "seed": task.seed,
        "tol": task.tol,
        "claims": answer.claims,
        "status": answer.status,
        "work": answer.work,
        "seconds": answer.seconds,
        "compile": answer.compile,
        "x": np.asarray(answer.x).tolist(),
        "version": mescal.__version__,
        "budget": task.budget.work,
        "draws": task.draws,
        **asdict(verdict),
        **{name: value for name, value in answer.details.items() if isinstance(value, (int, float, str))},
    }


def failed_row(method: Named, task: Task, noise: float, why: str) -> dict[str, Any]:
    """A run that a method declined, or that broke."""
    row = {"method": method.name, "kind": method.kind, "problem": task.name, "noise": noise, "seed": task.seed}
    return row | {"tol": task.tol, "claims": None, "status": why, "certified": False, "why": why}


def _plain(value: Any, digits: int = 6) -> Any:
    """For JSON: measurements cut to six digits, points and other lists whole, what is not finite null."""
    if isinstance(value, dict):
        return {key: _plain(entry, digits) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry, digits=17) for entry in value]
    if isinstance(value, bool) or not isinstance(value, float):
        return value if isinstance(value, (bool, int, str, type(None))) else _plain(float(value), digits)
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None

"""result.json: what came out of a run, for people and machines; JSON has no infinity, which is null there."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ..certificate import Tolerance
from ..run import Result
from .surroundings import machine, versions


def result_content(result: Result, problem: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Everything about a result but its point and its history.

    `tol` is a number where one number says it all, otherwise the three of a `Tolerance`; `status` is a word,
    `verdict` the sentence with its advice.
    """
    certificate, work, seconds = result.certificate, result.work, result.seconds
    content = {
        "problem": problem,
        **about,
        "solver": result.solver,
        "reason": result.reason,
        "seed": result.seed,
        "tol": short_tolerance(result.tolerance),
        "status": result.status.name.lower(),
        "verdict": str(result.status),
        "warnings": list(result.warnings),
        "converged": result.converged,
        "objective": result.objective,
        "certificate": certificate.to_dict(),
        "multipliers": _by_name(result.multipliers),
        "constraints": _by_name(certificate.constraints),
        "slack": _by_name(result.slack),
        "work": {
            "gradients": work.gradients,
            "hvps": work.hvps,
            "total": work.total,
            "certificate": work.certificate,
            "searches": work.searches.total,
            "counts": dict(work.solver.counts),
        },
        "ray": None if result.ray is None else asdict(result.ray),
        "outer_iterations": result.outer_iterations,
        "penalty": result.penalty,
        "seconds": {"total": seconds.total, "compile": seconds.compile, "certificate": seconds.certificate},
        "versions": versions(),
        "machine": machine(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return plain(content)


def short_tolerance(tolerance: Tolerance) -> float | dict[str, float | None]:
    """A number if it says everything, otherwise the three parts."""
    if tolerance.gradient == tolerance.curvature and tolerance.relative is None:
        return tolerance.gradient
    return {"gradient": tolerance.gradient, "curvature": tolerance.curvature, "relative": tolerance.relative}


def long_tolerance(tol: float | Mapping[str, float | None]) -> Tolerance:
    """The tolerance that `short_tolerance` wrote."""
    return Tolerance(**tol) if isinstance(tol, Mapping) else Tolerance(tol, tol)  # pyright: ignore[reportArgumentType]


def plain(value: Any) -> Any:
    """A value in the types that JSON has; numbers that it does not have become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _by_name(rows: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {name: np.asarray(values, np.float64).tolist() for name, values in rows.items()}

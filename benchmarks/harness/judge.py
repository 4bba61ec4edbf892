"""The judge of every answer: `certify`, whatever the method says of itself.

No method loses for want of multipliers or of an active bound: an answer is measured with the multipliers that make its
stationarity smallest, then with the method's own, then with those variables put on a bound that are nearer to it than the
tolerance and pushed towards it by the gradient, as interior-point methods leave them. The first reading that passes counts,
for everyone; where none does, the best of them is reported.
"""

from dataclasses import dataclass

import numpy as np

import mescal

from .functions import Functions, domain_is_bounds
from .task import Answer, Task


@dataclass(frozen=True)
class Verdict:
    """What the judge found."""

    certified: bool
    stationarity: float
    feasibility: float
    curvature: float
    relative_stationarity: float
    objective: float
    why: str  # what failed; empty where it was certified


def judge(task: Task, answer: Answer) -> Verdict:
    """Certify the answer, projected onto the domain, on the task's judged problem, exactly."""
    x = np.asarray(task.judged.domain.project(np.asarray(answer.x, np.asarray(task.x0).dtype)))
    if not np.isfinite(x).all():
        nan = float("nan")
        return Verdict(False, nan, nan, nan, nan, nan, "the answer is not finite")
    best = min(_readings(task, answer, x), key=lambda found: _excess(found, task.tol))
    failed = [
        name
        for name, bad in (
            ("not stationary", not best.stationarity.upper <= task.tol),
            ("not feasible", not best.feasibility.upper <= task.tol),
            ("negative curvature", not best.curvature.lower >= -task.tol),
        )
        if bad
    ]
    return Verdict(
        certified=best.passes(task.tol),
        stationarity=best.stationarity.value,
        feasibility=best.feasibility.value,
        curvature=best.curvature.value,
        relative_stationarity=best.relative_stationarity.value,
        objective=best.objective.value,
        why=", ".join(failed),
    )


def _readings(task: Task, answer: Answer, x: np.ndarray) -> list[mescal.Certificate]:
    """The same answer, read in up to three ways; no further than the first that passes."""

    def read(point, multipliers=None) -> mescal.Certificate:
        return mescal.certify(task.judged, point, multipliers, tol=task.tol, cone=task.cone)

    readings = [read(x)]
    if not readings[-1].passes(task.tol) and answer.multipliers is not None:
        readings.append(read(x, answer.multipliers))
    if not readings[-1].passes(task.tol):
        near = _on_bounds(task, x, readings[0].multipliers)
        readings += [] if np.array_equal(near, x) else [read(near)]
    return readings


def _excess(found: mescal.Certificate, tol: float) -> float:
    """By how much a reading fails; 0 where it passes."""
    return 0.0 if found.passes(tol) else max(found.stationarity.upper, found.feasibility.upper, tol)


def _on_bounds(task: Task, x: np.ndarray, multipliers: dict[str, np.ndarray]) -> np.ndarray:
    """x with variables put on bounds that are near and towards which they are pushed, at these multipliers."""
    if isinstance(task.judged.domain, mescal.sets.Reals) or domain_is_bounds(task.judged) is not None:
        return x
    if "judged" not in task.memo:
        task.memo["judged"] = Functions(task.judged, task.x0)
    functions: Functions = task.memo["judged"]
    low, high = functions.bounds()
    if not (np.abs(x - low) <= task.tol).any() and not (np.abs(high - x) <= task.tol).any():
        return x
    first = functions.first(np.asarray(x, np.float64))
    weights = functions.program.layout.rows(multipliers, "multipliers")
    slope = first.gradient + weights @ first.jacobian
    near = np.where((x - low <= task.tol) & (slope > 0), low, np.where((high - x <= task.tol) & (slope < 0), high, x))
    return near.astype(x.dtype)

"""The judge of every answer: `certify`, whatever the method says of itself.

No method loses for want of multipliers or of an active bound: an answer is measured with the multipliers that make its
stationarity smallest, then with the method's own, then with variables nearer to a bound than the tolerance put on it, as
interior-point methods leave them; the first that passes counts, for everyone.
"""

from dataclasses import dataclass

import numpy as np

import mescal

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
    certificate = None
    for point, multipliers in _readings(task, answer, x):
        certificate = mescal.certify(task.judged, point, multipliers, tol=task.tol, cone=task.cone)
        if certificate.passes(task.tol):
            break
    assert certificate is not None
    tolerance = mescal.Tolerance(task.tol, task.tol)
    failed = [
        name
        for name, bad in (
            ("not stationary", not certificate.stationarity.upper <= tolerance.gradient),
            ("not feasible", not certificate.feasibility.upper <= tolerance.gradient),
            ("negative curvature", not certificate.curvature.lower >= -tolerance.curvature),
        )
        if bad
    ]
    return Verdict(
        certified=certificate.passes(task.tol),
        stationarity=certificate.stationarity.value,
        feasibility=certificate.feasibility.value,
        curvature=certificate.curvature.value,
        relative_stationarity=certificate.relative_stationarity.value,
        objective=certificate.objective.value,
        why=", ".join(failed),
    )


def _readings(task: Task, answer: Answer, x: np.ndarray):
    """The same answer, read in up to three ways; the last is what a failure is described by."""
    domain = task.judged.domain
    if isinstance(domain, mescal.sets.Box):
        low, high = (np.broadcast_to(np.asarray(side, x.dtype), x.shape) for side in (domain.low, domain.high))
        near = np.where(np.abs(x - low) <= task.tol, low, np.where(np.abs(high - x) <= task.tol, high, x))
        if not np.array_equal(near, x):
            yield near, None
    if answer.multipliers is not None:
        yield x, answer.multipliers
    yield x, None

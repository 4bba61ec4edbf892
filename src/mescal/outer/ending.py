"""How a run ends: a signal, a budget or the user stops it, and what it hands back then."""

from typing import Any

from ..oracle import Tally
from ..problem import agree
from .history import Row
from .result import Result, Seconds, WorkDone
from .standing import Standing
from .status import Status
from .verdict import last_judgement


def stop_inside(run: Standing, state: Any) -> Status | None:
    """Whether a signal or a budget ends the run between two chunks."""
    return _stop(run, run.work + state.progress.work.tally())


def stop_between(run: Standing, row: Row | None) -> Status | None:
    """Whether a signal, a budget or the user ends the run after an outer iteration."""
    if (stop := _stop(run, run.work)) is not None:
        return stop
    callback = run.settings.callback
    return Status.STOPPED if callback is not None and agree(bool(callback(row))) else None


def _stop(run: Standing, work: Tally) -> Status | None:
    if agree(run.stops.asked):
        return Status.INTERRUPTED
    if agree(run.clock.here > run.settings.max_seconds):
        return Status.TIME_LIMIT
    return Status.WORK_LIMIT if work.total > run.settings.max_work else None


def hand_back(
    run: Standing, status: Status, penalty: float, warnings: tuple[str, ...] = (), reason: str = ""
) -> Result:
    """Everything, with a certificate of the last good point whatever happened; `penalty` is in the solver's units."""
    certificate = last_judgement(run, penalty, status is not Status.NOT_FINITE)
    if status is not Status.NOT_FINITE and certificate.passes(run.settings.tolerance):
        status = Status.CERTIFIED
    x, _ = run.form.split(run.z)
    return Result(
        x=run.program.parameters.restore(x),
        slack=certificate.slack,
        multipliers=certificate.multipliers,
        status=status,
        certificate=certificate,
        objective=certificate.objective.value,
        history=run.history,
        work=WorkDone(run.work, run.judged + certificate.work, run.searches),
        seconds=Seconds(run.clock.seconds, run.clock.compiling, run.certify_seconds),
        tolerance=run.settings.tolerance,
        solver=run.solver.name,
        seed=run.settings.seed,
        penalty=run.scales.penalty(penalty),
        outer_iterations=run.begun,
        warnings=warnings,
        reason=reason,
        ray=getattr(run, "ray", None),
    )

"""Our solvers, and the baselines of `mescal.baselines`, as methods: both hand back a `Result`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import jax
import numpy as np

import mescal
from mescal.run import judging
from mescal.solvers import Solver

from .._measure import clock, patched
from .task import Answer, Kind, Task

WARM = 0.05  # seconds of compiling below which a run counts as compiled before
LONG = 20.0  # seconds, compiling apart, from which a run is not repeated for its time


@contextmanager
def timed_judge() -> Iterator[list[float]]:
    """Seconds of every certificate that a run asks for."""
    spent: list[float] = []

    def certify(*args, **kwargs):
        start = clock()
        certificate = mescal.certify(*args, **kwargs)
        spent.append(clock() - start)
        return certificate

    with patched(judging, certify=certify):
        yield spent


@dataclass(frozen=True)
class Minimizer:
    """A function that returns a `Result`; what had to be compiled is run a second time, to be timed without compiling.

    Seconds are without the final certificate, which is ours and which no peer computes.
    """

    name: str
    kind: Kind
    minimize: Callable[[Task], mescal.Result]
    refuses: Callable[[mescal.Problem], str | None] = lambda problem: None
    stops: bool = True

    def declines(self, task: Task) -> str | None:
        """What the baseline says of the problem; our solvers take them all."""
        return self.refuses(task.problem)

    def solve(self, task: Task) -> Answer:
        """Run it in the precision of x0, with the rows where programs look for them, as those of the peers are."""
        dtype = np.asarray(task.x0).dtype
        with jax.enable_x64(dtype == np.float64):
            program, _ = task.problem.bind(task.x0, dtype=dtype)
            task.problem.device_data(program, dtype)
            return self._answer(task)

    def _answer(self, task: Task) -> Answer:
        result, total, certificate = self._timed(task)
        compiled = result.seconds.compile
        if compiled > WARM and result.seconds.total - compiled < LONG:
            result, total, certificate = self._timed(task)
        elif compiled > WARM:
            # The run's own clock is the wall's: of what the process had, the share that was not compiling, with the certificate.
            total, certificate = total * (1 - compiled / result.seconds.total), 0.0
        return Answer(
            x=np.asarray(result.x),
            claims=result.converged,
            status=result.status.name.lower().replace("_", " "),
            work=result.work.total,
            seconds=total - certificate,
            compile=compiled,
            multipliers=result.multipliers,
            details={"certificate_work": result.work.certificate, "certificate_seconds": certificate},
        )

    def _timed(self, task: Task) -> tuple[mescal.Result, float, float]:
        """The result, seconds in all, and seconds of the final certificate."""
        start = clock()
        with timed_judge() as judged:
            result = self.minimize(task)
        if result.status is mescal.Status.INTERRUPTED:
            raise KeyboardInterrupt  # it handed back what it had: not a result to keep, and not one to go on after
        return result, clock() - start, judged[-1] if judged else 0.0


def ours(solver: str | Solver, name: str | None = None) -> Minimizer:
    """A solver of `mescal.solvers`, by its name or with settings and a name for them."""

    def run(task: Task) -> mescal.Result:
        return mescal.minimize(
            task.problem,
            task.x0,
            solver=solver,
            tol=task.tol,
            cone=task.cone,
            seed=task.seed,
            max_work=task.budget.work,
            max_seconds=task.budget.seconds,
        )

    return Minimizer(name or str(solver), "ours", run)


def baselines() -> tuple[Minimizer, ...]:
    """All of `mescal.baselines`."""

    def one(name: str) -> Minimizer:
        baseline = mescal.baselines.get(name)

        def run(task: Task) -> mescal.Result:
            return baseline.minimize(
                task.problem,
                task.x0,
                tol=task.tol,
                cone=task.cone,
                seed=task.seed,
                max_work=task.budget.work,
                max_seconds=task.budget.seconds,
            )

        return Minimizer(name, "baseline", run, baseline.declines)

    return tuple(one(name) for name in mescal.baselines.names())

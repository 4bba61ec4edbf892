"""`minimize`: the arguments of a run, checked, and its result."""

from typing import Any

from ..errors import InputError, InputTypeError
from ..problem import Problem
from ..solvers import Solver, get
from ..theory.constants import ProblemConstants
from .checkpoint import check_folder
from .result import Result
from .resume import keeping_checkpoints
from .settings import check_promise, check_settings
from .setup import Start
from .warm_start import begin


def minimize(
    problem: Problem,
    x0: Any = None,
    *,
    solver: "str | Solver" = "auto",
    tol: Any = 0.01,
    cone: str = "critical",
    seed: int = 0,
    start: Result | None = None,
    max_outer: int = 100,
    max_inner: int = 3000,
    max_work: float | None = None,
    max_seconds: float | None = None,
    penalty: float = 1.1,
    growth: float = 1.1,
    bounded_dual: bool = False,
    scale: bool = True,
    record: str | None = None,
    confidence: float = 0.95,
    constants: ProblemConstants | None = None,
    success: float | None = None,
    option: str = "II",
    checkpoint: Any = None,
    checkpoint_seconds: float = 60.0,
    watchdog: float | None = 300.0,
    callback: Any = None,
    progress: Any = None,
) -> Result:
    """Minimise a problem to a certified second-order stationary point.

    **Arguments:**

    - `x0`: initial parameters, any pytree of floating arrays, in the domain; default: where `start` ended.
    - `solver`: a name of `mescal.solvers.names()`, or a solver object with its own settings. `"auto"` chooses by what is
      known of the problem before its first sample is drawn; the result says what, and why. Very large populations are
      solved on a sixteenth of their rows first.
    - `tol`: a number for both, or a `Tolerance`.
    - `cone`: the curvature that decides: `"critical"`, whose condition alone every local minimiser meets, `"paper"` or `"whole"`.
    - `start`: a result to continue from: its x (`x0`, if that is given too), multipliers and penalty.
    - `max_outer`, `max_inner`, `max_work`, `max_seconds`: caps on outer iterations, inner steps, evaluations, seconds.
    - `penalty`, `growth`: al_0 and beta of the penalty schedule.
    - `bounded_dual`: keep multipliers bounded for any noise by a summable sequence gamma_k (the theory's rule).
    - `scale`: bring objective and constraints to a common scale where one is extreme (undone in all reports).
    - `record`: `"exact"` adds the judge's measures to every row of the history, and a row for the start, whose `outer`
      is -1 (counted apart, never fed back).
    - `confidence`: of the certificate on streams.
    - `constants`: what the theorems assume of the problem, for theory modes; without them they are estimated from samples,
      and a warning says so. A theory mode has no use for `max_inner`, bounds its multipliers, scales nothing, and ends
      after the outer iterations that its theorem counts.
    - `success`: boost a theory mode to this success probability instead of its theorem's 1/2, 5/8 or 2/3.
    - `option`: of Algorithm 1, for theory modes: `"II"`, with that probability, or `"I"`, in expectation.
    - `checkpoint`: a folder in which the run is stored every `checkpoint_seconds`, and when it is stopped: by Ctrl-C, SIGTERM
      or a budget. `mescal.resume` carries it on, bit for bit as if nothing had happened, on the same machine.
    - `watchdog`: after so many seconds without a step, the log says which function the run hangs in; None: never.
    - `callback`: called with every history row; a true return value stops the run.
    - `progress`: called like `callback`, for display.

    **Returns:** a `Result`; `result.converged` is true only where the certificate meets the tolerance.
    """
    if not isinstance(problem, Problem):
        raise InputTypeError(f"minimize got {type(problem).__name__}", "a mescal.Problem", "build one first")
    settings = check_settings(
        tol=tol,
        cone=cone,
        seed=seed,
        max_outer=max_outer,
        max_inner=max_inner,
        max_work=max_work,
        max_seconds=max_seconds,
        penalty=penalty,
        growth=growth,
        bounded_dual=bounded_dual,
        scale=scale,
        record=record,
        confidence=confidence,
        constants=constants,
        success=success,
        option=option,
        checkpoint=checkpoint,
        checkpoint_seconds=checkpoint_seconds,
        watchdog=watchdog,
        callback=callback,
        progress=progress,
    )
    chosen = get(solver)
    check_promise(chosen, settings)
    if start is not None and not isinstance(start, Result):
        raise InputTypeError(f"start={type(start).__name__}", "a Result of minimize", "pass start=result")
    if x0 is None and start is None:
        raise InputError("neither x0 nor start was given", "initial parameters", "pass x0")
    if settings.checkpoint is not None:
        check_folder(settings.checkpoint)
    run, began = begin(problem, x0, chosen, settings, Start.of(start))
    if settings.checkpoint is not None:
        run = keeping_checkpoints(run, x0 is not None and (began is None or start is not None), began)
    return run.go()

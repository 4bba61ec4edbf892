"""`minimize`: what is asked, checked, becomes a run, and the run a result."""

from typing import Any, Unpack

from ..errors import InputError, InputTypeError
from ..problem import Problem
from ..solvers import Solver, get
from .checkpoint import check_folder
from .result import Result
from .resume import keeping_checkpoints
from .settings import Asked, settings, takes_settings
from .setup import Start
from .starts import best_of
from .warm_start import begin


@takes_settings()
def minimize(
    problem: Problem,
    x0: Any = None,
    *,
    solver: str | Solver = "auto",
    start: Result | None = None,
    **asked: Unpack[Asked],
) -> Result:
    """Minimise a problem to a certified second-order stationary point.

    **Arguments:**

    - `x0`: initial parameters, any pytree of floating arrays, in the domain; default: where `start` ended.
    - `solver`: a name of `mescal.solvers.names()`, or a solver object with its own settings. `"auto"` chooses by what is
      known of the problem before its first sample is drawn; the result says what, and why. Very large populations are
      solved on a sixteenth of their rows first. What the theorems assume (`constants`), a success probability (`success`) and
      `option` of Algorithm 1 are settings of the theory modes.
    - `start`: a result to continue from: its x (`x0`, if that is given too), multipliers and penalty.
    {settings}

    **Returns:** a `Result`; `result.converged` is true only where the certificate meets the tolerance.
    """
    if not isinstance(problem, Problem):
        raise InputTypeError(f"minimize got {type(problem).__name__}", "a mescal.Problem", "build one first")
    chosen, held = get(solver), settings("minimize", asked)
    if start is not None and not isinstance(start, Result):
        raise InputTypeError(f"start={type(start).__name__}", "a Result of minimize", "pass start=result")
    if x0 is None and start is None:
        raise InputError("neither x0 nor start was given", "initial parameters", "pass x0")
    if held.starts.count > 1:
        return best_of(problem, x0, chosen, held, Start.of(start))
    if held.checkpoint is not None:
        check_folder(held.checkpoint.folder)
    run, began = begin(problem, x0, chosen, held, Start.of(start))
    if held.checkpoint is not None:
        run = keeping_checkpoints(run, x0 is not None and (began is None or start is not None), began)
    return run.go()

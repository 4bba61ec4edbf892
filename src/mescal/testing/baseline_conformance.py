"""The conformance suite of baselines: what every one of them promises, on a problem of its class whose minimiser is known.

```python
from mescal import testing
testing.check_baseline(MyBaseline())            # an AssertionError names the property that does not hold
```
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..baselines import Baseline, OutOfClass, get
from ..baselines.legs import prepare
from ..baselines.view import View
from ..certificate import Tolerance, certify
from ..errors import InputError, InputTypeError
from ..problem import E, Problem
from ..run import Checkpoint, Result, Status
from ..run.resume import resume
from ..run.settings import Settings
from ..solvers.drive import compiled_advance, compiled_begin
from . import endings
from .counting import Calls, count_calls
from .endings import require
from .exercises import Exercise, along, centre, cliff, ellipsoid, nearest
from .tracing import count_compilations

TOL = 0.03  # at which methods whose work is of order eps^-5 take seconds, too
EXERCISES = (ellipsoid, nearest, centre)  # the hardest one that a baseline does not decline is its own
ENOUGH = 2e7  # a budget that is never needed
STEPS = 5  # steps that are counted


def check_baseline(baseline: Any, *, seed: int = 0) -> None:
    """Checks a baseline: see `BASELINE_CHECKS` for what is checked, and for one check at a time.

    **Arguments:**

    - `baseline`: a baseline, or a name of `mescal.baselines.names()`.
    - `seed`: of its runs.

    **Raises:** `AssertionError`, which names the property that does not hold.
    """
    chosen = get(baseline) if isinstance(baseline, str) else baseline
    if not isinstance(chosen, Baseline):
        raise InputTypeError(f"{chosen!r} is no baseline", "a mescal.baselines.Baseline", "give one, or a name")
    for check in BASELINE_CHECKS.values():
        check(chosen, seed)


def of_its_class(baseline: Baseline) -> Exercise:
    """The first exercise of the baseline's class."""
    declined = []
    for at in (exercise() for exercise in EXERCISES):
        if (reason := baseline.declines(at.problem)) is None:
            return at
        declined.append(reason)
    raise AssertionError(f"{baseline.name}: its class has one of the exercises: it declines all of them, {declined}")


def certifies(baseline: Baseline, seed: int) -> None:
    """A certificate at the known minimiser, which a second judge confirms; its record is that of `minimize`.

    A certificate to eps puts x within eps / mu of a minimiser, mu = 1 the curvature of f and lam >= 0: 3 eps is ample.
    """
    at = of_its_class(baseline)
    result = _solve(baseline, at, seed)
    require(baseline, result.converged and result.solver == baseline.name, f"an easy problem is certified: {result}")
    endings.require_record(baseline, result)
    again = certify(at.problem, result.x, result.multipliers, slack=result.slack, tol=TOL)
    require(baseline, again.passes(TOL), f"another judge confirms the certificate: {again}")
    near = at.distance(result.x) <= 3 * TOL
    require(baseline, near, f"the point is within {3 * TOL} of {at.solution}: {result.x}")
    errors = [abs(float(value) - at.multiplier) for value in result.multipliers.values()]
    require(baseline, max(errors, default=0) <= 5 * TOL, f"the multiplier is {at.multiplier}: {result.multipliers}")
    last = result.history[-1]
    reported = last.inner == "verified" and max(last.stationarity, last.feasibility) <= TOL
    require(baseline, reported and last.step > 0 and last.batch > 0, f"the last row is that of a candidate: {last}")


def repeats(baseline: Baseline, seed: int) -> None:
    """Same seed, same bits; and whatever the seed, the tolerance and the cap on legs, nothing is compiled again."""
    at = of_its_class(baseline)
    first, again = _solve(baseline, at, seed), _solve(baseline, at, seed)
    same = np.array_equal(first.x, again.x) and first.work.solver == again.work.solver
    require(baseline, same, f"the same seed gives the same bits and the same work: {first.x} and {again.x}")
    _solve(replace(baseline, max_outer=3), at, seed, tol=1e-5)  # a run that ends unfinished: the judge looks for a kink
    with count_compilations() as compilations:
        _solve(baseline, at, seed + 1)
        tight = _solve(replace(baseline, max_outer=3), at, seed + 2, tol=1e-5)
    require(baseline, compilations.count == 0, f"another seed and tolerance compile nothing: {compilations.programs}")
    capped = tight.status is Status.OUTER_LIMIT and len(tight.history) == 3 and not tight.converged
    require(baseline, capped or tight.converged, f"max_outer is a cap on legs: {tight}")


def prices(baseline: Baseline, seed: int) -> None:
    """The work of its compiled steps is what instrumented functions saw, for methods of constrained problems.

    Those of problems without any choose batches while they run: blocks are padded, and instruments see the padding.
    """
    at = of_its_class(baseline)
    if not at.problem.constraints:
        return
    counted, f, c = _counted(at)
    run = prepare(counted, at.x0, baseline, Settings(tol=Tolerance(1e-6, 1e-3), cone="paper", seed=seed, max_outer=1))
    view = View(run.here, run.state)
    oracle, plan = view.oracle(), baseline.plan(view)
    state = compiled_begin(run.here.solver, oracle, run.state.z, plan, view.memory, run.here.key)
    jax.block_until_ready(state)
    jax.effects_barrier()
    before = state.progress.work.tally()
    f.reset()
    c.reset()
    state = compiled_advance(run.here.solver, oracle, state, plan, jnp.int32(STEPS))
    jax.block_until_ready(state)
    jax.effects_barrier()
    require(baseline, int(state.progress.steps) == STEPS, f"{STEPS} calls of step are {STEPS} steps")
    endings.require_prices(baseline, state.progress.work.tally() - before, f, c)


def ends(baseline: Baseline, seed: int) -> None:
    """Every way to end a run ends it, with the status that says so; what cannot be meant is refused."""
    at = of_its_class(baseline)

    def solve(problem: Any, x0: Any, **settings: Any) -> Result:
        return baseline.minimize(problem, x0, seed=seed, **settings)

    endings.check_endings(baseline, solve, at)
    if baseline.declines(falling := cliff()) is None:
        at_once = solve(falling, np.array([1.5], np.float32))
        kept = at_once.status is Status.NOT_FINITE and at_once.x == 1.5
        require(baseline, kept, f"a start where nothing is a number ends a run there: {at_once}")
    for wrong in ({"tol": -1.0}, {"max_work": 0}):
        _require_refused(baseline, lambda wrong=wrong: solve(at.problem, at.x0, **wrong), InputError, f"{wrong}")
    _require_refused(baseline, lambda: solve(3, at.x0), InputTypeError, "what is no problem")


def declines(baseline: Baseline, seed: int) -> None:
    """A problem outside of its class is refused before any work, with a reason."""
    for at in (exercise() for exercise in EXERCISES):
        if baseline.declines(at.problem) is not None:
            rows = []
            solve = lambda at=at, rows=rows: baseline.minimize(at.problem, at.x0, progress=rows.append)
            _require_refused(baseline, solve, OutOfClass, "a problem outside of its class")
            require(baseline, not rows, "a problem is declined before any work")


def resumes(baseline: Baseline, seed: int) -> None:
    """A run that is carried on from a checkpoint ends as if it had never stopped, bit for bit."""
    at = of_its_class(baseline)
    whole = _solve(baseline, at, seed)
    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpoint(folder, seconds=0.0)
        half = _solve(baseline, at, seed, max_work=whole.work.total / 8, checkpoint=kept)
        require(baseline, half.status is Status.WORK_LIMIT, f"a budget ends a run: {half.status.sentence}")
        resumed = resume(folder, at.problem, solver=baseline, max_work=ENOUGH)
    rows = [[row.multipliers for row in result.history] for result in (resumed, whole)]
    same = np.array_equal(resumed.x, whole.x) and resumed.work.solver == whole.work.solver and rows[0] == rows[1]
    require(
        baseline,
        same and resumed.status is whole.status,
        f"a run that is carried on ends as if it had never stopped: at {resumed.x} after {resumed.work.solver}, "
        f"and not at {whole.x} after {whole.work.solver}",
    )


BASELINE_CHECKS: dict[str, Callable[[Baseline, int], None]] = {
    check.__name__: check for check in (certifies, repeats, prices, ends, declines, resumes)
}


def _counted(at: Exercise) -> tuple[Problem, Calls, Calls]:
    """The exercise with functions that count their calls."""
    objective, f = count_calls(at.problem.objective.terms[0].fn)
    function, c = count_calls(along)  # not called where there is no constraint
    samples, others = at.samples
    constraints = {}
    for name, constraint in at.problem.constraints.items():
        function, c = count_calls(constraint.body.terms[0].fn)
        body = E(function, over=others) + constraint.body.constant
        constraints[name] = body <= 0 if constraint.kind == "<=" else body == 0
    return Problem(E(objective, over=samples), constraints), f, c


def _solve(baseline: Baseline, at: Exercise, seed: int, **changes: Any) -> Result:
    asked: dict[str, Any] = {"tol": TOL, "max_work": ENOUGH} | changes
    return baseline.minimize(at.problem, at.x0, seed=seed, **asked)


def _require_refused(baseline: Baseline, call: Callable[[], Any], error: type[Exception], what: str) -> None:
    try:
        call()
    except error:
        return
    raise AssertionError(f"{baseline.name}: {what} is refused with an {error.__name__}")

"""The conformance suite of practical solvers: what every one of them promises, on problems whose minimisers are known.

```python
from mescal import testing
testing.check_solver(MySolver())            # an AssertionError names the property that does not hold
```

Theory modes promise what their theorems say, of constants that they are told, and paper modes promise nothing: they are held to
their formulas instead.
"""

import tempfile
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..certificate import Tolerance, certify
from ..errors import InputTypeError
from ..oracle import Lagrangian, Tally, surrogate
from ..oracle.evaluator import evaluator_of
from ..oracle.subproblem import Subproblem
from ..problem import equality_form
from ..run import Checkpoint, Outer, Result, Status, minimize
from ..run.resume import resume
from ..solvers import Solver, get
from ..solvers.base import RUNNING, Goal, Memory, SubSolver
from ..solvers.drive import advance, begin
from . import endings
from .counting import count_calls
from .endings import require
from .exercises import ROWS, Exercise, along, cliff, distance, nearest, ridge
from .tracing import count_compilations

TOL, NOISY = 0.01, 0.05
STRICT = 1e-12  # what no run meets
SHORT = Outer(max_inner=100)  # for runs that are to be ended
LONG = Outer(max_inner=1200)  # for runs that are to be ended inside of an inner solve
BUDGET = 3e5  # evaluations per sample of such a run
STEPS = 60  # calls of `step` in which a solve by hand is watched, at most
LARGE = 4096  # thetas of its resets on a stream


def check_solver(solver: Any, *, seed: int = 0) -> None:
    """Checks a practical solver: see `SOLVER_CHECKS` for what is checked, and for one check at a time.

    **Arguments:**

    - `solver`: a solver object, or a name of `mescal.solvers.names()`.
    - `seed`: of its runs.

    **Raises:** `AssertionError`, which names the property that does not hold.
    """
    chosen = get(solver)
    if chosen.mode != "practical":
        raise InputTypeError(
            f"{chosen.name} is a {chosen.mode} mode", "a practical solver", "compare its work with its formulas instead"
        )
    for check in SOLVER_CHECKS.values():
        check(chosen, seed)


def certifies(solver: Solver, seed: int) -> None:
    """A certificate on a population, at the known minimiser, that a second judge confirms; its record is that of `minimize`.

    A certificate to eps puts x within eps / mu of the minimiser, mu = 1 the curvature of f on a linear constraint, by
    stationarity, and within eps / |bbar| by feasibility: 3 eps is ample.
    """
    at = nearest()
    result = _solve(solver, at, seed)
    _require_certified(solver, at, result, TOL, 3 * TOL)
    require(solver, abs(float(result.multipliers["along"]) - at.multiplier) <= 0.05, "the multiplier is the known one")
    endings.require_record(solver, result)
    again = certify(at.problem, result.x, result.multipliers, slack=result.slack, tol=TOL, seed=seed + 1)
    require(solver, again.passes(TOL), f"another judge confirms the certificate: {again}")


def certifies_on_streams(solver: Solver, seed: int) -> None:
    """The same on a stream: but for the 5 % of certificates that may be wrong."""
    at = nearest(streamed=True)
    _require_certified(solver, at, _solve(solver, at, seed, NOISY), NOISY, 3 * NOISY)


def repeats(solver: Solver, seed: int) -> None:
    """Same seed, same bits; and whatever the seed, the tolerance and the bound, nothing is compiled again.

    Tolerances, multipliers and penalties change from one outer iteration to the next: what they enter as anything but arrays
    compiles each of these anew.
    """
    first = _solve(solver, nearest(), seed)
    again = _solve(solver, nearest(), seed)
    same = np.array_equal(first.x, again.x) and first.work.solver == again.work.solver
    require(solver, same, f"the same seed gives the same bits and the same work: {first.x} and {again.x}")
    with count_compilations() as compilations:
        _solve(solver, nearest(0.4), seed + 1, Tolerance(0.004, 0.05))
    require(
        solver, compilations.count == 0, f"another seed, tolerance and bound compile nothing: {compilations.programs}"
    )


def prices(solver: Solver, seed: int) -> None:
    """On a population, the work of an inner solve is what instrumented functions saw, and its state keeps its types."""
    _watch(solver, seed, streamed=False)


def prices_on_streams(solver: Solver, seed: int) -> None:
    """The same on a stream, where values and gradients are estimates from batches."""
    _watch(solver, seed, streamed=True)


def ends(solver: Solver, seed: int) -> None:
    """Every way to end a run ends it, with the status that says so, and none of them is convergence."""

    def solve(problem: Any, x0: Any, **settings: Any) -> Result:
        return minimize(problem, x0, solver=solver, seed=seed, outer=SHORT, **settings)

    endings.check_endings(solver, solve, nearest())
    at_once = solve(cliff(), np.array([1.5], np.float32), max_outer=3)
    kept = at_once.status is Status.NOT_FINITE and at_once.x == 1.5
    require(solver, kept, f"a start where nothing is a number ends a run there: {at_once}")


def resumes(solver: Solver, seed: int) -> None:
    """A run that is carried on from a checkpoint ends as if it had never stopped, bit for bit."""
    at, asked = nearest(), {"tol": STRICT, "outer": LONG, "max_outer": 1}
    whole = _solve(solver, at, seed, max_work=BUDGET, **asked)
    with tempfile.TemporaryDirectory() as folder:
        kept = Checkpoint(folder, seconds=0.0)
        half = _solve(solver, at, seed, checkpoint=kept, max_work=whole.work.total / 16, **asked)
        require(solver, half.status is Status.WORK_LIMIT, f"a budget ends a run: {half.status.sentence}")
        resumed = resume(folder, at.problem, solver=solver, max_work=BUDGET)
    same = np.array_equal(resumed.x, whole.x) and resumed.work.solver == whole.work.solver
    require(
        solver,
        same and resumed.status is whole.status,
        f"a run that is carried on ends as if it had never stopped: at {resumed.x} after {resumed.work.solver}, "
        f"and not at {whole.x} after {whole.work.solver}",
    )


def leaves_saddles(solver: Solver, seed: int) -> None:
    """Started where all is stationary and feasible, and curvature negative, it ends at the minimiser."""
    at = ridge()
    result = minimize(at.problem, at.x0, solver=solver, tol=TOL, seed=seed, outer=Outer(penalty=10.0))
    found = result.converged and abs(result.objective - at.objective) <= TOL
    require(solver, found, f"a saddle is left: {result}")


SOLVER_CHECKS: dict[str, Callable[[Solver, int], None]] = {
    check.__name__: check
    for check in (
        certifies,
        certifies_on_streams,
        repeats,
        prices,
        prices_on_streams,
        ends,
        resumes,
        leaves_saddles,
    )
}


def _solve(solver: Solver, at: Exercise, seed: int, tol: Any = TOL, **settings: Any) -> Result:
    return minimize(at.problem, at.x0, solver=solver, tol=tol, seed=seed, **settings)


def _require_certified(solver: Solver, at: Exercise, result: Result, tol: float, near: float) -> None:
    require(solver, result.converged, f"an easy problem is certified: {result}")
    require(solver, at.distance(result.x) <= near, f"the point is within {near} of {at.solution}: {result.x}")


def _watch(solver: Solver, seed: int, streamed: bool) -> None:
    """One inner solve by hand: counters against calls, and the leaves of its states, step by step."""
    chosen = solver.sized(None if streamed else ROWS)
    (objective, f), (constraint, c) = count_calls(distance), count_calls(along)
    at = nearest(streamed=streamed, functions=(objective, constraint))
    sub = _subproblem(chosen, at)
    goal = Goal(
        TOL, TOL, 50 * STEPS, None if streamed else ROWS, LARGE, LARGE // 4, constants=None, ready=TOL, feasibility=TOL
    )
    dtype = np.float64 if chosen.precise else np.float32
    plan = chosen.plan(goal, dtype)
    z, key = np.ones(sub.parameters + 1, dtype), np.array([seed, 1], np.uint32)
    state = begin(chosen, sub, z, plan, Memory.fresh(1.0, dtype), key)
    leaves = _leaves(state)
    for _ in range(STEPS):
        state = advance(chosen, sub, state, plan, goal, 1)
        require(solver, _leaves(state) == leaves, f"a state keeps the shapes and types of its leaves: {_leaves(state)}")
        if int(state.progress.status) != RUNNING:
            break
    jax.block_until_ready(state)
    jax.effects_barrier()
    endings.require_prices(solver, state.progress.work.tally(), f, c)
    _, measured = chosen.outcome(sub, z, state, plan, goal)
    jax.effects_barrier()
    total = Tally() + state.progress.work.tally() + measured
    endings.require_prices(solver, total, f, c)


def _subproblem(solver: SubSolver, at: Exercise) -> Subproblem:
    """The augmented Lagrangian at a multiplier and a penalty."""
    dtype = np.dtype(np.float64 if solver.precise else np.float32)
    program, _ = at.problem.bind(at.x0, dtype=dtype)
    exact, _ = at.problem.bind(at.x0)
    oracle = Lagrangian(
        equality_form(program, at.problem.domain),
        at.problem.device_data(program, None if solver.precise else dtype),
        np.asarray([0.1], dtype),  # pyright: ignore[reportArgumentType]
        np.asarray(2.0, dtype),  # pyright: ignore[reportArgumentType]
        surrogate("ustat"),
    )
    looks = None if exact.population is None else evaluator_of(at.problem, exact)
    return Subproblem(oracle, looks, solver.precise)


def _leaves(state: Any) -> list[tuple[str, str, tuple[int, ...]]]:
    found = jax.tree_util.tree_leaves_with_path(state)
    return [(jax.tree_util.keystr(path), str(leaf.dtype), leaf.shape) for path, leaf in found]

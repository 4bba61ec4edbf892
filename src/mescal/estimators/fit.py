"""One fit: from padded rows to a judged model, with a warning or an error where the judge does not agree.

Data of up to 2^24 numbers are solved by exact Newton-CG in float64, larger ones by what `auto` chooses, in float32; both end
with the exact finish where it is affordable, and with a certificate of what is handed back.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..certificate import Certificate, Tolerance, certify
from ..errors import InputError
from ..problem import Problem, Program
from ..problem.constraint import Terms
from ..run import Outer, Result, Status, minimize
from ..run.limits import Signals
from ..solvers import NewtonCG
from .finish import affordable, finish
from .rates import RateConstraint

WHOLE = 8192  # rows that are looked at whole by any solver
ENTRIES = (
    1 << 24
)  # rows * columns up to which Newton-CG looks at all of them: 128 MB, a tenth of a second (benchmarks/census.py)
CLOSE = 1e-6  # the stationarity at which the exact finish takes over
LONG = 16  # outer iterations after which a violation that no longer falls is taken at its word
VIOLATED = 1e-3  # of a rate: a constraint exceeded by more, at the end of a run without a certificate, was not met


@dataclass(frozen=True)
class Solved:
    """The model, the multipliers and the values of the constraints (at most 0: met), the judge's word, and the run."""

    model: Any
    multipliers: np.ndarray
    constraints: np.ndarray
    certificate: Certificate
    result: Result

    def is_feasible(self, tol: Tolerance) -> bool:
        """Whether the constraints are met to the tolerance, whatever else is missing."""
        return self.certificate.violation.upper <= tol.violation


def looked_at_whole(solver: Any, rows: int, columns: int) -> bool:
    """Whether every step looks at all rows, in float64; otherwise rows are drawn, in float32."""
    return rows <= WHOLE or (solver == "auto" and rows * columns <= ENTRIES)


def solve(
    problem: Problem,
    start: Any,
    rows: int,
    *,
    whole: bool,
    solver: Any,
    tol: Tolerance,
    penalties: list[float],
    **settings: Any,
) -> Solved:
    """Minimise, finish, judge. Nothing is raised or warned of here.

    A run that went astray, to where saturated rows alone violate a constraint and nothing pulls them back, is repeated
    from its start with stiffer penalties, which keep it closer to the constraints; the least violation is kept.
    """
    best = None
    settings["solver"] = NewtonCG(exact=rows) if whole and solver == "auto" else solver
    with Signals() as signals:
        for penalty in penalties:
            solved = _attempt(problem, start, rows, whole, tol, penalty, settings)
            if signals.asked:  # nothing is kept of a fit that was stopped, and a search around it ends, too
                raise KeyboardInterrupt
            if best is None or _violation(solved) < _violation(best) or solved.certificate.passes(tol):
                best = solved
            if solved.certificate.passes(tol) or solved.result.status is Status.OUTER_LIMIT:
                break
    assert best is not None
    return best


def _violation(solved: Solved) -> float:
    return float(solved.constraints.max(initial=0.0))


def _attempt(
    problem: Problem, start: Any, rows: int, whole: bool, tol: Tolerance, penalty: float, settings: dict[str, Any]
) -> Solved:
    with jax.enable_x64(whole):
        # rates are of the size of 1 by nature, and the first penalty is meant in their units
        goal = replace(tol, gradient=min(tol.gradient, CLOSE)) if whole else tol
        result = minimize(problem, start, tol=goal, outer=Outer(penalty=penalty, scale=False), **settings)
        model = _host(result.x)
    if (
        result.status is Status.INTERRUPTED
    ):  # of a fit that was stopped nothing is kept, and a search around it ends, too
        raise KeyboardInterrupt
    certificate = result.certificate
    multipliers = _flat(result.multipliers)
    program, x = problem.bind(model)
    if certificate.passes(tol) and affordable(rows, program.parameters.size):
        better = finish(problem, program, x.astype(np.float64), multipliers)
        if better is not None:
            finished, verdict = _judged(problem, program, *better, certificate, tol)
            if verdict.passes(tol):
                model, certificate, multipliers = finished, verdict, better[1]
    return Solved(model, multipliers, _flat(certificate.constraints), certificate, result)


def _judged(
    problem: Problem, program: Program, x: np.ndarray, multipliers: np.ndarray, before: Certificate, tol: Tolerance
) -> tuple[Any, Certificate]:
    """A point as a model, with its own certificate, in the setting of the first one."""
    with jax.enable_x64(True):
        model = _host(program.parameters.unflatten(x))
        return model, certify(problem, model, multipliers, tol=tol, cone=before.cone, penalty=before.penalty)


def _host(model: Any) -> Any:
    """The model with its arrays in numpy, where their precision is nobody's setting."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, model)


def by_name(told: Certificate | Result, constraints: dict[str, RateConstraint], right: dict[str, float]) -> Any:
    """A certificate or a result in the user's names and terms: in the problem, all rates are one vector.

    `right` has the value of the right side of every constraint, beside which its left side is shown.
    """

    def named(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(zip(constraints, map(np.asarray, _flat(rows)), strict=True))

    if isinstance(told, Result):
        certificate = by_name(told.certificate, constraints, right)
        return replace(told, certificate=certificate, multipliers=named(told.multipliers), slack=named(told.slack))
    return replace(
        told,
        constraints=named(told.constraints),
        multipliers=named(told.multipliers),
        slack=named(told.slack),
        terms={name: Terms(each.sign, np.asarray(right[name])) for name, each in constraints.items()},
    )


def report_failure(solved: Solved, constraints: dict[str, RateConstraint], rate_of: Any, tol: Tolerance):
    """Raise where the constraints could not be met, warn where the judge refused for another reason."""
    if solved.certificate.passes(tol):
        return
    violated = bool(solved.constraints.size) and solved.constraints.max() > VIOLATED
    if violated and _stalled(solved.result):
        raise InputError(
            f"no model that meets the constraints was found; the closest has {_sides(constraints, rate_of)}",
            "constraints that one model can meet at once",
            "loosen them to what was reached, give the model more freedom (features, model=), or lower ridge",
        )
    told = (
        f"are met to {tol.violation:g}" if solved.is_feasible(tol) else f"are not met: {_sides(constraints, rate_of)}"
    )
    warnings.warn(
        f"The fit is not certified ({solved.result.status.word}): {'; '.join(solved.certificate.missing(tol))}."
        f"{f' The constraints {told}.' if constraints else ''} A larger ridge or a smaller sharpness makes the "
        "problem easier; max_outer lets it go on for longer, and tol says what is good enough.",
        ConvergenceWarning,
        stacklevel=5,
    )


def _stalled(result: Result) -> bool:
    """Whether the violation cannot fall to first order, or did not halve in the second half of a long run."""
    violation = [row.feasibility for row in result.history]
    slow = len(violation) >= LONG and violation[-1] > violation[len(violation) // 2] / 2
    return result.status is Status.INFEASIBLE or slow


def _sides(constraints: dict[str, RateConstraint], rate_of: Any) -> str:
    """Those constraints that are violated: the value that the left side has, and the bound where it is no number."""
    parts = []
    violated = {name: each for name, each in constraints.items() if each.body.value(rate_of) > 0}
    for name, constraint in (violated or constraints).items():
        left, right = constraint.left.value(rate_of), constraint.right.value(rate_of)
        bound = "" if not constraint.right.terms else f", where the right side is {right:.4g}"
        parts.append(f"{name!r} at {left:.4g} (asked: {constraint}{bound})")
    return "; ".join(parts)


def _flat(by_name: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(rows) for rows in by_name.values()]) if by_name else np.zeros(0)

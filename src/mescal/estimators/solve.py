"""One fit: from padded rows to a judged model, with a warning or an error where the judge does not agree.

Small data (a bucket of at most 8192 rows) are solved by exact Newton-CG in float64, larger ones by what `auto` chooses,
in float32; both end with the exact finish where it is affordable, and with a certificate of what is handed back.
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
from ..run import Outer, Result, Status, minimize
from .finish import affordable, finish
from .rates import RateConstraint
from .rows import WHOLE

CLOSE = 1e-6  # the stationarity at which the exact finish takes over
STIFFER = (1, 10, 100)  # factors on the first penalty
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


def precision(rows: int) -> str:
    """float64 where all rows are looked at in every step."""
    return "float64" if rows <= WHOLE else "float32"


def solve(problem: Problem, start: Any, rows: int, *, tol: float, penalty: float, **settings: Any) -> Solved:
    """Minimise, finish, judge. Nothing is raised or warned of here.

    A run that went astray, to where saturated rows alone violate a constraint and nothing pulls them back, is repeated
    from its start with stiffer penalties, which keep it closer to the constraints; the least violation is kept.
    """
    best = None
    for factor in STIFFER:
        solved = _attempt(problem, start, rows, tol=tol, penalty=penalty * factor, **settings)
        if best is None or _violation(solved) < _violation(best) or solved.certificate.passes(tol):
            best = solved
        if solved.certificate.passes(tol) or solved.result.status is Status.OUTER_LIMIT:
            break
    assert best is not None
    return best


def _violation(solved: Solved) -> float:
    return float(solved.constraints.max(initial=0.0))


def _attempt(problem: Problem, start: Any, rows: int, *, tol: float, penalty: float, **settings: Any) -> Solved:
    exact = precision(rows) == "float64"
    with jax.enable_x64(exact):
        # rates are of the size of 1 by nature, and the first penalty is meant in their units
        goal = Tolerance(min(tol, CLOSE) if exact else tol, tol)
        result = minimize(problem, start, tol=goal, outer=Outer(penalty=penalty, scale=False), **settings)
        model = _host(result.x)
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
    problem: Problem, program: Program, x: np.ndarray, multipliers: np.ndarray, before: Certificate, tol: float
) -> tuple[Any, Certificate]:
    """A point as a model, with its own certificate, in the setting of the first one."""
    with jax.enable_x64(True):
        model = _host(program.parameters.unflatten(x))
        return model, certify(problem, model, multipliers, tol=tol, cone=before.cone, penalty=before.penalty)


def _host(model: Any) -> Any:
    """The model with its arrays in numpy, where their precision is nobody's setting."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, model)


def by_name(certificate: Certificate, names: tuple[str, ...]) -> Certificate:
    """The certificate with the user's names: in the problem, constraints stand together in blocks."""

    def named(blocks: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(zip(names, map(np.asarray, _flat(blocks)), strict=True))

    return replace(
        certificate,
        constraints=named(certificate.constraints),
        multipliers=named(certificate.multipliers),
        slack=named(certificate.slack),
    )


def report_failure(solved: Solved, constraints: dict[str, RateConstraint], rate_of: Any, tol: float):
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
    unmet = f" The constraints are not met: {_sides(constraints, rate_of)}." if violated else ""
    warnings.warn(
        f"The fit is not certified ({solved.result.status.word}): {'; '.join(solved.certificate.missing(tol))}.{unmet} "
        "A larger ridge or a smaller sharpness makes the "
        "problem easier; max_outer lets it go on for longer, and tol says what is good enough.",
        ConvergenceWarning,
        stacklevel=4,
    )


def _stalled(result: Result) -> bool:
    """Whether the violation cannot fall to first order, or did not halve in the second half of a long run."""
    violation = [row.feasibility for row in result.history]
    slow = len(violation) >= LONG and violation[-1] > violation[len(violation) // 2] / 2
    return result.status is Status.INFEASIBLE or slow


def _sides(constraints: dict[str, RateConstraint], rate_of: Any) -> str:
    """Every constraint with the value that its left side has, and the bound where it is no number."""
    parts = []
    for name, constraint in constraints.items():
        left, right = constraint.left.value(rate_of), constraint.right.value(rate_of)
        bound = "" if not constraint.right.terms else f", where the right side is {right:.4g}"
        parts.append(f"{name!r} at {left:.4g} (asked: {constraint}{bound})")
    return "; ".join(parts)


def _flat(by_name: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(rows) for rows in by_name.values()]) if by_name else np.zeros(0)

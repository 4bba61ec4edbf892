"""From measures to a certificate: by-name reports, regularity, and sentences that a reader must not miss: flat regions, infeasible
stationary points, and their like.
"""

from dataclasses import replace

import numpy as np

from ..oracle.look import At
from ..oracle.work import Tally
from ..problem.constraint import held
from .certificate import Certificate, Measured
from .cones import NO_HESSIAN
from .request import DEFAULT_TOLERANCE, Request, Settled
from .rounded import Feasible
from .situation import Situation
from .tolerance import Tolerance

FLAT = 10.0  # a relative stationarity above this many tolerances, where the absolute test passes, is a flat region
IRREGULAR = 1e-3  # |P_T(-J'c)| / |c| below this: the violation cannot be reduced to first order
RANK = 1e-8  # smallest over largest singular value of the Jacobian below this: multipliers are not unique


def assemble(
    request: Request,
    point: At,
    situation: Situation,
    stationarity: Measured,
    feasible: Feasible,
    curvature: dict[str, Measured],
    objective: Measured,
    confidence: float | None,
    work: Tally,
    settled: Settled,
    direction: np.ndarray | None = None,
) -> Certificate:
    """The certificate of a point in the coordinates that are settled; a slack (m rows) is reported as it is settled."""
    layout, (multipliers, slack, frame), size = request.program.layout, settled, request.x.size
    if direction is not None:
        moved = frame.outward(direction[:size])
        direction = moved / np.linalg.norm(moved) if frame.count else moved
    violation = point.constraint + slack
    push = np.linalg.norm(request.project_tangent(-violation @ point.jacobian)) if violation.size else 0.0
    length = np.linalg.norm(violation)
    signed = (multipliers if request.multipliers is None else request.multipliers)[request.inequality]
    by_name = {n: v for n, v in layout.by_name(slack).items() if layout.kinds[layout.names.index(n)] == "<="}
    tangent, at = situation.tangent, request.program.parameters.unflatten(request.x)
    if not np.isfinite(point.objective):  # nothing is minimised where there is no value; NaN passes no test
        stationarity = replace(stationarity, lower=np.nan, upper=np.nan)
    certificate = Certificate(
        stationarity=stationarity,
        feasibility=feasible.feasibility,
        violation=feasible.violation,
        complementarity=feasible.complementarity,
        curvature=curvature[request.cone],
        relative_stationarity=stationarity.scaled(
            max(1.0, float(np.linalg.norm(request.x[: size - request.scalars]))), "stationarity * max(1, |x|)"
        ),
        objective=objective,
        cone=request.cone,
        curvatures=curvature,
        multipliers=layout.by_name(multipliers),
        slack=by_name,
        constraints=layout.by_name(point.constraint),
        dual_sign=float(np.min(signed, initial=np.inf)),
        jacobian_singular=float(np.linalg.svd(point.jacobian, compute_uv=False).min(initial=np.inf)),
        multiplier_norm=float(np.linalg.norm(multipliers)),
        regularity=float(push / length) if length > 0 else float("inf"),
        active_bounds=0 if tangent is None else int((tangent.lower | tangent.upper).sum() + len(tangent.inequalities)),
        penalty=request.penalty,
        confidence=confidence,
        direction=None if curvature[request.cone].value >= 0 else direction,
        work=work,
        terms={name: constraint.terms_at(at) for name, constraint in request.problem.constraints.items()},
    )
    sentences = diagnose(certificate, request.tolerance or DEFAULT_TOLERANCE, request.moved, point, tangent is not None)
    return replace(certificate, warnings=sentences)


def diagnose(certificate: Certificate, tolerance: Tolerance, moved: float, point: At, known: bool) -> tuple[str, ...]:
    """The warnings that a certificate carries; `known` says whether the tangent cone of the set is."""
    sentences = []
    if not np.isfinite(certificate.objective.value):
        sentences.append(
            f"The objective is {certificate.objective.value} at x: its derivatives say nothing there. Look for logarithms, "
            "roots and quotients outside of their domains, and for overflow."
        )
    absolute = Tolerance(tolerance.gradient, tolerance.curvature)
    relative = certificate.relative_stationarity.value
    if certificate.passes(absolute) and relative > FLAT * tolerance.gradient:
        sentences.append(
            f"The absolute tests pass only because the region is flat: stationarity * max(1, |x|) = {relative:.3g}, "
            f"more than {FLAT:g} times the tolerance; look at the objective, {certificate.objective.value:.6g}, and "
            "ask for Tolerance(relative=...)."
        )
    infeasible = certificate.feasibility.lower > max(tolerance.gradient, tolerance.violation)
    if infeasible and certificate.regularity < IRREGULAR:
        sentences.append(
            f"An infeasible stationary point: the violation {certificate.feasibility.value:.3g} cannot be reduced to "
            f"first order from here (regularity {certificate.regularity:.3g}); the constraints may be inconsistent, or "
            "the solver needs another start."
        )
    for row in held(certificate.constraints, certificate.terms):
        if not row.violated(tolerance.violation) and row.room < -FLAT * tolerance.violation:
            sentences.append(
                f"{row.name!r} is {row.comparison}, {row.gap}, and within the tolerance only because it is held in the units of "
                f"a small denominator: {row.excess:.3g} is left. Ask for Tolerance(feasibility=...), or for a larger floor."
            )
    singular = np.linalg.svd(point.jacobian, compute_uv=False)
    if singular.size and singular.min() <= max(RANK * singular.max(), float(np.linalg.norm(point.rounding.jacobian))):
        sentences.append("The constraint gradients are linearly dependent at x: the multipliers are not unique.")
    if certificate.dual_sign < -tolerance.gradient:
        sentences.append(
            f"A multiplier of an inequality is negative ({certificate.dual_sign:.3g}): moving inwards would improve."
        )
    if moved > 0:
        sentences.append(f"x was {moved:.3g} outside of the domain and was projected onto it before it was measured.")
    measured = certificate.curvature
    if measured.how.startswith(NO_HESSIAN):
        sentences.append(
            "The Hessian is not finite at x, so no curvature is known: look for powers below two, roots, logarithms and norms "
            "where what they are taken of vanishes. Smooth them, or keep x away by a bound."
        )
    elif measured.lower < -tolerance.curvature <= measured.upper:
        sentences.append(
            f"The curvature is only known to lie in [{measured.lower:.3g}, {measured.upper:.3g}], which contains the "
            "tolerance: this is no proof either way."
            + (
                ""
                if known
                else " A set of `mescal.sets` that has its rows, or constraints in its place, would tell more."
            )
        )
    return tuple(sentences)

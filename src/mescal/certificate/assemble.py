"""From measures to a certificate: by-name reports, regularity, warnings."""

from dataclasses import replace

import numpy as np

from ..oracle.look import At
from ..oracle.work import Tally
from .certificate import Certificate, Measured
from .diagnosis import diagnose
from .feasible import Feasible
from .request import DEFAULT_TOLERANCE, Request, Settled
from .situation import Situation


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

"""The judge: measures of a point, computed from problem, x and multipliers alone, whoever found them.

Exact, in float64, on finite populations; with confidence bounds where only samples can be had.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InputTypeError
from ..oracle.evaluator import evaluator_of
from ..problem import Problem
from . import second_order
from .assemble import assemble
from .certificate import Certificate, Measured
from .multipliers import stationarity_of
from .quotients import mismatch
from .request import Request, check_request
from .rounded import Rounded, widened
from .sampled import certify_from_samples
from .tolerance import Tolerance


def certify(
    problem: Problem,
    x: Any,
    multipliers: Any = None,
    *,
    slack: Any = None,
    tol: float | Tolerance | None = None,
    cone: str = "critical",
    penalty: float = 1.1,
    as_sample: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
    samples: int | None = None,
    bounds: Mapping[str, float] | None = None,
) -> Certificate:
    """Measure a point: stationarity, feasibility and curvature, with error bounds.

    **Arguments:**

    - `multipliers`: by constraint name (or flat); default: those that make stationarity smallest.
    - `slack`: of the inequalities, by name (or flat); default: 0 or max(0, -c) per inequality, whichever serves better.
    - `tol`: what the certificate will be held to: a number or a `Tolerance`. On streams it decides how many samples are
      drawn; on the critical cone, which multipliers count as positive.
    - `cone`: which curvature decides: `"critical"`, `"paper"` or `"whole"`. All three are reported.
    - `penalty`: of the augmented Lagrangian, for the whole-space curvature.
    - `as_sample`: treat finite data as draws from a distribution, and bound the measures for unseen data.
    - `confidence`: of all three error bounds together, on streams and with `as_sample`.
    - `samples`: draws of each stream; default: as many as it takes to decide `tol`, at most about a million.
    - `bounds`: almost-sure bounds on the deviation of one sample from its mean, under the keys `"gradient"`,
      `"constraint"` and `"hessian"`: with them the error bounds need no central limit theorem.

    **Returns:** a `Certificate`; `certificate.passes(tol)` is the verdict.
    """
    started = time.perf_counter()
    if not isinstance(as_sample, (bool, np.bool_)):
        raise InputTypeError(f"as_sample={as_sample!r}", "True or False", "leave it out to judge the rows as they are")
    request = check_request(problem, x, multipliers, slack, tol, cone, penalty, confidence, seed, samples, bounds)
    streams = any(source.size is None for source in problem.sources)
    if streams or as_sample:
        certificate = certify_from_samples(request, as_sample)
    else:
        certificate = _exact(request)
    return replace(certificate, seconds=time.perf_counter() - started)


def _exact(request: Request) -> Certificate:
    judge = evaluator_of(request.problem, request.program)
    point = judge.at(request.x)
    multipliers, slack = request.choose(point)
    how = f"exact over {judge.full_pass} rows" if request.problem.sources else "exact"
    stationarity = stationarity_of(
        multipliers, point.gradient, point.jacobian, request.inequality, slack, request.project_tangent
    )
    off = Rounded.at(judge, request.x, point, multipliers)
    situation = request.situation(point, multipliers, slack, off.stationarity)
    matrix = judge.hessian(request.x, multipliers) if request.x.size <= second_order.DENSE_SIZE else None

    def product(v: np.ndarray) -> np.ndarray:
        return judge.hessian_times(request.x, multipliers, v) if matrix is None else matrix @ v

    found = second_order.curvatures(situation, matrix, product, request.resolution, request.seed, request.cone)
    doubts = mismatch(request, judge, point, multipliers, product, off)
    certificate = assemble(
        request,
        point,
        situation,
        doubts.on_stationarity(widened(stationarity, off.stationarity, how)),
        widened(float(np.linalg.norm(point.constraint + slack)), off.feasibility, how),
        {name: doubts.on_curvature(c.widened(off.curvature(name, situation))) for name, c in found.items()},
        Measured(point.objective, point.objective - off.objective, point.objective + off.objective, how),
        None,
        judge.tally,
        slack,
        found[request.cone].direction,
    )
    return replace(certificate, warnings=(*doubts.sentences, *certificate.warnings))

"""The judge: measures of a point, computed from problem, x and multipliers alone, whoever found them.

Exact, in float64, on finite populations; with confidence bounds where only samples can be had.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..blas import one_thread
from ..errors import InputTypeError
from ..oracle.evaluator import Evaluator, evaluator_of
from ..problem import Problem
from . import second_order
from .assemble import assemble
from .budget import Budget
from .certificate import Certificate, Measured
from .multipliers import stationarity_of
from .quotients import mismatch
from .request import DEFAULT_TOLERANCE, Request, Settled, check_request
from .rounded import Rounded, feasible, widened
from .sampled import certify_from_samples
from .tolerance import Tolerance

DRAWN_OFF = 2.0  # tolerances: what scalars from some thousand draws may cost


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
    max_seconds: float | Budget | None = None,
) -> Certificate:
    """Measure a point: stationarity, feasibility and curvature, with error bounds.

    **Arguments:**

    - `multipliers`: by constraint name (or flat); default: those that make stationarity smallest. Those of inequalities that are
      negative, or beside a positive slack, count as zero.
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
    - `max_seconds`: after which nothing more is begun: what is measured by then stands, with the interval that it has, and a
      warning says what is missing. One look, its rounding bounds and multipliers are made in any case.

    **Returns:** a `Certificate`; `certificate.passes(tol)` is the verdict.
    """
    started = time.perf_counter()
    if not isinstance(as_sample, (bool, np.bool_)):
        raise InputTypeError(f"as_sample={as_sample!r}", "True or False", "leave it out to judge the rows as they are")
    options = tol, cone, penalty, confidence, seed, samples, bounds, max_seconds
    request = check_request(problem, x, multipliers, slack, *options)
    streams = any(source.size is None for source in problem.sources)
    # what overflows counts as infinite, and what that makes of other numbers passes no test
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        certificate = certify_from_samples(request, as_sample) if streams or as_sample else _exact(request)
        if problem.is_drawn and request.scalars and certificate.passes(request.tolerance or DEFAULT_TOLERANCE):
            beside = check_request(problem, problem.settled(x, drawn=True), multipliers, None, *options)
            certificate = _beside(certificate, certify_from_samples(beside, as_sample), request)
    warnings = (*certificate.warnings, *_missing(request, certificate))
    return replace(certificate, warnings=warnings, seconds=time.perf_counter() - started)


def _beside(certificate: Certificate, other: Certificate, request: Request) -> Certificate:
    """A certificate that passes; or the `other`, at the values that some thousand draws give to the scalars of statements, where
    that misses by more than these may be off: then the scalars of the first are not those of x.
    """
    tolerance = request.tolerance or DEFAULT_TOLERANCE
    steep = not other.stationarity.value <= DRAWN_OFF * tolerance.gradient
    bent = not other.curvature.value >= -DRAWN_OFF * tolerance.curvature
    return replace(other if steep or bent else certificate, work=certificate.work + other.work)


def _missing(request: Request, certificate: Certificate) -> list[str]:
    """What a judge whose time was up has left open, in words."""
    checks = certificate.checks(request.tolerance or DEFAULT_TOLERANCE)
    open_checks = [check for check in checks if not check.met and not check.refuted]
    if not open_checks or not request.budget.over:
        return []
    known = ", ".join(
        f"{check.name} in [{check.measured.lower:.3g}, {check.measured.upper:.3g}]" for check in open_checks
    )
    return [
        f"The judge's time was up, and this is all that is known: {known}. `certify` at this point, with more time or without "
        "`max_seconds`, goes on."
    ]


def _exact(request: Request) -> Certificate:
    judge = evaluator_of(request.problem, request.program)
    point = judge.at(request.x)
    settled = request.settle(judge, point)
    multipliers, slack, frame = settled
    lag = request.lag(judge, point, settled)
    point = frame.look(point)
    how = f"exact over {judge.full_pass} rows" if request.problem.sources else "exact"
    stationarity = stationarity_of(multipliers, point.gradient, point.jacobian, request.project_tangent)
    stationarity *= frame.loosened**0.5
    off = Rounded.at(judge, request, point, settled)
    error = off.slope(lag, point)
    situation = request.situation(point, settled, error)
    for hessian in _hessians(request, judge, settled, off):
        off = hessian.off
        # quotients first: without them nothing passes, however much time curvatures have
        doubts = mismatch(request, judge, point, settled, hessian.times, off)
        found = second_order.curvatures(
            situation, hessian.matrix, hessian.times, request.resolution, request.seed, request.cone, request.budget
        )
        if not hessian.is_tried or _decides(
            request, found[request.cone].widened(off.curvature(request.cone, situation))
        ):
            break
    certificate = assemble(
        request,
        point,
        situation,
        doubts.on_stationarity(widened(stationarity, error, how)),
        feasible(point.constraint, slack, request.inequality, point.rounding.constraint, 0.0, how),
        {name: doubts.on_curvature(c.widened(off.curvature(name, situation))) for name, c in found.items()},
        Measured(point.objective, point.objective - off.objective, point.objective + off.objective, how),
        None,
        judge.tally,
        settled,
        found[request.cone].direction,
    )
    return replace(certificate, warnings=(*doubts.sentences, *certificate.warnings))


class _Hessian(NamedTuple):
    """Products with the Hessian of the Lagrangian, the matrix where it is formed, and what rounding makes of the measures then."""

    matrix: np.ndarray | None
    times: Callable[[np.ndarray], np.ndarray]
    off: Rounded
    is_tried: bool = False  # and another one comes after it, where it does not decide


def _hessians(request: Request, judge: Evaluator, settled: Settled, off: Rounded) -> Iterator[_Hessian]:
    """Hessians to be tried in turn, the cheaper ones first: products alone, where forming it takes one for every parameter and
    Lanczos fewer; one whose Gram matrices are in float32, where that is much cheaper and a tolerance is there to be decided;
    the exact one, formed where it is small and there is time.
    """
    multipliers, _, frame = settled
    product = frame.product(partial(judge.hessian_times, request.x, multipliers))
    dense = request.x.size <= second_order.DENSE_SIZE
    if dense and second_order.by_products(request.x.size, lambda: judge.is_gram(request.x, multipliers)):
        yield _Hessian(None, product, off, True)
        if request.budget.over:
            return
    roughness = judge.roughness(request.x.size) if dense else None
    if roughness is not None and request.tolerance is not None:
        matrix = frame.matrix(judge.hessian(request.x, multipliers, rough=True))
        yield _Hessian(matrix, matrix.__matmul__, replace(off, hessian=off.hessian * (1 + roughness)), True)
        if request.budget.over:
            return
    if _forms_hessian(request, judge):
        matrix = frame.matrix(judge.hessian(request.x, multipliers))
        yield _Hessian(matrix, matrix.__matmul__, off)
    else:
        yield _Hessian(None, product, off)


def _decides(request: Request, measured: Measured) -> bool:
    """Whether a curvature is known well enough for the tolerance."""
    tolerance = request.tolerance or DEFAULT_TOLERANCE
    return not measured.lower < -tolerance.curvature <= measured.upper


def _forms_hessian(request: Request, judge: Evaluator) -> bool:
    """Whether the Hessian is small enough, and there is time for it: as if every column took as long as a look."""
    if request.x.size > second_order.DENSE_SIZE:
        return False
    if not request.budget.is_timed or request.x.size <= second_order.ALWAYS_FORMED:
        return True
    began = time.perf_counter()
    judge.at(request.x)
    return request.budget.affords((time.perf_counter() - began) * request.x.size)

"""Certificates from samples: choose on one batch, measure on another, bound the error at a stated confidence.

The failure probability is shared equally by the three measures and by the looks: on a stream with a tolerance, batches grow
until the answer is clear, and every look has fresh samples. A curvature that one look has decided is not measured again:
Hessians are what costs, and with such shares measures of several looks may stand together.
"""

import time
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import scipy

from ..oracle.evaluator import BLOCK_ROWS, Evaluator
from ..oracle.look import At
from ..oracle.work import Tally
from . import confidence
from .assemble import assemble
from .certificate import Certificate, Measured
from .cones import Curvature
from .inexact import Errors, lower_end, upper_end
from .multipliers import stationarity_of
from .quotients import Mismatch, mismatch
from .request import Request, Settled
from .rounded import Feasible, Rounded, feasible, widened
from .sampling import Batches, judged, split
from .second_order import ALWAYS_FORMED, CONES, DENSE_SIZE, on_cone, unmeasured
from .situation import Situation

GROWTH = 4  # of batches, from look to look
LOOKS = tuple(BLOCK_ROWS * GROWTH**k for k in range(4))  # samples of a stream, until the answer is clear
NORM_STEPS = 15  # of the power iteration that bounds the norm of a Hessian that is not formed


def certify_from_samples(request: Request, as_sample: bool) -> Certificate:
    """A certificate with confidence bounds."""
    streams = any(judged(source, as_sample).size is None for source in request.problem.sources)
    sizes = (request.samples,) if request.samples else LOOKS if request.tolerance and streams else LOOKS[1:2]
    certificate, before, work = None, None, Tally()
    for look, size in enumerate(sizes):
        began = time.perf_counter()
        failure = (1 - request.confidence) / len(sizes)
        decided = _decided(request, certificate)
        batches = split(request.problem, request.program, size, request.seed, look, as_sample, choosing=not decided)
        certificate, before = one_look(request, batches, failure, decided, before)
        work += certificate.work
        tolerance = request.tolerance
        if tolerance is None or certificate.passes(tolerance) or certificate.refuses(tolerance):
            break
        if not request.budget.affords(GROWTH * (time.perf_counter() - began)):
            break
    assert certificate is not None
    return replace(certificate, work=work)


def _decided(request: Request, before: Certificate | None) -> dict[str, Measured] | None:
    """The curvatures of an earlier look that stand: at multipliers and slacks that later looks have, too.

    Nothing is left to choose then, and no samples are drawn for it.
    """
    if before is None or request.tolerance is None or not request.is_fixed:
        return None
    return before.curvatures if before.curvature.lower >= -request.tolerance.curvature else None


def one_look(
    request: Request,
    batches: Batches,
    failure: float,
    decided: dict[str, Measured] | None = None,
    before: tuple[Rounded, Settled] | None = None,
) -> tuple[Certificate, tuple[Rounded, Settled]]:
    """One certificate from one pair of batches, with new curvatures, and with what was found `before` where they are `decided`; and
    what was found here: rounding, multipliers, slacks and coordinates.
    """
    judge = Evaluator.of(request.program, batches.second)
    chooser = judge if decided else Evaluator.of(request.program, batches.first)
    point = judge.at(request.x)
    chosen = point if decided else chooser.at(request.x)
    settled = before[1] if decided and before else request.settle(chooser, chosen)
    multipliers, slack, frame = settled
    lag = request.lag(judge, point, settled)
    point, chosen = frame.look(point), frame.look(chosen)
    # Slacks that were chosen rather than given may be any s >= 0: feasibility takes the best one; the multiplier is zero, as for
    # s > 0, whatever the sign of c turns out to be.
    inactive = request.inequality & (slack > 0)
    if request.slack is None:
        slack = np.where(inactive, np.maximum(0, -point.constraint), 0.0)
    sides = np.where(inactive, 1.0, 0.0)
    off = before[0] if decided and before else Rounded.at(judge, request, point, settled)
    bound = _Bounds(request, judge, batches, settled, failure / 3, off, lag, off.slope(lag, point))
    stationarity = stationarity_of(multipliers, point.gradient, point.jacobian, request.project_tangent)
    stationarity *= frame.loosened**0.5
    seen = settled._replace(slack=sides)
    situation = request.situation(point, seen, bound.off_slope)
    doubts = Mismatch()
    if decided is None:
        directions = _Hessian(request, chooser, settled)
        hessian = _Hessian(request, judge, settled)
        elsewhere = request.situation(chosen, seen)
        doubts = mismatch(request, judge, point, settled, hessian.times, off)
        measured = {}
        for name in sorted(CONES, key=lambda name: name != request.cone):
            there = None if request.budget.over else directions.on(name, elsewhere)
            measured[name] = bound.curvature(name, situation, hessian, there)
        decided = {name: doubts.on_curvature(measured[name]) for name in CONES}
    noise = float(np.sqrt(bound.moments.objective) * scipy.special.ndtri((1 + request.confidence) / 2))
    certificate = assemble(
        request,
        point,
        situation,
        doubts.on_stationarity(bound.stationarity(stationarity)),
        bound.feasible(point, slack),
        decided,
        Measured(point.objective, point.objective - noise, point.objective + noise, bound.how("objective")),
        request.confidence,
        judge.tally if chooser is judge else judge.tally + chooser.tally,
        settled._replace(slack=slack),
    )
    return replace(certificate, warnings=(*doubts.sentences, *certificate.warnings, *bound.words())), (off, settled)


class _Hessian:
    """The Hessian of the Lagrangian over a judge's rows, in a frame: formed where it is small, its products otherwise."""

    def __init__(self, request: Request, judge: Evaluator, settled: Settled):
        self.request, size, (multipliers, _, frame) = request, request.x.size, settled
        formed = size <= DENSE_SIZE and (size <= ALWAYS_FORMED or not request.budget.is_timed)
        self.matrix = frame.matrix(judge.hessian(request.x, multipliers)) if formed else None
        self.product = frame.product(partial(judge.hessian_times, request.x, multipliers))

    def times(self, u: np.ndarray) -> np.ndarray:
        """H u."""
        return self.product(u[:, None])[:, 0] if self.matrix is None else self.matrix @ u

    def along(self, u: np.ndarray) -> float:
        """u'Hu."""
        return float(u @ self.times(u))

    def on(self, name: str, situation: Situation, relaxed: float | None = None) -> Curvature:
        """The smallest curvature on a cone."""
        resolution, seed = self.request.resolution, self.request.seed
        budget = self.request.budget
        return on_cone(name, situation, self.matrix, self.product, resolution, seed, relaxed, budget=budget)

    @cached_property
    def norm(self) -> float:
        """|H|; estimated with a margin where H is not formed."""
        if self.matrix is not None:
            return float(np.linalg.norm(self.matrix, 2))
        v, length = np.random.default_rng(self.request.seed).standard_normal(self.request.x.size), 0.0
        for _ in range(NORM_STEPS):
            v = self.product(v[:, None] / np.linalg.norm(v))[:, 0]
            length = float(np.linalg.norm(v))
        return confidence.POWER_MARGIN * length


class _Bounds:
    """Error bounds of one look, each at the failure probability of one measure."""

    def __init__(
        self,
        request: Request,
        judge: Evaluator,
        batches: Batches,
        settled: Settled,
        failure: float,
        off: Rounded,
        lag: np.ndarray,
        off_slope: float,
    ):
        self.request, self.judge, self.batches, self.failure = request, judge, batches, failure
        self.lag, self.off_slope = lag, off_slope
        self.given = dict(request.bounds or {})
        self.at = request.x, settled.multipliers, settled.frame
        self.off = off
        self.moments = confidence.moments(judge, batches.second, batches.noisy, *self.at)
        pairs = zip(batches.second, batches.noisy, strict=True)
        self.sizes = [population.size for population, noisy in pairs if noisy]

    def how(self, kind: str) -> str:
        basis = "by the given bound" if kind in self.given else f"by the CLT, blind to events rarer than {self.unseen}"
        return f"{self.judge.full_pass} samples, confidence {self.request.confidence:g} {basis}"

    def words(self) -> list[str]:
        """What a reader must know where draws show no spread at all, so that errors count as zero."""
        moments, families = self.moments, self.judge.program.families
        feeding = any(family.fed[0] and self.batches.noisy[k] for family in families for k in family.members)
        still = {
            "gradient": moments.gradient.trace <= 0,
            "constraint": feeding and not moments.constraint.any(),
            "Hessian": "hessian_spread" in self.__dict__ and self.hessian_spread[0] <= 0,
        }
        names = [name for name, held in still.items() if held and name.lower() not in self.given]
        if not names or not self.sizes:
            return []
        return [
            f"No two of {min(self.sizes)} draws differ in the {' or the '.join(names)}: its sampling error counts as zero, and "
            f"events rarer than {self.unseen} may not have been seen. Where they matter, give `bounds`."
        ]

    @property
    def unseen(self) -> str:
        """Events of which the draws may well show nothing: (1 - p)^n >= delta."""
        n = min(self.sizes, default=1)
        return f"1 in {max(1, int(n / np.log(1 / (1 - self.request.confidence)))):,}"

    def stationarity(self, value: float) -> Measured:
        return widened(value, self._slope(self.failure), self.how("gradient"))

    def _slope(self, failure: float) -> float:
        """What the gradient of the Lagrangian is off by: as it is measured, and as scalars lag behind a c that is measured, too."""
        failure = failure / 2 if self.lag.any() else failure
        radius = self._radius("gradient", self.moments.gradient, failure) * self.at[2].loosened ** 0.5
        if self.lag.any():
            spread = confidence.Spread.of(self.lag @ self.moments.constraint @ self.lag.T)
            radius += self._radius("constraint", spread, failure, float(np.linalg.norm(self.lag, 2)))
        return radius + self.off_slope

    def feasible(self, point: At, slack: np.ndarray) -> Feasible:
        radius = self._radius("constraint", confidence.Spread.of(self.moments.constraint), self.failure)
        off = point.rounding.constraint
        return feasible(point.constraint, slack, self.request.inequality, off, radius, self.how("constraint"))

    def curvature(self, name: str, situation: Situation, hessian: _Hessian, elsewhere: Curvature | None) -> Measured:
        """Both ends from `inexact`; directions for the upper one: fixed on the other batch, and found on this one.

        Nothing is known where there was no time for a direction `elsewhere`, or for the spread of Hessians.
        """
        if elsewhere is None or not np.isfinite((errors := self.errors).hessian):
            return unmeasured().widened(0.0)
        found, size = hessian.on(name, situation), self.request.x.size
        norm = hessian.norm + errors.hessian
        lower = lower_end(name, situation, found, partial(hessian.on, name), norm, errors)
        candidates = []
        if found.direction is not None:
            candidates.append((found.direction, hessian.along(found.direction[:size]) + errors.hessian))
        if elsewhere.direction is not None and "hessian" not in self.given:
            u = elsewhere.direction
            variance = confidence.directional(self.judge, self.batches.noisy, *self.at, u[:size])
            deviation = scipy.special.ndtri(1 - self.failure / 4) * np.sqrt(variance)
            candidates.append((u, hessian.along(u[:size]) + float(deviation)))
        upper = np.inf if found.upper == np.inf else upper_end(name, situation, candidates, norm, errors)
        how = f"{found.how}; {self.how('hessian')}"
        if "hessian" in self.given and errors.jacobian > 0:
            how += ", the Jacobian by the CLT"
        return Measured(found.value, min(lower, found.value), max(upper, found.value), how)

    @cached_property
    def errors(self) -> Errors:
        """What the curvatures are subject to, each at a quarter of the failure probability."""
        failure = self.failure / 4
        jacobian = np.sqrt(self.moments.jacobian) * (1 + np.sqrt(2 * np.log(1 / failure)))
        sampled = float(jacobian) > 0
        return Errors(
            self._hessian(failure) + self.off.hessian,
            float(jacobian) + self.off.jacobian if sampled else 0.0,
            self._slope(failure),
        )

    @cached_property
    def hessian_spread(self) -> tuple[float, float]:
        """The spread of Hessians over all draws, and the reach of the largest."""
        given = self.request.seed, self.request.budget
        return confidence.hessian_spread(self.judge, self.batches.noisy, *self.at, *given)

    def _radius(self, kind: str, spread: confidence.Spread, failure: float, factor: float = 1.0) -> float:
        """Error of a mean; of a `factor` of it at most, which `spread` has already."""
        if kind not in self.given:
            return spread.radius(failure) + factor * confidence.rare(self.moments.reach[kind], np.log(1 / failure))
        log = np.log(2 * max(len(self.sizes), 1) / failure)
        bound = factor * self.given[kind] * (self.at[2].norm if kind == "gradient" and self.at[2].count else 1.0)
        return float(sum(bound * np.sqrt(2 * log / n) for n in self.sizes))

    def _hessian(self, failure: float) -> float:
        """Error of the mean Hessian in operator norm."""
        size = self.request.x.size
        if "hessian" not in self.given:
            return confidence.matrix_radius(self.hessian_spread[0], size, failure, self.hessian_spread[1])
        bound = self.given["hessian"] * (self.at[2].norm ** 2 if self.at[2].count else 1.0)
        log = np.log(2 * size * max(len(self.sizes), 1) / failure)
        return float(sum(np.sqrt(2 * bound**2 * log / n) + 2 * bound * log / (3 * n) for n in self.sizes))

"""What `certify` was asked: checked once, then flat and in float64 for everything behind it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import jax
import numpy as np

from ..checks import real_number
from ..compiling import compiled
from ..errors import InputError, InputTypeError
from ..oracle.evaluator import Evaluator
from ..oracle.look import At
from ..problem import Parameters, Problem, Program
from ..sets import ConvexSet, Reals
from ..sets.arrays import rounding
from .budget import ENDLESS, Budget
from .multipliers import admissible, best_multipliers, stationarity_of
from .scalars import Determined, Frame, completed, frame_of
from .second_order import CONES
from .situation import Situation
from .slacks import choose_slack
from .tolerance import Tolerance, as_tolerance

NEAR = 1e-6  # points within this times max(1, |x_i|) of X, in every coordinate, are projected onto it before they are measured
TRIALS = 3  # of what rounding in large coordinates does to small ones
DEFAULT_TOLERANCE = Tolerance(0.01, 0.01)
WEAK_MULTIPLIER = 1e-6  # multipliers of bounds below this (or below the tolerance, if one is given) count as zero


class Settled(NamedTuple):
    """What a point is measured with: multipliers, slacks (m rows, zero on equalities), and coordinates of x and its scalars."""

    multipliers: np.ndarray
    slack: np.ndarray
    frame: Frame


@dataclass(frozen=True)
class Request:
    """What `certify` was asked, checked and brought into flat float64 form."""

    problem: Problem
    program: Program
    near: Any  # the point in its own precision, projected: activity is decided there
    x: np.ndarray
    moved: float
    multipliers: np.ndarray | None
    slack: np.ndarray | None
    tolerance: Tolerance | None
    cone: str
    penalty: float
    confidence: float
    seed: int
    samples: int | None
    bounds: Mapping[str, float] | None
    budget: Budget

    @property
    def inequality(self) -> np.ndarray:
        """Which rows of c are inequalities."""
        return self.program.layout.inequality

    @property
    def strong(self) -> float:
        """The size above which a multiplier of a bound counts as positive."""
        return WEAK_MULTIPLIER if self.tolerance is None else self.tolerance.gradient

    def project_tangent(self, v: np.ndarray) -> np.ndarray:
        """Projection onto T_X(x), flat and in float64."""
        if isinstance(self.problem.domain, Reals):
            return np.asarray(v, np.float64)
        with jax.enable_x64(True):
            return np.asarray(
                _tangent(self.problem.domain, self.program.parameters, self.near, np.asarray(v, np.float64))
            )

    def project(self, x: np.ndarray) -> np.ndarray:
        """Projection onto X, flat and in float64."""
        if isinstance(self.problem.domain, Reals):
            return x
        with jax.enable_x64(True):
            nearest = self.problem.domain.project(self.program.parameters.arrays(x))
            return np.asarray(self.program.parameters.flatten(nearest), np.float64)

    @property
    def is_fixed(self) -> bool:
        """Whether multipliers and slacks are given, so that nothing about them depends on samples."""
        given = self.multipliers is not None or not self.inequality.size
        return given and (self.slack is not None or not self.inequality.any())

    @property
    def scalars(self) -> int:
        """How many of the parameters, the last ones, are scalars that statements add."""
        return len(self.problem.lifting.starts) if self.problem.lifting else 0

    def settle(self, judge: Evaluator, point: At) -> "Settled":
        """Multipliers and slacks as given, or the best, those of scalars completed, and how scalars follow x at them."""
        found = Settled(*self.choose(point), Frame.none(self.x.size))
        if not self.scalars:
            return found
        if not self.is_fixed:
            frame = self._followed(judge, point, self._held(point, found))[1]
            found = Settled(*self.choose(frame.look(point)), frame)
        for _ in range(self.scalars):  # what completes one may push another
            found = self._held(point, found)
            determined, frame = self._followed(judge, point, found)
            steep, before = self._steep(point, found.multipliers), found.multipliers
            found = found._replace(multipliers=completed(determined, before, self.inequality, steep))
            if np.array_equal(found.multipliers, before):
                return found._replace(frame=frame)
        return found._replace(frame=self._followed(judge, point, found)[1])

    def _held(self, point: At, settled: Settled) -> Settled:
        """With the nearest of the inequalities that determine a scalar taken for active, where something pushes the scalar and
        none is: the scalar ends there, and what keeps it from that is complementarity's.
        """
        slack, scalar = settled.slack.copy(), self._determined
        for i in np.flatnonzero(self._steep(point, settled.multipliers)):
            own = scalar == i
            if own.any() and (self.inequality & (slack > 0))[own].all():
                slack[np.argmax(np.where(own, point.constraint, -np.inf))] = 0.0
        return settled._replace(slack=slack)

    def _steep(self, point: At, multipliers: np.ndarray) -> np.ndarray:
        """Slopes of the Lagrangian along scalars beyond rounding, those that ends of their ranges make up for taken off."""
        steep = -self.project_tangent(-(point.gradient + multipliers @ point.jacobian))[-self.scalars :]
        rounding = point.rounding.gradient + np.abs(multipliers) @ point.rounding.jacobian
        return np.where(np.abs(steep) > rounding[-self.scalars :], steep, 0.0)

    @property
    def _determined(self) -> np.ndarray:
        """The number of the scalar that a row of c determines, or -1."""
        layout, lifting, scalar = self.program.layout, self.problem.lifting, np.full(len(self.inequality), -1)
        assert lifting is not None
        places = sorted(lifting.starts)  # as JAX orders a dict
        for name, rows in zip(layout.names, layout.slices, strict=True):
            if (beside := self.problem.constraints[name].beside) is not None:
                scalar[rows] = places.index(beside)
        return scalar

    def _followed(self, judge: Evaluator, point: At, settled: Settled) -> tuple[Determined, Frame]:
        """What determines scalars, and how they follow x."""
        situation = self.situation(point, settled)
        determined = Determined.of(self.scalars, self._determined, situation, point)
        ended = np.ones(self.scalars, bool)
        if (tangent := situation.tangent) is not None:
            ended = (tangent.lower | tangent.upper)[-self.scalars :]
        columns = self._columns(judge, settled)
        return determined, frame_of(determined, columns, ended, self._steep(point, settled.multipliers))

    def _columns(self, judge: Evaluator, settled: Settled) -> np.ndarray:
        """Those of the Hessian of the Lagrangian that belong to scalars."""
        return judge.hessian_times(self.x, settled.multipliers, np.eye(self.x.size)[:, -self.scalars :])

    def lag(self, judge: Evaluator, point: At, settled: Settled) -> np.ndarray:
        """By how much slopes in x are off per unit of c, as scalars are not where the rows that determine them have them."""
        if not self.scalars:
            return np.zeros((self.x.size, len(self.inequality)))
        determined = Determined.of(self.scalars, self._determined, self.situation(point, settled), point)
        return determined.lag(self._columns(judge, settled), settled.frame)

    def choose(self, point: At) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers and slacks (m rows, zero on equalities): as given, or the best.

        A certificate says that there are slacks s >= 0 with which the point is nearly stationary and feasible. Given ones are the
        first reading; s_j = 0 is another where a given s_j > 0 is within the tolerance and less than what its multiplier pushes,
        lam_j |J_j|: that costs feasibility s_j and saves stationarity, if these pushes
        are more than half of what may be. Without multipliers each reading has its best. Multipliers that are
        not admissible beside the slacks count as zero.
        """
        if self.slack is None:
            chosen = choose_slack(
                point.gradient,
                point.jacobian,
                point.constraint,
                self.inequality,
                self.project_tangent,
                self.multipliers,
                errors=point.rounding.jacobian,
            )
            return chosen.multipliers, chosen.slack
        small = 0.0 if self.tolerance is None else self.tolerance.gradient
        if self.multipliers is not None:
            pushes = self.multipliers * np.linalg.norm(point.jacobian, axis=1)
            beside = (self.slack > 0) & (self.slack < np.minimum(pushes, small))
            counts = float(np.linalg.norm(pushes[beside])) > small / 2
            slack = np.where(beside & counts, 0.0, self.slack)
            return admissible(self.multipliers, self.inequality, slack), slack
        first = self._reading(point, self.slack)
        if first[0] <= small or not (self.slack[self.slack > 0] <= small).any():
            return first[1:]
        second = self._reading(point, np.where(self.slack <= small, 0.0, self.slack))
        return min(first, second, key=lambda reading: reading[0])[1:]

    def _reading(self, point: At, slack: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The larger of stationarity and feasibility at given slacks and the best multipliers; both of these."""
        given = (point.gradient, point.jacobian)
        best = best_multipliers(*given, self.inequality, slack, self.project_tangent, errors=point.rounding.jacobian)
        steep = stationarity_of(best, *given, self.project_tangent)
        return max(steep, float(np.linalg.norm(point.constraint + slack))), best, slack

    def situation(self, point: At, settled: Settled, off: float = 0.0) -> Situation:
        """The point as the second-order conditions see it; `off` is what rounding makes of its gradient."""
        multipliers, slack, frame = settled
        gradient = point.gradient + multipliers @ point.jacobian
        return Situation(
            gradient=gradient,
            jacobian=point.jacobian,
            multipliers=multipliers,
            inequality=self.inequality,
            slack=slack,
            tangent=self.problem.domain.tangent_cone(self.near),
            normal=-gradient - self.project_tangent(-gradient),
            penalty=self.penalty,
            strong=self.strong,
            doubt=-2 * off,
            errors=np.linalg.norm(point.rounding.jacobian, axis=1),
            loosened=frame.lengthened,
        )

    @property
    def resolution(self) -> float:
        """How finely curvature must be known where it is not computed densely."""
        return (self.tolerance or DEFAULT_TOLERANCE).curvature / 8


@compiled
def _tangent(domain: ConvexSet, parameters: Parameters, near: Any, v: Any) -> jax.Array:
    return parameters.flatten(domain.project_tangent(near, parameters.arrays(v))).astype(v.dtype)


def check_request(
    problem, x, multipliers, slack, tol, cone, penalty, confidence, seed, samples, bounds, max_seconds=None
) -> Request:
    """The request, or an error in three parts."""
    if not isinstance(problem, Problem):
        raise InputTypeError(
            f"certify got {type(problem).__name__} as its problem",
            "a mescal.Problem",
            "build one with mescal.Problem(...)",
        )
    if not isinstance(cone, str) or cone not in CONES:
        raise InputError(f"cone={cone!r}", f"one of {list(CONES)}", "leave it out for 'critical'")
    if not isinstance(seed, (Integral, np.integer)) or isinstance(seed, bool):
        raise InputTypeError(f"seed={seed!r}", "an integer", "write for example seed=0")
    if not 0 <= int(seed) < 2**32:
        raise InputError(f"seed={seed}", "an integer from 0 up to 2^32", "write for example seed=0")
    if not _is_number(confidence) or not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r}", "a number between 0 and 1", "use for example 0.95")
    if not _is_number(penalty) or not 0 < penalty < np.inf:
        raise InputError(f"penalty={penalty!r}", "a positive number", "use the penalty of the augmented Lagrangian")
    if samples is not None and (not isinstance(samples, (Integral, np.integer)) or samples < 16):
        raise InputError(f"samples={samples!r}", "an integer of at least 16", "leave it out to let certify decide")
    given = bounds if isinstance(bounds, Mapping) else {"": bounds} if bounds is not None else {}
    known = set(given) <= {"gradient", "constraint", "hessian"}
    if not known or any(not _is_number(value) or not 0 < value < np.inf for value in given.values()):
        raise InputError(
            f"bounds={bounds!r}",
            "positive numbers under 'gradient', 'constraint' and 'hessian'",
            "give a bound on the deviation of one sample from its mean",
        )
    tolerance = None if tol is None else as_tolerance(tol)
    _, found = problem.bind(x)
    program, vector = problem.bind(problem.settled(x))
    if not np.array_equal(vector, found):
        slack = None  # those of rows that determine scalars are of other ones
    near, moved = _project(problem, program, vector)
    layout = program.layout
    return Request(
        problem=problem,
        program=program,
        near=near,
        x=np.concatenate([np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(near)]).astype(np.float64),
        moved=moved,
        multipliers=None
        if multipliers is None
        else _numbers(partial(layout.rows, what="multipliers"), multipliers, "multipliers"),
        slack=None if slack is None else _numbers(layout.slack_rows, slack, "slack"),
        tolerance=tolerance,
        cone=cone,
        penalty=float(penalty),
        confidence=float(confidence),
        seed=int(seed),
        samples=None if samples is None else int(samples),
        bounds=bounds,
        budget=_budget(max_seconds),
    )


def _budget(seconds: Any) -> Budget:
    if seconds is None or isinstance(seconds, Budget):
        return seconds or ENDLESS
    if not _is_number(seconds) or not seconds >= 0:
        raise InputError(f"max_seconds={seconds!r}", "a number of seconds", "leave it out for as long as it takes")
    return Budget.of(float(seconds))


def _is_number(value: Any) -> bool:
    return real_number(value) is not None


def _numbers(read: Callable[[Any], np.ndarray], values: Any, what: str) -> np.ndarray:
    """What `read` makes of values given by constraint name or flat, whatever they are."""
    try:
        return read(values)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{what}={values!r:.60}",
            "numbers, by constraint name or as one flat array",
            f"pass what a solver returned, or leave {what} out",
        ) from error


def _project(problem: Problem, program: Program, vector: np.ndarray) -> tuple[Any, float]:
    """x projected onto X in its own precision, and how far it was moved; refused when that is far in some coordinate.

    How far a coordinate may be moved by rounding is tried: sets that couple coordinates move small ones when large ones are
    rounded, others do not.
    """
    near, flat = _nearest(problem, program, vector)
    unit = rounding(near)
    sizes, moved = np.maximum(np.abs(vector), np.abs(flat)), np.abs(flat - vector)
    if not moved.any():
        return near, 0.0
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(TRIALS, vector.size))
    shaken = [flat * (1 + unit * sign) for sign in signs]
    coupled = np.max([np.abs(_nearest(problem, program, other)[1] - other) for other in shaken], axis=0)
    if (moved <= unit * sizes + coupled).all():
        return near, 0.0
    allowed = NEAR * np.maximum(1.0, sizes) + coupled
    if not (moved <= allowed).all():
        worst, far = int(np.argmax(moved / allowed)), float(moved.max())
        raise InputError(
            f"x lies outside of {problem.stated_domain}, at a distance of {far * np.linalg.norm(moved / far):.3g} "
            f"({moved[worst]:.3g} in coordinate {worst})",
            f"a point of the domain, to within {NEAR:g} max(1, |x_i|) in every coordinate",
            "project it first, by the project(x) of the domain",
        )
    return near, float(np.linalg.norm(moved))


def _nearest(problem: Problem, program: Program, vector: np.ndarray) -> tuple[Any, np.ndarray]:
    """The projection in the precision of the parameters, and as a flat vector in float64."""
    with jax.enable_x64(True):
        near = jax.tree.map(np.asarray, problem.domain.project(program.parameters.typed(vector)))
    return near, np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(near)]).astype(np.float64)

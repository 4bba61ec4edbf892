"""Multipliers that make a point look most stationary, and the slacks that go with them.

With slacks s >= 0, stationarity of (lam, s) is ``chi(lam) = |(P_T(-(g + J'lam)), slack part)|``: P_T projects onto the
tangent cone of X, and the slack part of an inequality is lam_j where s_j > 0 and min(lam_j, 0) where s_j = 0. The best
multipliers are

    ``lam = argmin phi(lam),   phi = chi^2 / 2,   grad phi = -J P_T(-(g + J'lam)) + slack part``.

phi is convex and C^{1,1}, and piecewise quadratic for polyhedral T. A semismooth Newton method with an exact line search
finds its minimiser: on each piece P_T is linear, ``P_T(v) = D v``, and the step solves the least-squares problem of that
piece. D acts through `project_tangent_jvp` or through central differences of `project_tangent`, exact on a piece.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..errors import InputError

Array = np.ndarray
Project = Callable[[Array], Array]

RANK_TOLERANCE = 1e-12  # singular values of the unit columns below this are rounding in the Jacobian
DECREASE = 1e-25  # the part of |g|^2 that a step must still promise for the iteration to go on
ENUMERATED = 6  # up to this many inequalities with two possible slacks, all choices are tried
EXCURSION = 12  # Newton steps taken without a line search where the line search gains little
CURVED_REACH = 1e-5  # relative step of differences where P_T is curved: the error is its square, the rounding 1e-10
TIE = 1e-12  # measures closer than this times |g| are equal


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """Multipliers and slacks (zero on equalities), both of length m, with the stationarity and feasibility of the two."""

    multipliers: Array
    slack: Array
    stationarity: float
    feasibility: float


def stationarity_of(
    multipliers: Array, gradient: Array, jacobian: Array, inequality: Array, slack: Array, project_tangent: Project
) -> float:
    """``chi = |(P_T(-(g + J'lam)), slack part)|``."""
    lam = np.asarray(multipliers, dtype=np.float64)
    tangent = np.asarray(project_tangent(-(gradient + lam @ jacobian)), dtype=np.float64)
    return float(math.hypot(np.linalg.norm(tangent), np.linalg.norm(_slack_part(lam, inequality, slack))))


def best_multipliers(
    gradient: Array,
    jacobian: Array,
    inequality: Array,
    slack: Array,
    project_tangent: Project,
    *,
    project_tangent_jvp: Callable[[Array, Array], Array] | None = None,
) -> Array:
    """The multipliers with the smallest stationarity for given slacks; of several on one piece, the shortest.

    **Arguments:**

    - `gradient`: g of shape (d,); `jacobian`: J of shape (m, d); `inequality`: which of the m rows are inequalities.
    - `slack`: of length m, zero on equalities.
    - `project_tangent`: v -> P_T(v), positively homogeneous and nonexpansive.
    - `project_tangent_jvp`: (v, w) -> the derivative of P_T at v along w; default: differences of `project_tangent`.
    """
    tangent = _Tangent(gradient, jacobian, project_tangent, project_tangent_jvp)
    return _minimise(tangent, _mask(inequality, tangent), _vector(slack, tangent), np.zeros(tangent.rows))


def choose_slack(
    gradient: Array,
    jacobian: Array,
    constraint: Array,
    inequality: Array,
    project_tangent: Project,
    multipliers: Array | None = None,
    *,
    project_tangent_jvp: Callable[[Array, Array], Array] | None = None,
) -> FirstOrder:
    """Slacks, 0 or max(0, -c_j) per inequality, with the smallest max(stationarity, feasibility).

    Each choice has its best multipliers, or the given `multipliers`. Feasibility is ``|c + s|``. Of equal choices the one
    with the smaller stationarity is kept, then the one with more slacks max(0, -c_j). With more than six inequalities to
    choose for, the choice is a local one: no change of a single slack improves it. It is the best from three starts: all
    zero, all max(0, -c_j), and zero where ``|lam_j| > -c_j``. Setting a slack to zero never increases stationarity and
    never decreases feasibility, so only changes that reduce the larger of the two are tried.
    """
    tangent = _Tangent(gradient, jacobian, project_tangent, project_tangent_jvp)
    choices = _Choices(tangent, _vector(constraint, tangent), _mask(inequality, tangent), multipliers)
    open_rows = np.flatnonzero(choices.inequality & (choices.constraint < 0))
    everything = np.zeros(tangent.rows, dtype=bool)
    everything[open_rows] = True
    if len(open_rows) <= ENUMERATED:
        best = choices.measure(everything)
        for size in range(1, len(open_rows) + 1):
            for zeros in itertools.combinations(open_rows, size):
                slack_rows = everything.copy()
                slack_rows[list(zeros)] = False
                best = choices.better(best, slack_rows)
        return best
    nothing = choices.measure(~everything & everything)
    guess = everything & (np.abs(nothing.multipliers) <= -choices.constraint)
    best = choices.measure(everything)
    for start in (everything, guess, ~everything & everything):
        best = choices.better(best, choices.descend(choices.measure(start), open_rows).slack > 0)
    return best


class _Choices:
    """Measures of slack choices, each a mask of the inequalities whose slack is max(0, -c_j)."""

    def __init__(self, tangent: "_Tangent", constraint: Array, inequality: Array, multipliers: Array | None):
        self.tangent, self.constraint, self.inequality = tangent, constraint, inequality
        self.given = None if multipliers is None else _vector(multipliers, tangent)
        self.tie = TIE * tangent.scale + 1e-15 * float(np.linalg.norm(constraint))
        self.known: dict[bytes, FirstOrder] = {}
        self.last = np.zeros(tangent.rows)

    def measure(self, slack_rows: Array) -> FirstOrder:
        """The choice with its multipliers; each is computed once."""
        key = slack_rows.tobytes()
        if key not in self.known:
            slack = np.where(slack_rows, -self.constraint, 0.0)
            lam = self.given
            if lam is None:
                lam = self.last = _minimise(self.tangent, self.inequality, slack, self.last)
            part = _slack_part(lam, self.inequality, slack)
            stationarity = math.hypot(float(np.linalg.norm(self.tangent.at(lam)[1])), float(np.linalg.norm(part)))
            feasibility = float(np.linalg.norm(self.constraint + slack))
            self.known[key] = FirstOrder(lam, slack, stationarity, feasibility)
        return self.known[key]

    def better(self, first: FirstOrder, slack_rows: Array) -> FirstOrder:
        """The better of a choice and another one; the first where they are equal."""
        feasibility = float(np.linalg.norm(np.where(slack_rows, 0.0, self.constraint)))
        if feasibility > max(first.stationarity, first.feasibility) + self.tie:
            return first
        second = self.measure(slack_rows)
        for measure in (lambda c: max(c.stationarity, c.feasibility), lambda c: c.stationarity):
            difference = measure(second) - measure(first)
            if abs(difference) > self.tie:
                return second if difference < 0 else first
        return second if np.count_nonzero(second.slack) > np.count_nonzero(first.slack) else first

    def descend(self, current: FirstOrder, open_rows: Array) -> FirstOrder:
        """Changes one slack at a time, the most promising first, until no change is better."""
        for _ in range(4 * len(open_rows) + 4):
            slack_rows = current.slack > 0
            to_zero = current.stationarity >= current.feasibility
            promise = np.abs(current.multipliers) if to_zero else -self.constraint
            rows = [i for i in open_rows if slack_rows[i] == to_zero]
            for i in sorted(rows, key=lambda i: -promise[i]):
                changed = slack_rows.copy()
                changed[i] = not changed[i]
                better = self.better(current, changed)
                if better is not current:
                    current = better
                    break
            else:
                return current
        return current


@dataclass(frozen=True, eq=False)
class _Piece:
    """D J' of shape (d, m), its relative error, and the relative noise of the projection.

    `linear`: D is an orthogonal projection, as on the pieces of a polyhedral cone.
    """

    columns: Array
    error: float
    noise: float
    linear: bool


class _Tangent:
    """v(lam) = -(g + J'lam), its projection onto T, and the derivative D J' of the projection along the rows of J.

    D is constant on a piece, so the derivatives that were computed are kept and tried first.
    """

    def __init__(self, gradient: Array, jacobian: Array, project: Project, jvp: Callable[[Array, Array], Array] | None):
        self.gradient = np.asarray(gradient, dtype=np.float64)
        self.jacobian = np.asarray(jacobian, dtype=np.float64)
        if self.gradient.ndim != 1 or self.jacobian.ndim != 2 or self.jacobian.shape[1] != len(self.gradient):
            raise InputError(
                f"the gradient has shape {self.gradient.shape} and the Jacobian {self.jacobian.shape}",
                "shapes (d,) and (m, d)",
                "flatten the parameters and stack the constraints into rows",
            )
        if not (np.isfinite(self.gradient).all() and np.isfinite(self.jacobian).all()):
            raise InputError(
                "the gradient or the Jacobian has entries that are not finite",
                "finite derivatives",
                "check x and the data",
            )
        self.project, self.jvp = project, jvp
        self.rows = len(self.jacobian)
        self.scale = float(np.linalg.norm(self.gradient))
        self.lengths = np.linalg.norm(self.jacobian, axis=1)
        self.pieces: list[_Piece] = []
        self.rng = np.random.default_rng(0)

    def at(self, lam: Array) -> tuple[Array, Array]:
        v = -(self.gradient + lam @ self.jacobian)
        return v, np.asarray(self.project(v), dtype=np.float64)

    def derivative(self, v: Array, projected: Array) -> "_Piece":
        """The derivative on the piece of v, or on one next to it."""
        if self.jvp is not None:
            columns = np.stack([np.asarray(self.jvp(v, row), dtype=np.float64) for row in self.jacobian], axis=1)
            return _Piece(columns, 1e-15, 0.0, self._is_linear(columns))
        given, given_projected = v, projected
        v = _balanced(projected, v - projected)
        projected = self._projected(v)
        for piece in reversed(self.pieces):
            if self._holds(piece, v, projected):
                return piece
        size = float(np.linalg.norm(v))
        noise = max(1e-15 * size, *(float(np.linalg.norm(self._projected(t * v) / t - projected)) for t in (3.0, 7.0)))
        piece = None
        attempts = ((0.0, 1e-2), (0.0, 1e-4), (0.0, 1e-6), (1e-7, 1e-8), (1e-4, 1e-6))
        for shift, reach in attempts:
            center, value = v, projected
            if shift:
                move = self.rng.standard_normal(len(v))
                center = v + shift * size / float(np.linalg.norm(move)) * move
                value = self._projected(center)
            allowed = math.inf if (shift, reach) == attempts[-1] else 30 * noise
            columns, bend = self._differences(center, value, reach * size, allowed)
            piece = _Piece(columns, 4 * noise / (reach * size), noise / size, self._is_linear(columns))
            if bend <= allowed:
                break
        assert piece is not None
        if not piece.linear:
            reach = CURVED_REACH * float(np.linalg.norm(given))
            columns, _ = self._differences(given, given_projected, reach, math.inf)
            return _Piece(columns, max(CURVED_REACH**2, 4 * noise / (CURVED_REACH * size)), noise / size, False)
        self.pieces = [*self.pieces[-15:], piece]
        return piece

    def _is_linear(self, columns: Array) -> bool:
        """Whether ``(D J')'(D J') = J (D J')``, as for an orthogonal projection D."""
        product = self.jacobian @ columns
        return float(np.linalg.norm(columns.T @ columns - product)) <= 1e-6 * float(np.linalg.norm(product))

    def _projected(self, v: Array) -> Array:
        return np.asarray(self.project(v), dtype=np.float64)

    def _differences(self, center: Array, value: Array, reach: float, allowed: float) -> tuple[Array, float]:
        """Central differences along the rows of J with steps of length `reach`, and the largest second difference.

        Given up at the first second difference above `allowed`: the step then leaves the piece.
        """
        columns, bend = np.zeros((len(center), self.rows)), 0.0
        for j in np.flatnonzero(self.lengths > 0):
            step = reach / self.lengths[j]
            ahead = self._projected(center + step * self.jacobian[j])
            behind = self._projected(center - step * self.jacobian[j])
            columns[:, j] = (ahead - behind) / (2 * step)
            bend = max(bend, float(np.linalg.norm(ahead + behind - 2 * value)))
            if bend > allowed:
                break
        return columns, bend

    def _holds(self, piece: "_Piece", v: Array, projected: Array) -> bool:
        """Whether the derivative belongs to the piece of v: tried along two random combinations of rows, both ways."""
        size = float(np.linalg.norm(v))
        allowed = (3e-14 + 10 * piece.noise + 1e-6 * piece.error) * size
        for weights in self.rng.standard_normal((2, self.rows)):
            weights = weights / np.where(self.lengths > 0, self.lengths, 1.0)
            along = weights @ self.jacobian
            length = float(np.linalg.norm(along))
            if length == 0:
                continue
            for step in (1e-6 * size / length, -1e-6 * size / length):
                change = self._projected(v + step * along) - projected
                if float(np.linalg.norm(change - step * (piece.columns @ weights))) > allowed:
                    return False
        return True


def _balanced(inside: Array, normal: Array) -> Array:
    """``a inside + b normal`` with both terms of unit length, for v = inside + normal, inside = P_T(v).

    For polyhedral T, P_T is linear on the cone of all such combinations with a, b > 0, so its derivative is that at v; but
    the point stays away from the ends of the piece when v comes close to them because one of the two terms is small.
    """
    point = np.zeros_like(inside)
    for term in (inside, normal):
        length = float(np.linalg.norm(term))
        if length > 0:
            point = point + term / length
    return point


def _mask(inequality: Array, tangent: _Tangent) -> Array:
    return np.broadcast_to(np.asarray(inequality, dtype=bool), (tangent.rows,))


def _vector(values: Array, tangent: _Tangent) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (tangent.rows,) or not np.isfinite(array).all():
        raise InputError(
            f"constraint values, slacks or multipliers have shape {array.shape} or entries that are not finite",
            f"one finite number for each of the {tangent.rows} rows of the Jacobian",
            "give zero as the slack of an equality",
        )
    return array


def _slack_part(lam: Array, inequality: Array, slack: Array) -> Array:
    return np.where(inequality, np.where(slack > 0, lam, np.minimum(lam, 0.0)), 0.0)


def _minimise(tangent: _Tangent, inequality: Array, slack: Array, start: Array) -> Array:
    """``argmin phi`` by Newton steps on the current piece and an exact line search."""
    if tangent.rows == 0 or tangent.scale == 0:
        return np.zeros(tangent.rows)

    def measure(lam: Array) -> tuple[float, Array, Array, Array]:
        v, projected = tangent.at(lam)
        part = _slack_part(lam, inequality, slack)
        value = 0.5 * float(projected @ projected + part @ part)
        return value, part - tangent.jacobian @ projected, v, projected

    def problem_at(lam: Array, state) -> _Step:
        _, slope, v, projected = state
        quadratic = inequality & ((slack > 0) | (lam < 0) | ((lam == 0) & (slope > 0)))
        return _Step(tangent, v, projected, quadratic)

    def excursion(lam: Array, state):
        """Full Newton steps, uphill too: the best point within a few of them."""
        best = lam, state
        for _ in range(EXCURSION):
            step = next(problem_at(lam, state).candidates(lam, state[1], inequality, slack))
            lam = lam + step
            state = measure(lam)
            if state[0] < 0.5 * best[1][0]:
                return lam, state
            if state[0] < best[1][0]:
                best = lam, state
        return best

    lam = start
    state = measure(lam)
    if np.any(start) and measure(np.zeros_like(start))[0] < state[0]:
        lam = np.zeros_like(start)
        state = measure(lam)
    step_of = None
    for _ in range(100):
        value, slope = state[:2]
        if value <= 1e-30 * tangent.scale**2:
            break
        step_of = problem_at(lam, state)
        trial, new, promised = lam, state, 0.0
        for step in step_of.candidates(lam, slope, inequality, slack):
            promised = -float(slope @ step)
            if promised > DECREASE * tangent.scale**2:
                trial, new = _line_search(measure, lam, step, state, promised)
            if new[0] < value:
                break
        if promised > DECREASE * tangent.scale**2 and new[0] > value - 0.1 * promised:
            trial, new = min((trial, new), excursion(lam, state), key=lambda pair: pair[1][0])
        if not new[0] < value:
            break
        lam, state = trial, new
    if step_of is not None:
        shorter = step_of.shorten(lam)
        if measure(shorter)[0] <= state[0] * (1 + 1e-13) + 1e-28 * tangent.scale**2:
            return shorter
    return lam


def _line_search(measure, lam: Array, step: Array, state, promise: float):
    """The full step where it is good enough, else the point where the slope along the step vanishes (Illinois)."""
    trial = lam + step
    new = measure(trial)
    if new[0] <= state[0] - 0.4 * promise or float(new[1] @ step) <= 0:
        return trial, new
    low, high, at_low, at_high = 0.0, 1.0, -promise, float(new[1] @ step)
    best = trial, new
    for _ in range(40):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        trial = lam + middle * step
        new = measure(trial)
        if new[0] <= best[1][0]:
            best = trial, new
        slope = float(new[1] @ step)
        if abs(slope) <= 1e-10 * promise or not low < middle < high:
            break
        if slope < 0:
            low, at_low, at_high = middle, slope, at_high / 2
        else:
            high, at_high, at_low = middle, slope, at_low / 2
    return best


class _Step:
    """The least-squares problem of one piece over the step p: ``min |P(v) - D J'p|^2 + sum_quadratic (lam_j + p_j)^2``.

    Its columns are scaled by the lengths of the rows of J, so that the scaling of a constraint does not matter. Where P_T is
    not linear near v (curved cones), the Newton system takes its place.
    """

    def __init__(self, tangent: _Tangent, v: Array, projected: Array, quadratic: Array):
        self.tangent, self.projected, self.quadratic = tangent, projected, quadratic
        piece = tangent.derivative(v, projected)
        columns = piece.columns
        product = tangent.jacobian @ columns
        product = 0.5 * (product + product.T)
        self.hessian = product + np.diag(quadratic.astype(np.float64))
        self.linear = piece.linear
        stacked = np.concatenate([columns, np.diag(quadratic.astype(np.float64))[quadratic]])
        if not self.linear:
            values, vectors = np.linalg.eigh(self.hessian)
            stacked = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        lengths = np.sqrt(tangent.lengths**2 + quadratic)
        self.units = 1 / np.where(lengths > 0, lengths, 1.0)
        self.left, self.values, self.right = scipy.linalg.svd(stacked * self.units, full_matrices=False)
        largest = self.values.max(initial=0.0)
        self.kept = self.values > max(RANK_TOLERANCE, 30 * piece.error) * largest

    def candidates(self, lam: Array, slope: Array, inequality: Array, slack: Array):
        """The Newton step; then steps with a little damping, which also follow nearly flat directions."""
        right = self.right[self.kept]
        if self.linear:
            part = _slack_part(lam, inequality, slack)[self.quadratic]
            coordinates = self.left[:, self.kept].T @ np.concatenate([self.projected, -part]) / self.values[self.kept]
        else:
            coordinates = -(right @ (self.units * slope)) / self.values[self.kept] ** 2
        yield self.units * (coordinates @ right)
        scaled = self.units * slope
        if float(np.linalg.norm(scaled)) > 1e-11 * self.tangent.scale:
            for damping in (1e-12, 1e-8, 1e-4):
                total = self.hessian * np.outer(self.units, self.units) + damping * np.eye(len(scaled))
                yield -self.units * np.linalg.lstsq(total, scaled, rcond=None)[0]

    def shorten(self, lam: Array) -> Array:
        """lam without its part in the null space of the piece."""
        if not self.kept.any():
            return np.zeros_like(lam)
        span = np.linalg.svd(self.right[self.kept] / self.units, full_matrices=False)[2]
        return (span @ lam) @ span

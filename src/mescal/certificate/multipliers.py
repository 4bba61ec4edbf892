"""Multipliers that make a point look most stationary, for given slacks.

Multipliers of inequalities are not negative, and zero beside a slack s_j > 0: only these are admissible. Stationarity is
``chi(lam) = |P_T(-(g + J'lam))|``, P_T the projection onto the tangent cone of X: no direction of x that meets active constraints
to first order improves the objective faster per unit of length. (In z = (x, s) any multiplier may be weighed as the gradient of its
slack, which is as small as the unit of the constraint makes it: steep inactive constraints make any point stationary.) The best are

    ``lam = argmin phi(lam),   phi = (chi^2 + |part|^2) / 2,   grad phi = -J P_T(-(g + J'lam)) + w part,``

``part_j = w_j lam_j`` where s_j > 0 and ``w_j min(lam_j, 0)`` where s_j = 0, with the inadmissible rest taken off in the end:
w_j = HARD |J_j| leaves about 1 / HARD^2 of chi of it. phi is convex and C^{1,1}, and piecewise quadratic for polyhedral T. A
semismooth Newton method with an exact line search finds its minimiser: the step solves the least-squares problem of the
piece that `Tangent` finds.

Deviation from the paper: Definition 1.1 lets multipliers of slacks be as large as the tolerance, in any unit. What passes here
passes there, with the same multipliers.
"""

import numpy as np
import scipy

from .tangent import Array, Project, Tangent

RANK_TOLERANCE = 1e-12  # singular values of the unit columns below this are rounding in the Jacobian
DECREASE = 1e-25  # the part of |g|^2 that a step must still promise for the iteration to go on
HARD = 1e4  # how much heavier a multiplier that may not be weighs than the gradient that it makes
EXCURSION = 12  # Newton steps taken without a line search where the line search gains little


def admissible(multipliers: Array, inequality: Array, slack: Array) -> Array:
    """Multipliers with those of inequalities that may not be set to zero: negative ones, and all beside a positive slack."""
    lam = np.asarray(multipliers, dtype=np.float64)
    return np.where(inequality, np.where(slack > 0, 0.0, np.maximum(lam, 0.0)), lam)


def stationarity_of(multipliers: Array, gradient: Array, jacobian: Array, project_tangent: Project) -> float:
    """``chi = |P_T(-(g + J'lam))|`` at admissible multipliers."""
    tangent = project_tangent(-(gradient + np.asarray(multipliers, dtype=np.float64) @ jacobian))
    return float(np.linalg.norm(np.asarray(tangent, dtype=np.float64)))


def best_multipliers(
    gradient: Array,
    jacobian: Array,
    inequality: Array,
    slack: Array,
    project_tangent: Project,
    *,
    errors: Array | None = None,
) -> Array:
    """The admissible multipliers with the smallest stationarity for given slacks; of several on one piece, the shortest.

    **Arguments:**

    - `gradient`: g of shape (d,); `jacobian`: J of shape (m, d); `inequality`: which of the m rows are inequalities.
    - `slack`: of length m, zero on equalities.
    - `project_tangent`: v -> P_T(v), positively homogeneous and nonexpansive.
    - `errors`: bounds on the errors of J's entries, which decide its rank; default: none.
    """
    tangent = Tangent(gradient, jacobian, project_tangent, errors)
    return minimise(tangent, tangent.flags(inequality), tangent.vector(slack), np.zeros(tangent.rows))


def minimise(tangent: Tangent, inequality: Array, slack: Array, start: Array) -> Array:
    """``argmin phi`` by Newton steps on the current piece and an exact line search."""
    if tangent.rows == 0 or tangent.scale == 0:
        return np.zeros(tangent.rows)

    weights = np.where(inequality, HARD * tangent.lengths, 0.0)

    def measure(lam: Array) -> tuple[float, Array, Array, Array]:
        v, projected = tangent.at(lam)
        part = weights * inadmissible(lam, inequality, slack)
        value = 0.5 * float(projected @ projected + part @ part)
        return value, weights * part - tangent.jacobian @ projected, v, projected

    def problem_at(lam: Array, state) -> _Step:
        _, slope, v, projected = state
        quadratic = inequality & ((slack > 0) | (lam < 0) | ((lam == 0) & (slope > 0)))
        return _Step(tangent, v, projected, weights * quadratic)

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
            lam = shorter
    return admissible(lam, inequality, slack)


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
    """The least-squares problem of one piece over the step p: ``min |P(v) - D J'p|^2 + sum_j w_j^2 (lam_j + p_j)^2``.

    Its columns are scaled by the lengths of the rows of J, so that the scaling of a constraint does not matter. Where P_T is
    not linear near v (curved cones), the Newton system takes its place.
    """

    def __init__(self, tangent: Tangent, v: Array, projected: Array, weights: Array):
        self.tangent, self.projected, self.weights = tangent, projected, weights
        piece = tangent.derivative(v, projected)
        columns = piece.columns
        product = tangent.jacobian @ columns
        product = 0.5 * (product + product.T)
        lengths = np.hypot(tangent.lengths, weights)
        self.units = 1 / np.where(lengths > 0, lengths, 1.0)
        self.hessian = np.outer(self.units, self.units) * (product + np.diag(weights**2))
        self.linear = piece.linear
        stacked = np.concatenate([columns, np.diag(weights)[weights > 0]]) * self.units
        if not self.linear:
            values, vectors = np.linalg.eigh(self.hessian)
            stacked = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        self.left, self.values, self.right = scipy.linalg.svd(stacked, full_matrices=False)
        largest = self.values.max(initial=0.0)
        self.floor = float(np.linalg.norm(self.units * np.linalg.norm(tangent.errors, axis=1)))
        self.kept = self.values > max(max(RANK_TOLERANCE, 30 * piece.error) * largest, self.floor)

    def candidates(self, lam: Array, slope: Array, inequality: Array, slack: Array):
        """The Newton step; then steps with a little damping, which also follow nearly flat directions."""
        right = self.right[self.kept]
        if self.linear:
            part = (self.weights * inadmissible(lam, inequality, slack))[self.weights > 0]
            coordinates = self.left[:, self.kept].T @ np.concatenate([self.projected, -part]) / self.values[self.kept]
        else:
            coordinates = -(right @ (self.units * slope)) / self.values[self.kept] ** 2
        yield self.units * (coordinates @ right)
        scaled = self.units * slope
        if float(np.linalg.norm(scaled)) > 1e-11 * self.tangent.scale:
            for damping in (1e-12, 1e-8, 1e-4):
                if damping < self.floor**2:
                    continue
                total = self.hessian + damping * np.eye(len(scaled))
                yield -self.units * np.linalg.lstsq(total, scaled, rcond=None)[0]

    def shorten(self, lam: Array) -> Array:
        """lam without its part in the null space of the piece."""
        if not self.kept.any():
            return np.zeros_like(lam)
        span = np.linalg.svd(self.right[self.kept] / self.units, full_matrices=False)[2]
        return (span @ lam) @ span


def inadmissible(lam: Array, inequality: Array, slack: Array) -> Array:
    """What of multipliers may not be."""
    return np.where(inequality, np.where(slack > 0, lam, np.minimum(lam, 0.0)), 0.0)

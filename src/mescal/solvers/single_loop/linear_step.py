"""The step of the single loop: a gradient step that keeps to linearised constraints and to X.

    min g'd + (L/2)|d|^2   s.t.   J_j d = b_j (equalities),  J_j d <= b_j (inequalities),  x + d in X

by its dual, in as many variables as there are rows: d(lam) = P_X(x - (g + J'lam)/L) - x, and F(lam) = J d(lam) - b is the gradient
of a concave function, with lam >= 0 for inequalities. Semismooth Newton with an active set: the derivative of F is -J P J'/L, P the
projection onto the face of X on which x + d lies; steps are halved until the dual rises. On X = R^d with equalities alone one
iteration is exact,

    lam = (JJ')^-1 (-J g - L b),     d = -(I - J'(JJ')^-1 J) g / L + J'(JJ')^-1 b :

a tangential and a normal step at once. On X = R^d, where the active set would cycle, the dual is a nonnegative least-squares
problem, and SciPy solves it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Array = np.ndarray

ROUNDS = 50  # of Newton's method on the dual
HALVINGS = 8  # of its step, before a gradient step is taken in its place
SOLVED = 1e-9  # of the sizes involved: a residual that is rounding
RIDGE = 1e-13  # of the mean diagonal of JPJ'
SINGULAR = 1e-8  # smallest eigenvalue of the Gram matrix of unit rows below which they count as dependent


class Face(NamedTuple):
    """What a step must know of X: P_X, and the projection of the columns of a matrix onto the span of the face at a point."""

    project: Callable[[Array], Array] | None  # None: all of space
    span: Callable[[Array, Array], Array]


class LinearStep(NamedTuple):
    """The step, its multipliers, and whether the working rows are independent on the face that it ends on."""

    d: Array
    multipliers: Array
    regular: bool


def linear_step(
    face: Face, x: Array, g: Array, jacobian: Array, b: Array, equal: Array, smoothness: float
) -> LinearStep:
    """The minimiser d and its multipliers; `equal` says which rows are equalities."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _linear_step(face, x, g, jacobian, b, equal, smoothness)


def _linear_step(
    face: Face, x: Array, g: Array, jacobian: Array, b: Array, equal: Array, smoothness: float
) -> LinearStep:
    if not len(b):
        return LinearStep(_moved(face, x, g / smoothness), np.zeros(0), True)
    lam, norms = np.zeros(len(b)), np.linalg.norm(jacobian, axis=1)
    largest = float(norms @ norms)

    def dual(lam: Array) -> tuple[Array, float]:
        d = _moved(face, x, (g + lam @ jacobian) / smoothness)
        return d, float(g @ d + smoothness / 2 * d @ d + lam @ (jacobian @ d - b))

    (d, value), best = dual(lam), None
    for _ in range(ROUNDS):
        if not np.isfinite(value):  # rows that are all but parallel: multipliers that would part them overflow
            break
        excess, pushed = jacobian @ d - b, lam * norms**2 / smoothness
        wrong = np.where(equal | (lam > 0), np.abs(excess), np.maximum(excess, 0))
        size = (
            SOLVED * (norms * (np.linalg.norm(d) + np.linalg.norm(g) / smoothness) + np.abs(b)) + np.finfo(float).tiny
        )
        worst = float((wrong / size).max())
        if best is None or worst < best[0]:
            best = worst, d, lam
        if worst <= 1:
            break
        working = equal | (pushed + excess * (norms > 0) > size)
        gram = _gram(face, x + d, jacobian) / smoothness
        newton = np.where(working, lam, 0.0)
        rest = gram[np.ix_(working, ~working)] @ lam[~working]
        newton[working] += _solved(gram[np.ix_(working, working)], excess[working] + rest)
        uphill = lam + smoothness / max(largest, np.finfo(float).tiny) * excess
        for towards in (*(lam + 0.5**j * (newton - lam) for j in range(HALVINGS)), uphill):
            trial = np.where(equal, towards, np.maximum(towards, 0))
            d, found = dual(trial)
            if found > value:
                break
        lam, value = trial, found
    if best is None:
        return LinearStep(np.zeros_like(x), np.zeros(len(b)), False)
    if best[0] > 1 and face.project is None:
        best = _by_least_squares(g, jacobian, b, equal, smoothness)
    _, d, lam = best
    return LinearStep(d, lam, is_regular(face, x + d, jacobian[equal | (lam > 0)]))


def is_regular(face: Face, x: Array, rows: Array) -> bool:
    """Whether the rows, at unit length, are independent on the face of x."""
    if not len(rows):
        return True
    gram = _gram(face, x, rows)
    sizes = np.sqrt(np.maximum(np.diag(gram), 0))
    if not np.isfinite(gram).all() or (sizes <= SINGULAR * np.linalg.norm(rows, axis=1)).any():
        return False
    return float(np.linalg.eigvalsh(gram / np.outer(sizes, sizes))[0]) > SINGULAR


def _moved(face: Face, x: Array, step: Array) -> Array:
    return -step if face.project is None else face.project(x - step) - x


def _gram(face: Face, x: Array, rows: Array) -> Array:
    return rows @ (rows.T if face.project is None else face.span(x, rows.T))


def _solved(gram: Array, rhs: Array) -> Array:
    ridge = RIDGE * np.trace(gram) / max(1, len(gram)) + np.finfo(float).tiny
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), rhs)


def _by_least_squares(
    g: Array, jacobian: Array, b: Array, equal: Array, smoothness: float
) -> tuple[float, Array, Array]:
    """argmin over lam, >= 0 for inequalities, of |h + J'lam|^2/2 with J h = J g + L b, and d = -(g + J'lam)/L."""
    from scipy.optimize import nnls  # here, and not above: few steps need it, and it imports much

    h = g + np.linalg.lstsq(jacobian, smoothness * b, rcond=None)[0]
    rows = jacobian[equal]
    across = lambda v: v - np.linalg.lstsq(rows.T, v, rcond=None)[0].T @ rows if len(rows) else v
    lam = np.zeros(len(b))
    lam[~equal] = nnls(np.stack([across(row) for row in jacobian[~equal]], axis=1), -across(h))[0]
    if len(rows):
        lam[equal] = np.linalg.lstsq(rows.T, -(h + lam @ jacobian), rcond=None)[0]
    return 0.0, -(g + lam @ jacobian) / smoothness, lam

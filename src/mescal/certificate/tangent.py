"""The projection of the Lagrangian's gradient onto the tangent cone, as a function of the multipliers, and its derivative.

On a piece of a polyhedral cone P_T is linear, ``P_T(v) = D v``. D acts through central differences of
P_T, exact on a piece.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import InputError

Array = np.ndarray
Project = Callable[[Array], Array]

CURVED_REACH = 1e-5  # relative step of differences where P_T is curved: the error is its square, the rounding 1e-10


@dataclass(frozen=True, eq=False)
class Piece:
    """D J' of shape (d, m), its relative error, and the relative noise of the projection.

    `linear`: D is an orthogonal projection, as on the pieces of a polyhedral cone.
    """

    columns: Array
    error: float
    noise: float
    linear: bool


class Tangent:
    """v(lam) = -(g + J'lam), its projection onto T, and the derivative D J' of the projection along the rows of J.

    D is constant on a piece, so the derivatives that were computed are kept and tried first.
    """

    def __init__(
        self,
        gradient: Array,
        jacobian: Array,
        project: Project,
        errors: Array | None = None,
    ):
        self.gradient = np.asarray(gradient, dtype=np.float64)
        self.jacobian = np.asarray(jacobian, dtype=np.float64)
        self.errors = np.zeros_like(self.jacobian) if errors is None else errors
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
        self.project = project
        self.rows = len(self.jacobian)
        self.scale = float(np.linalg.norm(self.gradient))
        self.lengths = np.linalg.norm(self.jacobian, axis=1)
        self.pieces: list[Piece] = []
        self.rng = np.random.default_rng(0)

    def flags(self, values: Array) -> Array:
        """One flag for each row of J."""
        return np.broadcast_to(np.asarray(values, dtype=bool), (self.rows,))

    def vector(self, values: Array) -> Array:
        """One finite number for each row of J."""
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (self.rows,) or not np.isfinite(array).all():
            raise InputError(
                f"constraint values, slacks or multipliers have shape {array.shape} or entries that are not finite",
                f"one finite number for each of the {self.rows} rows of the Jacobian",
                "give zero as the slack of an equality",
            )
        return array

    def at(self, lam: Array) -> tuple[Array, Array]:
        """v and its projection."""
        v = -(self.gradient + lam @ self.jacobian)
        return v, np.asarray(self.project(v), dtype=np.float64)

    def derivative(self, v: Array, projected: Array) -> Piece:
        """The derivative on the piece of v, or on one next to it."""
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
            piece = Piece(columns, 4 * noise / (reach * size), noise / size, self._is_linear(columns))
            if bend <= allowed:
                break
        assert piece is not None
        if not piece.linear:
            reach = CURVED_REACH * float(np.linalg.norm(given))
            columns, _ = self._differences(given, given_projected, reach, math.inf)
            return Piece(columns, max(CURVED_REACH**2, 4 * noise / (CURVED_REACH * size)), noise / size, False)
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

    def _holds(self, piece: Piece, v: Array, projected: Array) -> bool:
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

"""The span of a cone in R^n without a basis: a mask and orthonormal rows, and projections onto the span and the cone."""

from collections.abc import Callable

import numpy as np

from .eigen import Krylov
from .rows import RANK_TOLERANCE, distinct, implied_equalities, restricted, row_space, unit_rows

Array = np.ndarray

DENSE_ROWS = 20_000_000  # entries of a matrix of sign conditions that is still formed and examined
FACE_STEPS = 40  # Lanczos steps for a better direction on the span of a face


class Span:
    """``{d : d = 0 off free, rows d = 0}``, the span of the cone ``{d in span : bounds, inequalities d <= 0}``.

    `count` sign conditions are left on it; `signs` has them as unit rows, or is None where they are too many to be
    formed: they are then only counted, and the true span may be smaller.
    """

    def __init__(self, lower: Array, upper: Array, free: Array, rows: Array, inequalities: Array):
        self.lower, self.upper, self.free = lower, upper, free
        self.rows, self.inequalities = rows, inequalities
        self.signs: Array | None = None
        self.angle = 0.0  # by which the equalities may be turned
        self.count = 0

    @classmethod
    def of(cls, cone, examined: int = DENSE_ROWS) -> "Span":
        """The span of a `Cone`, without the directions in which rows imply that it is flat, if these have few enough entries."""
        free = cone.free
        equalities, angle = cone.space
        span = cls(cone.lower, cone.upper, free, equalities, restricted(cone.inequalities, free))
        span.angle = angle
        bounds = np.flatnonzero((cone.lower | cone.upper) & free)
        span.count = len(bounds) + len(span.inequalities)
        if span.count * cone.size > examined:
            return span
        signs = np.zeros((len(bounds), cone.size))
        signs[np.arange(len(bounds)), bounds] = np.where(cone.lower[bounds], -1.0, 1.0)
        signs = np.concatenate([signs, span.inequalities])
        while True:
            signs = unit_rows(signs - (signs @ span.rows.T) @ span.rows, np.ones(len(signs)), RANK_TOLERANCE)
            implied = implied_equalities(signs)
            if not implied.any():
                break
            span.rows = row_space(np.concatenate([span.rows, signs[implied]]))
            signs = signs[~implied]
        span.signs = distinct(signs)
        span.count = len(span.signs)
        return span

    @property
    def dimension(self) -> int:
        return int(self.free.sum()) - len(self.rows)

    def project(self, vector: Array) -> Array:
        """Orthogonal projection onto the span."""
        vector = np.where(self.free, vector, 0.0)
        return vector - (self.rows @ vector) @ self.rows if len(self.rows) else vector

    def project_cone(self, vector: Array) -> Array:
        """Projection onto the cone by a semismooth Newton method on its dual.

        ``min |clip(v - R'z - A'mu)|^2 / 2`` over z and mu >= 0, R the rows and A the inequalities; clip(...), the
        projection onto the bounds, is then the projection of v. What does not converge is given back as zero, which is
        in every cone.
        """
        duals = np.concatenate([self.rows, self.inequalities])
        signed = np.arange(len(duals)) >= len(self.rows)
        scale = float(np.linalg.norm(vector))
        point, alone = self._clip(vector)
        z, slope = np.zeros(len(duals)), np.zeros(1)
        for _ in range(100):
            gradient = -(duals @ point)
            held = signed & (z <= 0) & (gradient >= 0)
            slope = np.abs(np.where(held, 0.0, gradient))
            if slope.max(initial=0.0) <= 1e-14 * scale:
                return point
            active = duals[~held][:, alone]
            step = np.zeros(len(z))
            step[~held] = np.linalg.lstsq(active @ active.T, -gradient[~held], rcond=1e-13)[0]
            if float(step @ gradient) >= 0:
                step = np.where(held, 0.0, -gradient)
            energy, length, moved = float(point @ point), 1.0, False
            trial, ahead, free = z, point, alone
            while length > 1e-12 and not moved:
                trial = z + length * step
                trial = np.where(signed, np.maximum(trial, 0.0), trial)
                ahead, free = self._clip(vector - trial @ duals)
                needed = min(2e-4 * float(gradient @ (trial - z)), 0.0)
                moved = float(ahead @ ahead) < energy and float(ahead @ ahead) <= energy + needed
                length /= 2
            if not moved:
                break
            z, point, alone = trial, ahead, free
        return point if slope.max(initial=0.0) <= 1e-11 * scale else np.zeros_like(point)

    def face_vector(self, point: Array, apply: Callable[[Array], Array]) -> Array | None:
        """The best direction that a few Lanczos steps from `point` find on the span of its face."""
        free = self.free & ~((self.lower | self.upper) & (np.abs(point) <= 1e-10))
        tight = self.inequalities[np.abs(self.inequalities @ point) <= 1e-10]
        rows = np.where(free, np.concatenate([self.rows, tight]), 0.0)
        rows = row_space(unit_rows(rows, np.ones(len(rows)), RANK_TOLERANCE))
        face = Span(self.lower, self.upper, free, rows, self.inequalities)
        if face.dimension < 1:
            return None
        krylov = Krylov(apply, face.project, len(point), min(FACE_STEPS, face.dimension))
        if not krylov.begin(point):
            return None
        krylov.extend()
        return krylov.vectors(1)[:, 0]

    def _clip(self, vector: Array) -> tuple[Array, Array]:
        """Projection onto the bounds, and the mask of the coordinates that it leaves alone."""
        alone = self.free & ~(self.lower & (vector <= 0)) & ~(self.upper & (vector >= 0))
        return np.where(alone, vector, 0.0), alone

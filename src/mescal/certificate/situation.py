"""A point as the second-order conditions see it, and what is held there on the critical cone."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..sets.convex_set import TangentCone
from .beside import LEFT
from .forces import Face, Forces
from .pushing import faces_of
from .rows import RESTRICTION_TOLERANCE


@dataclass(frozen=True)
class Situation:
    """A point, as the second-order conditions see it: everything in float64, slacks and rows unscaled.

    `gradient` is that of the Lagrangian in x; `tangent` is None where the set only has a projection; `strong` is the
    size above which a multiplier of a bound counts as positive; `doubt` is added to the multipliers of the bounds of X
    before they are used, and `spread` to the lengths of rows; `errors` says how far each row of the Jacobian may be off, in length.
    With scalars that statements add all is in the coordinates of `scalars`; the square of a length is `loosened` at most per
    length of x. `face` is one of the `faces` of the critical cone; the first if none is given.
    """

    gradient: np.ndarray
    jacobian: np.ndarray
    multipliers: np.ndarray
    inequality: np.ndarray
    slack: np.ndarray
    tangent: TangentCone | None
    normal: np.ndarray
    penalty: float
    strong: float
    doubt: float = 0.0
    spread: float = 0.0
    errors: np.ndarray | None = None
    loosened: float = 1.0
    face: Face | None = None

    @property
    def at_zero(self) -> np.ndarray:
        """Rows of inequalities that are active."""
        return self.inequality & (self.slack <= 0)

    @property
    def off(self) -> np.ndarray:
        """`errors`, zero where none are given."""
        return np.zeros(len(self.multipliers)) if self.errors is None else self.errors

    @property
    def held(self) -> Face:
        """What is held on the critical cone."""
        return self.faces[0] if self.face is None else self.face

    @property
    def signed(self) -> np.ndarray:
        """How far the length of each row may be off, for or against it."""
        return (self.off if max(self.doubt, self.spread) > 0 else -self.off) + self.spread

    @cached_property
    def firm(self) -> Face:
        """All that pushes, with errors for or against it, as the signs of `doubt` and `spread` say."""
        tangent, (of_bounds, of_boundaries) = self.tangent_cone, self.normal_multipliers
        lengths = np.linalg.norm(self.jacobian, axis=1)
        return Face(
            self.at_zero & (self.multipliers * np.maximum(lengths + self.signed, 0.0) > self.strong),
            (tangent.lower | tangent.upper) & (np.abs(of_bounds) + self.doubt > self.strong),
            of_boundaries + self.doubt > self.strong,
        )

    @cached_property
    def faces(self) -> tuple[Face, ...]:
        """The same, where of forces that nearly cancel each largest set may be let go (`pushing`)."""
        tangent, (of_bounds, of_boundaries) = self.tangent_cone, self.normal_multipliers
        firm, fixed, count = self.firm, tangent.lower & tangent.upper, len(self.multipliers)
        least = np.maximum(self.off, RESTRICTION_TOLERANCE * np.linalg.norm(self.jacobian, axis=1))
        forces = Forces(
            np.concatenate([self.jacobian, tangent.inequalities]),
            np.concatenate([self.multipliers, of_boundaries]),
            np.concatenate([self.multipliers * self.signed, np.full(len(of_boundaries), self.doubt)]),
            np.concatenate([least, np.full(len(of_boundaries), RESTRICTION_TOLERANCE)]),
            np.concatenate([np.full(count, 2.0), np.full(len(of_boundaries), LEFT)]),
            np.concatenate([self.at_zero, np.ones(len(of_boundaries), bool)]),
            np.where(firm.bounds & ~fixed, of_bounds, 0.0),
            np.where(fixed, 0.0, tangent.upper.astype(float) - tangent.lower),
            self.doubt,
            np.concatenate([self.jacobian[~self.inequality], tangent.equalities]),
            fixed,
        )
        held = np.concatenate([firm.rows, firm.boundaries])
        return tuple(
            Face(rows[:count], bounds | (firm.bounds & fixed), rows[count:], loose)
            for rows, bounds, loose in faces_of(forces, held, self.strong)
        )

    @cached_property
    def on_faces(self) -> list["Situation"]:
        """The same on each of the `faces`, or on its own."""
        return [replace(self, face=face) for face in self.faces] if self.face is None else [self]

    @property
    def pushing(self) -> np.ndarray:
        """Inequalities that are held."""
        return self.held.rows

    @property
    def tangent_cone(self) -> TangentCone:
        """That of the set; all of space where it is not known."""
        return self.tangent or TangentCone.whole(self.gradient.size)

    @cached_property
    def normal_multipliers(self) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers of the active bounds (by coordinate) and of the other active boundaries that make up the normal of X.

        normal = E' nu + A' mu + (upper part) - (lower part): nu and mu from the coordinates that touch no bound. Any such
        decomposition gives the same critical cone: all its terms have one sign on tangent directions.
        """
        tangent, normal = self.tangent_cone, self.normal
        touching = tangent.lower | tangent.upper
        rows = np.concatenate([tangent.equalities, tangent.inequalities])
        weights = np.linalg.lstsq(rows[:, ~touching].T, normal[~touching], rcond=None)[0] if len(rows) else np.zeros(0)
        rest = normal - weights @ rows if len(rows) else normal
        return np.where(touching, rest, 0.0), weights[len(tangent.equalities) :]

    @property
    def slack_columns(self) -> np.ndarray:
        """S, shape (m, k): which row each slack belongs to."""
        return np.eye(len(self.multipliers))[:, self.inequality]

    @property
    def rows(self) -> np.ndarray:
        """A = [J, S], shape (m, d + k)."""
        return np.concatenate([self.jacobian, self.slack_columns], axis=1)

    @property
    def length(self) -> float:
        """The norm of A, or a little more: A A' = J J' and 1 in the places of inequalities."""
        if not self.jacobian.size:
            return 0.0
        return float(np.hypot(np.linalg.norm(self.jacobian, 2), self.inequality.any()))

"""The critical cone at a point, on the host: K = {v : v_i = 0 (held), E v = 0, a_i v <= 0 for the weakly active rows i}.

    -g = sum over active rows mu_i a_i + E' nu + what is left,   held where mu_i > weak,   W = {i : mu_i <= weak}

Where the boundary of X is curved, a held row adds mu_i times its curvature to the Hessian (`bending`), as the second-order
condition for curved sets has it. Rows of bounds and slacks are kept as coordinates: what is inactive costs nothing.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from ..sets.convex_set import TangentCone

Array = np.ndarray

RANK = 1e-10  # singular values of unit rows below this are rounding in the rows
ON_ROW = 1e-9  # a unit vector this close to a row lies on it


@dataclass(frozen=True, eq=False)
class Subspace:
    """{v : v_i = 0 off `free`, rows v = 0}, the rows orthonormal and zero off `free`."""

    free: Array
    rows: Array

    @property
    def dimension(self) -> int:
        """Of the subspace."""
        return int(self.free.sum()) - len(self.rows)

    def project(self, v: Array) -> Array:
        """The nearest vector of the subspace."""
        inside = np.where(self.free, v, 0.0)
        return inside - (self.rows @ inside) @ self.rows if len(self.rows) else inside

    def basis(self) -> Array:
        """Orthonormal columns that span it."""
        coordinates = np.flatnonzero(self.free)
        columns = np.zeros((self.free.size, self.dimension))
        inner = scipy.linalg.null_space(self.rows[:, coordinates]) if len(self.rows) else np.eye(len(coordinates))
        columns[coordinates] = inner[:, : self.dimension]
        return columns


@dataclass(frozen=True, eq=False)
class CriticalCone:
    """The cone, with its k = `weak` rows numbered: bounds first, then rows of X that are no bounds."""

    free: Array  # coordinates that no held bound fixes
    equal: Array  # unit rows of E and of held rows of X
    bounds: Array  # coordinates of weak bounds ...
    signs: Array  # ... and their outward normals, +1 or -1
    rows: Array  # outward unit normals of the other weak rows
    bending: Array  # diagonal that held curved rows add to the Hessian

    @classmethod
    def whole(cls, size: int) -> "CriticalCone":
        """All of space."""
        none = np.zeros((0, size))
        return cls(np.ones(size, bool), none, np.zeros(0, int), np.zeros(0), none, np.zeros(size))

    @classmethod
    def of(cls, tangent: TangentCone, normal: Array, weak: float, held: Array, signed: Array) -> "CriticalCone":
        """From the tangent cone of X, -g - P_T(-g) in x, and slacks that are held at zero, or at zero with multipliers <= `weak`.

        **Arguments:**

        - `normal`: the part of -g that is normal to X.
        - `held`, `signed`: for every slack, whether it is held at zero, and whether it may only grow.
        """
        size, slacks = tangent.size, len(held)
        of_bounds, of_rows = multipliers(tangent, normal)
        touching, fixed = tangent.lower | tangent.upper, tangent.lower & tangent.upper
        strong = touching & ((np.abs(of_bounds) > weak) | fixed)
        kept = of_rows > weak
        one_sided = touching & ~strong
        bounds = np.concatenate([np.flatnonzero(one_sided), size + np.flatnonzero(signed & ~held)])
        signs = np.concatenate([np.where(tangent.lower[one_sided], -1.0, 1.0), -np.ones(int((signed & ~held).sum()))])
        pad = lambda rows: np.concatenate([rows, np.zeros((len(rows), slacks))], axis=1)
        return cls(
            free=~np.concatenate([strong, held]),
            equal=pad(np.concatenate([tangent.equalities, tangent.inequalities[kept]])),
            bounds=bounds,
            signs=signs,
            rows=pad(tangent.inequalities[~kept]),
            bending=np.concatenate([tangent.bending(np.where(kept, of_rows, 0.0)), np.zeros(slacks)]),
        )

    @property
    def size(self) -> int:
        """Of the space."""
        return self.free.size

    @property
    def weak(self) -> int:
        """k, the number of sign conditions."""
        return len(self.bounds) + len(self.rows)

    def slopes(self, v: Array) -> Array:
        """a_i v for the weak rows."""
        return np.concatenate([self.signs * v[self.bounds], self.rows @ v])

    def contains(self, v: Array) -> bool:
        """Whether a unit vector of the span meets all sign conditions, to rounding."""
        return bool((self.slopes(v) <= ON_ROW).all())

    def subspace(self, chosen: frozenset[int] = frozenset()) -> Subspace:
        """V_S: held rows, and the weak rows S, at zero."""
        few = len(self.bounds)
        free = self.free.copy()
        free[[self.bounds[i] for i in chosen if i < few]] = False
        rows = np.concatenate([self.equal, self.rows[[i - few for i in sorted(chosen) if i >= few]]])
        return Subspace(free, orthonormal(np.where(free, rows, 0.0)))

    def vanishing(self, space: Subspace) -> frozenset[int]:
        """The weak rows that are seen to vanish on a subspace."""
        rows = [i for i, row in enumerate(self.rows) if np.linalg.norm(space.project(row)) <= ON_ROW]
        return frozenset([*np.flatnonzero(~space.free[self.bounds]).tolist(), *(len(self.bounds) + i for i in rows)])

    def project(self, v: Array) -> Array:
        """The nearest vector of the cone."""
        space = self.subspace()
        if not self.weak:
            return space.project(v)
        if not len(self.equal) and not len(self.rows):
            inside = np.where(self.free, v, 0.0)
            inside[self.bounds] -= self.signs * np.maximum(self.signs * inside[self.bounds], 0)
            return inside
        from scipy.optimize import nnls  # here, and not above: few cones are projected onto, and it imports much

        normals = np.zeros((self.weak, self.size))
        normals[np.arange(len(self.bounds)), self.bounds] = self.signs
        normals[len(self.bounds) :] = self.rows
        normals = np.stack([space.project(row) for row in normals])
        inside = space.project(v)
        return inside - nnls(normals.T, inside)[0] @ normals


def multipliers(tangent: TangentCone, normal: Array) -> tuple[Array, Array]:
    """Multipliers of the active bounds (by coordinate, signed) and of the active rows that make up a normal vector of X.

    Equalities and rows from the coordinates that touch no bound; any decomposition gives the same critical cone.
    """
    touching = tangent.lower | tangent.upper
    rows = np.concatenate([tangent.equalities, tangent.inequalities])
    weights = np.linalg.lstsq(rows[:, ~touching].T, normal[~touching], rcond=None)[0] if len(rows) else np.zeros(0)
    rest = normal - weights @ rows if len(rows) else normal
    return np.where(touching, rest, 0.0), weights[len(tangent.equalities) :]


def orthonormal(rows: Array) -> Array:
    """Orthonormal rows with the span of the given ones, each counted at unit length; those that vanish are left out."""
    lengths = np.linalg.norm(rows, axis=1)
    rows = rows[lengths > RANK] / lengths[lengths > RANK, None]
    if len(rows) <= 1:
        return rows
    _, values, vectors = scipy.linalg.svd(rows, full_matrices=False)
    return vectors[values > RANK * values[0]]

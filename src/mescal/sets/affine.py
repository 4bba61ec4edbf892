"""The affine subspace: X = {x : A x = b}, P_X(x) = x - Q'(Q x - t), where Q has orthonormal rows and Q x = t on X."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ..errors import InputError
from .arrays import size, stored_array
from .convex_set import ConvexSet, TangentCone

NEAREST = 1e-6  # what rounding may turn equations by: so far off X the judge projects a point


class Affine(ConvexSet):
    """Solutions of linear equations, over the flattened point.

    The tangent cone is {d : A d = 0} at every point, so activity never has to be decided.

    **Arguments:**

    - `matrix`: A, with one column for each coordinate of the point, in the order of
        `jax.flatten_util.ravel_pytree`. Dependent rows are allowed, rows that rounding makes so are not.
    - `rhs`: b, one number for each row.

    Kept as `rows` (Q, from the singular value decomposition in float64) and `values` (t = Q A^+ b).
    """

    rows: np.ndarray
    values: np.ndarray

    def __init__(self, matrix: ArrayLike, rhs: ArrayLike):
        eps = _precision(matrix, rhs)
        a, b = stored_array(matrix, "matrix"), np.atleast_1d(stored_array(rhs, "rhs"))
        if a.ndim != 2 or b.shape != a.shape[:1]:
            raise InputError(
                f"a matrix of shape {a.shape} and a right-hand side of shape {np.shape(rhs)}",
                "a matrix (rows, coordinates) and one number for each of its rows",
                "write one equation as Affine(a[None, :], [b])",
            )
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise InputError("an infinite coefficient in an equation", "finite numbers", "look at how it was computed")
        lengths = np.abs(a).max(axis=1, initial=0.0)
        powers = -np.frexp(lengths)[1]  # an equation says the same in any unit, and powers of two cost no digits
        a, b = np.ldexp(a.astype(np.float64), powers[:, None]), np.ldexp(b.astype(np.float64), powers)
        left, singular, rows = np.linalg.svd(a, full_matrices=False)
        rank = int(np.sum(singular > max(a.shape) * eps * np.max(singular, initial=0)))
        turned = max(a.shape) * 2.0**-52 * np.max(singular, initial=0) / np.min(singular[:rank], initial=np.inf)
        if turned > NEAREST:
            raise InputError(
                f"equations that all but depend on each other: rounding alone turns what they say by {turned:.1g}",
                f"equations whose solutions rounding moves by no more than {NEAREST:g}",
                "take out those that depend on others, or combine them by hand so that they differ",
            )
        self.rows = rows[:rank]
        self.values = left.T[:rank] @ b / singular[:rank]
        residual = np.linalg.norm(a @ (self.values @ self.rows) - b)
        largest = np.max(singular, initial=0) * np.linalg.norm(self.values)
        if residual > 10 * max(a.shape) * eps * (np.linalg.norm(b) + largest):
            raise InputError(
                f"equations that contradict each other: no point is closer than {residual:.3g} to fulfilling them",
                "a system A x = b with a solution",
                "take out the equations that depend on others, or correct their right-hand sides",
            )

    def project(self, x: PyTree) -> PyTree:
        flat, unravel = ravel_pytree(x)
        # The second pass removes the rounding of the first, which is relative to |x| and not to its projection.
        for _ in range(2):
            flat = self._remove(flat, self.values.astype(flat.dtype))
        return unravel(flat)

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        flat, unravel = ravel_pytree(v)
        return unravel(self._remove(flat, jnp.zeros(self.values.shape, flat.dtype)))

    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        return self.project_tangent(x, v)

    def tangent_cone(self, x: PyTree) -> TangentCone:
        n = size(x)
        nowhere = np.zeros(n, bool)
        return TangentCone(nowhere, nowhere, np.asarray(self.rows, np.float64), np.zeros((0, n)), np.zeros(0))

    def check_fit(self, x: PyTree) -> None:
        if self.rows.shape[1] != size(x):
            raise InputError(
                f"equations in {self.rows.shape[1]} unknowns for a point with {size(x)} coordinates",
                "one column of the matrix for every coordinate of the point",
                "order the columns like jax.flatten_util.ravel_pytree(x), or use Product to bind one block only",
            )

    def _remove(self, flat: jax.Array, values: jax.Array | np.ndarray) -> jax.Array:
        """flat - Q'(Q flat - values), in full precision: accelerators would multiply float32 in less."""
        rows, exact = self.rows.astype(flat.dtype), jax.lax.Precision.HIGHEST
        return flat - jnp.matmul(jnp.matmul(rows, flat, precision=exact) - values, rows, precision=exact)

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        tree = {"w": np.zeros((2, 2), np.float32), "b": np.zeros((), np.float32)}
        return (
            (cls([[1.0, 2.0, -1.0]], 3.0), np.zeros(3, np.float32)),
            (cls([[1.0, 1, 1, 1, 1], [0, 1, 0, -1, 0], [2, 3, 2, 1, 2]], [1.0, 0.5, 2.5]), tree),
            (cls(np.eye(2), [0.1, -5.0]), np.zeros(2, np.float32)),
        )


def _precision(*arrays: ArrayLike) -> float:
    """The rounding of the coarsest floating-point dtype that the equations were given in."""
    kinds = [getattr(array, "dtype", np.dtype(np.float64)) for array in arrays]
    return max(float(jnp.finfo(kind).eps) if jnp.issubdtype(kind, np.floating) else 2.0**-52 for kind in kinds)

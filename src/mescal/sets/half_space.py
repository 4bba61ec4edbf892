"""The half-space: X = {x : a'x <= b}, P_X(x) = x - max(0, a'x - b) a / |a|^2."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ..errors import InputError
from .arrays import flattened, host_flat, ravel_pair, require_size, rounding, stored, stored_array
from .convex_set import ConvexSet, TangentCone


class HalfSpace(ConvexSet):
    """Points on one side of a hyperplane.

    Where a'x = b the tangent cone is {d : a'd <= 0}. After projecting, a'x equals b to rounding only, so x counts as
    on the boundary where a'x >= b - 8 eps (|a|'|x| + |b|), and a point that close is not moved again.

    **Arguments:**

    - `normal`: a, not zero: a pytree like the point, or one vector over the flattened point. Kept with length 1.
    - `offset`: b, a number. Kept divided by |a|.
    """

    normal: PyTree
    offset: np.ndarray

    def __init__(self, normal: PyTree[ArrayLike], offset: ArrayLike):
        direction, bound = stored(normal, "normal"), stored_array(offset, "offset")
        flat = host_flat(direction)
        largest = np.max(np.abs(flat), initial=0)
        if not 0 < largest < np.inf:
            raise InputError(
                "a half-space whose normal is zero" if largest == 0 else "a half-space whose normal is infinite",
                "a finite normal with at least one entry that is not 0",
                "leave the set out (Reals) if there is nothing to bound",
            )
        if bound.shape != () or not np.isfinite(bound):
            raise InputError(
                f"a half-space with the offset {bound}", "one finite number", "leave the set out if there is no bound"
            )
        length = largest * np.linalg.norm(flat / largest)
        self.normal = jax.tree.map(lambda leaf: np.asarray(leaf / length), direction)
        self.offset = np.asarray(bound / length)

    def project(self, x: PyTree) -> PyTree:
        from optax import projections  # here, and not above: it takes as long to import as this whole folder

        flat, unravel = ravel_pytree(x)
        normal, excess, slack = self._boundary(x, flat)
        nearest, offset = flat, self.offset.astype(flat.dtype)
        # The second pass removes the rounding of the first, which is relative to |x| and not to its projection.
        for _ in range(2):
            nearest = projections.projection_hyperplane(nearest, normal, offset)
        return unravel(jnp.where(excess > slack, nearest, flat))

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        point, flat, unravel = ravel_pair(x, v)
        normal, excess, slack = self._boundary(x, point)
        return unravel(flat - jnp.where(excess >= -slack, jnp.maximum(0, jnp.sum(normal * flat)), 0) * normal)

    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        point, flat, unravel = ravel_pair(x, v)
        normal, excess, slack = self._boundary(x, point)
        return unravel(flat - jnp.where(excess >= -slack, jnp.sum(normal * flat), 0) * normal)

    def tangent_cone(self, x: PyTree) -> TangentCone:
        flat = host_flat(x)
        normal, excess, slack = self._boundary(x, flat)
        if excess < -slack:
            return TangentCone.whole(flat.size)
        nowhere = np.zeros(flat.size, bool)
        return TangentCone(nowhere, nowhere, np.zeros((0, flat.size)), normal[None, :], np.zeros(1))

    def check_fit(self, x: PyTree) -> None:
        require_size(self.normal, x, "normal")
        flattened(self.normal, x, host_flat(jax.tree.map(lambda leaf: np.zeros(leaf.shape), x)), "normal")

    def _boundary(self, x: PyTree, flat: Any) -> tuple[Any, Any, Any]:
        """a, a'x - b and its rounding, for |a| = 1; `flat` is on the device or on the host."""
        require_size(self.normal, x, "normal")
        xp = flat.__array_namespace__()
        normal = xp.broadcast_to(flattened(self.normal, x, flat, "normal"), flat.shape)
        offset = self.offset.astype(flat.dtype)
        slack = rounding(x) * (xp.sum(xp.abs(normal * flat)) + xp.abs(offset))
        return normal, xp.sum(normal * flat) - offset, slack

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        tree = {"w": np.zeros((2, 2), np.float32), "b": np.zeros((), np.float32)}
        return (
            (cls([3.0, -4.0, 0.1], 1.0), np.zeros(3, np.float32)),
            (cls({"w": np.ones((2, 2)), "b": -0.3}, -7.0), tree),
            (cls(np.arange(5.0), 0.0), tree),
        )

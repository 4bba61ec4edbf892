"""The ball: X = {x : |x - c| <= R}, P_X(x) = c + (x - c) min(1, R / |x - c|)."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ..errors import InputError
from .arrays import flattened, host_flat, norm, ravel_pair, rounding, stored, stored_array
from .convex_set import ConvexSet, TangentCone


class Ball(ConvexSet):
    """Points within a Euclidean distance of a centre, over the whole flattened pytree.

    On the boundary, with the outer normal n = (x - c)/R, the tangent cone is {d : n'd <= 0} and the boundary has the
    curvature 1/R. After projecting, |x - c| equals R to rounding only, so x counts as on the boundary where
    |x - c| >= R - 8 eps (R + |x|), and a point that close is not moved again.

    **Arguments:**

    - `radius`: R > 0.
    - `center`: c: a number for all coordinates, an array, or a pytree like the point.
    """

    radius: np.ndarray
    center: PyTree

    def __init__(self, radius: ArrayLike, center: PyTree[ArrayLike] = 0):
        self.radius, self.center = stored_array(radius, "radius"), stored(center, "center")
        if self.radius.shape != () or not 0 < self.radius < np.inf:
            raise InputError(
                f"a ball of radius {self.radius}",
                "one finite radius > 0",
                "use Reals() for all of space, Affine for one point, Product for one ball per block",
            )
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(self.center)):
            raise InputError("a ball with an infinite center", "finite numbers", "look at where center was computed")

    def project(self, x: PyTree) -> PyTree:
        from optax import projections  # here, and not above: it takes as long to import as this whole folder

        flat, unravel = ravel_pytree(x)
        center, radius = flattened(self.center, x, flat, "center"), self.radius.astype(flat.dtype)
        z = (flat - center) / radius
        # Projecting z/m onto the ball of radius 1/m instead keeps |z|^2 from overflowing.
        m = jax.lax.stop_gradient(jnp.maximum(1, jnp.max(jnp.abs(z), initial=0)))
        nearest = center + radius * (m * projections.projection_l2_ball(z / m, 1 / m))
        outside = norm(z) > 1 + rounding(x) * (1 + norm(flat / radius))
        return unravel(jnp.where(outside, nearest, flat))

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        point, flat, unravel = ravel_pair(x, v)
        normal, active = self._boundary(x, point)
        return unravel(flat - jnp.where(active, jnp.maximum(0, jnp.sum(normal * flat)), 0) * normal)

    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        point, flat, unravel = ravel_pair(x, v)
        normal, active = self._boundary(x, point)
        return unravel(flat - jnp.where(active, jnp.sum(normal * flat), 0) * normal)

    def tangent_cone(self, x: PyTree) -> TangentCone:
        flat = host_flat(x)
        normal, active = self._boundary(x, flat)
        if not active:
            return TangentCone.whole(flat.size)
        nowhere = np.zeros(flat.size, bool)
        curvature = 1 / np.asarray(self.radius, np.float64)
        return TangentCone(nowhere, nowhere, np.zeros((0, flat.size)), normal[None, :], curvature[None])

    def check_fit(self, x: PyTree) -> None:
        flattened(self.center, x, host_flat(jax.tree.map(lambda leaf: np.zeros(leaf.shape), x)), "center")

    def _boundary(self, x: PyTree, flat: Any) -> tuple[Any, Any]:
        """The outer unit normal, and whether x is on the boundary; `flat` is on the device or on the host."""
        xp = flat.__array_namespace__()
        radius = self.radius.astype(flat.dtype)
        z = (flat - flattened(self.center, x, flat, "center")) / radius
        # Bounding |z| from below leaves the boundary as it is, and the derivative finite at the centre.
        length = xp.sqrt(xp.maximum(xp.sum(z * z), 0.25))
        slack = rounding(x) * (1 + xp.sqrt(xp.sum((flat / radius) ** 2)))
        return z / length, length >= xp.maximum(1 - slack, 0.75)

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        tree = {"w": np.zeros((2, 2), np.float32), "b": np.zeros((), np.float32)}
        return (
            (cls(2.0), np.zeros(4, np.float32)),
            (cls(0.3, center=[1.0, -2.0, 0.1]), np.zeros(3, np.float32)),
            (cls(5.0, center={"w": np.ones((2, 2)), "b": -3.0}), tree),
        )

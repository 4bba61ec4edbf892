"""The simplex: X = {x : x_i >= 0, sum_i x_i = total}, P_X(x)_i = max(x_i - t, 0) with t such that the sum is right."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree
from numpy.typing import ArrayLike

from ..errors import InputError
from .arrays import host_flat, rounding, stored_array
from .convex_set import ConvexSet, TangentCone


class Simplex(ConvexSet):
    """Weights >= 0 with a given sum, over the whole flattened pytree.

    The tangent cone at x is {d : sum_i d_i = 0, d_i >= 0 where x_i = 0}. Where the positive parts have the right sum to
    8 eps, they are the answer: t would be rounding, and would lift zeros to its size, off their face.

    **Arguments:**

    - `total`: the sum, > 0.
    """

    total: np.ndarray

    def __init__(self, total: ArrayLike = 1):
        self.total = stored_array(total, "total")
        if self.total.shape != () or not 0 < self.total < np.inf:
            raise InputError(
                f"a simplex with the sum {self.total}",
                "one finite total > 0",
                "give the sum that the weights must have, 1 for probabilities",
            )

    def project(self, x: PyTree) -> PyTree:
        from optax import projections  # here, and not above: it takes as long to import as this whole folder

        flat, unravel = ravel_pytree(x)
        total = self.total.astype(flat.dtype)
        # optax divides integers, which are float64 under x64: compute in that dtype and come back.
        wide = jnp.promote_types(flat.dtype, jnp.result_type(float))
        # The shift changes nothing but the rounding, which is then relative to the differences.
        shifted = (flat - jax.lax.stop_gradient(jnp.max(flat))).astype(wide)
        with jax.numpy_dtype_promotion("standard"):
            nearest = projections.projection_simplex(shifted, total.astype(wide)).astype(flat.dtype)
        clipped = jnp.maximum(flat, 0)
        inside = jnp.abs(jnp.sum(clipped) - total) <= rounding(x) * total
        # Outside of the derivative: that of `clipped` would forget that the set is flat.
        return unravel(nearest + jax.lax.stop_gradient(jnp.where(inside, clipped - nearest, 0)))

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        flat, unravel = ravel_pytree(v)
        return unravel(_project_cone(ravel_pytree(x)[0] <= 0, flat))

    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        free = ravel_pytree(x)[0] > 0
        flat, unravel = ravel_pytree(v)
        mean = jnp.sum(jnp.where(free, flat, 0)) / jnp.maximum(jnp.sum(free), 1).astype(flat.dtype)
        return unravel(jnp.where(free, flat - mean, 0))

    def tangent_cone(self, x: PyTree) -> TangentCone:
        active = host_flat(x) <= 0
        n = active.size
        return TangentCone(active, np.zeros(n, bool), np.full((1, n), n**-0.5), np.zeros((0, n)), np.zeros(0))

    def check_fit(self, x: PyTree) -> None:
        pass

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        tree = {"p": np.zeros((2, 2), np.float32), "q": np.zeros((), np.float32)}
        return (cls(), np.zeros(6, np.float32)), (cls(2.5), tree), (cls(), np.zeros(1, np.float32))


def _project_cone(active: jax.Array, v: jax.Array) -> jax.Array:
    """argmin |d - v| over {d : sum d = 0, d_i >= 0 for active i}, which is v - t, cut off at 0 for active i.

    Sorted with the free coordinates first and the active ones from large to small, those not cut off come first: the
    k-th active one is not cut off if it is larger than the mean of all up to it; t is the mean of those not cut off.
    """
    n = v.size
    order = jnp.argsort(jnp.where(active, -v, -jnp.inf))
    ordered = v[order]
    counts = jnp.arange(1, n + 1).astype(v.dtype)
    kept = ~active[order] | (ordered > jnp.cumsum(ordered) / counts)
    # Summed once more over those kept: a running sum rounds worse than a sum.
    t = jnp.sum(jnp.where(kept, ordered, 0)) / jnp.maximum(jnp.sum(kept), 1).astype(v.dtype)
    return jnp.where(active, jnp.maximum(v - t, 0), v - t)

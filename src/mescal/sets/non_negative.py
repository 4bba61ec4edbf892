"""The orthant: X = {x : x_i >= 0}, P_X(x)_i = max(x_i, 0)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .arrays import host_leaves
from .convex_set import ConvexSet, TangentCone


class NonNegative(ConvexSet):
    """Points whose coordinates are all >= 0.

    The tangent cone at x is {d : d_i >= 0 where x_i = 0}.
    """

    def project(self, x: PyTree) -> PyTree:
        return jax.tree.map(jax.nn.relu, x)

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        return jax.tree.map(lambda a, b: jnp.where(a <= 0, jnp.maximum(b, 0), b), x, v)

    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        return jax.tree.map(lambda a, b: jnp.where(a <= 0, 0, b), x, v)

    def tangent_cone(self, x: PyTree) -> TangentCone:
        lower = np.concatenate([leaf <= 0 for leaf in host_leaves(x)])
        rows = np.zeros((0, lower.size))
        return TangentCone(lower, np.zeros_like(lower), rows, rows, np.zeros(0))

    def check_fit(self, x: PyTree) -> None:
        pass

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        return (cls(), np.zeros(5, np.float32)), (cls(), [np.zeros((), np.float32), np.zeros((2, 2), np.float32)])

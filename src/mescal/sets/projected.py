"""Any closed convex set with a projection: P_T(x)(v) = lim (P_X(x + tau v) - x) / tau as tau falls to 0."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ..errors import InputError, InputTypeError
from .base import ConvexSet
from .points import norm


class Projected(ConvexSet):
    """A set of which only the projection is known.

    The tangent projection is a difference quotient with tau = h max(1, |x|) / |v|, where h = 1e-6 for float64 and
    the root of the rounding for less, which balances the rounding (eps/h) with the curvature of the boundary (h).
    Its inequalities are not known: `tangent_cone` is `None`, and `project_face` is the identity.

    **Arguments:**

    - `project`: a function of the point that returns its nearest point of the set, with the same structure, shapes
        and dtypes; it must be possible to compile it.
    """

    function: Callable[[PyTree], PyTree]

    def __init__(self, project: Callable[[PyTree], PyTree]):
        if not callable(project):
            raise InputTypeError(
                f"a projection of type {type(project).__name__}",
                "a function of the point that returns its nearest point of the set",
                "write Projected(lambda x: jnp.clip(x, 0, 1)), for instance",
            )
        self.function = project

    def project(self, x: PyTree) -> PyTree:
        return jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), self.function(x), x)

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        # Where v is wider than x, so is the sum; the step still has to exceed the rounding of x.
        step = max((_relative_step(leaf.dtype) for leaf in jax.tree.leaves(x)), default=0.0)
        length = norm(v)
        tau = step * jnp.maximum(1, norm(x)).astype(length.dtype) / jnp.where(length > 0, length, 1)
        tau = jax.lax.stop_gradient(tau)
        ahead = self.project(jax.tree.map(lambda a, b: a + tau.astype(b.dtype) * b, x, v))
        return jax.tree.map(lambda a, b, y: ((y - a) / tau.astype(b.dtype)).astype(b.dtype), x, v, ahead)

    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        return v

    def renewed(self) -> "Projected":
        """With a function that no compiled program knows: compiled ones are known by it."""
        given = self.function
        return Projected(lambda x: given(x))

    def tangent_cone(self, x: PyTree) -> None:
        return None

    def check_fit(self, x: PyTree) -> None:
        given = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), x)
        result = jax.eval_shape(self.function, given)
        same = jax.tree.structure(result) == jax.tree.structure(given)
        if not same or any(
            new.shape != old.shape for new, old in zip(jax.tree.leaves(result), jax.tree.leaves(given), strict=True)
        ):
            raise InputError(
                f"a projection that makes {result} of {given}",
                "the structure and the shapes of the point",
                "return a pytree like the argument; jax.tree.map applies a function to every leaf",
            )

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        def clip(x: PyTree) -> PyTree:
            return jax.tree.map(lambda leaf: jnp.clip(leaf, -1, 2), x)

        def ball(x: PyTree) -> PyTree:
            return jax.tree.map(lambda leaf: leaf / jnp.maximum(1, norm(x) / 3).astype(leaf.dtype), x)

        tree = {"w": np.zeros((2, 2), np.float32), "b": np.zeros((), np.float32)}
        return (cls(clip), np.zeros(4, np.float32)), (cls(ball), tree)


def _relative_step(dtype: np.dtype) -> float:
    return max(1e-6, float(jnp.finfo(dtype).eps) ** 0.5)

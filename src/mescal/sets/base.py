"""What a closed convex set X must be able to do: P_X(x), P_{T_X(x)}(v), and tell which constraints x touches."""

import abc
import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree

from ..errors import InputError, InputTypeError
from .arrays import norm, shown
from .tangent_cone import TangentCone


class ConvexSet(eqx.Module):
    """A nonempty closed convex set X of pytrees of real arrays (`None` leaves are skipped).

    `project`, `project_tangent`, `project_face` and `contains` can be compiled, mapped and differentiated;
    `tangent_cone` and `check` run on the host. Numbers that define the set are array leaves in float64, cast to the
    dtype of x where they are used: another value never recompiles, and no precision is lost under `jax.enable_x64`.

    Which constraints x touches is decided in the precision of x, exactly where projecting is exact (bounds) and to a
    few units of rounding where it is not (norms, inner products). A point computed in float32 must therefore be
    handed over in float32: the vector v may be wider, and the answer has the dtype of v.
    """

    @abc.abstractmethod
    def project(self, x: PyTree) -> PyTree:
        """The nearest point of X, argmin_{y in X} |y - x|, with the structure, shapes and dtypes of `x`."""

    @abc.abstractmethod
    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        """The nearest direction of the tangent cone, argmin_{d in T_X(x)} |d - v|.

        **Arguments:**

        - `x`: a point of X; project first, activity is not decided with a tolerance.
        - `v`: a pytree with the structure and shapes of `x`.
        """

    @abc.abstractmethod
    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        """Orthogonal projection of `v` onto the lineality space of T_X(x), the directions d with d and -d in T_X(x)."""

    @abc.abstractmethod
    def tangent_cone(self, x: PyTree) -> TangentCone | None:
        """T_X(x) by its inequalities, on the host in float64 over the flattened `x`; `None` where it is not known."""

    @abc.abstractmethod
    def check_fit(self, x: PyTree) -> None:
        """Raises `InputError` if `x` has not the shape that the set is made for. Called by `check`."""

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> tuple[tuple["ConvexSet", PyTree], ...]:
        """Pairs of a set and a point of the right structure (its values do not matter) for the conformance suite."""

    def renewed(self) -> "ConvexSet":
        """The same set for a new problem: a function in it is held anew, since what it reads may have changed."""
        return self

    def contains(self, x: PyTree, tolerance: float | None = None) -> Bool[Array, ""]:
        """Whether |x - P_X(x)| <= `tolerance`, by default 1e-6 max(1, |x|), which float32 can meet."""
        distance = norm(jax.tree.map(jnp.subtract, x, self.project(x)))
        return distance <= (1e-6 * jnp.maximum(1, norm(x)) if tolerance is None else tolerance)

    def check(self, x: PyTree) -> None:
        """Raises `InputError` if `x` is not a pytree of real floating-point arrays that fits the set."""
        leaves = jax.tree.leaves(x)
        if not leaves:
            raise InputError(
                "a point without any array",
                "a pytree with at least one floating-point array",
                "give the parameters as an array or as a pytree of arrays",
            )
        for leaf in leaves:
            kind = getattr(leaf, "dtype", None)
            if kind is None or not jnp.issubdtype(kind, np.floating):
                raise InputTypeError(
                    f"a point with a leaf of type {type(leaf).__name__ if kind is None else kind}",
                    "floating-point arrays only",
                    "convert it with jnp.asarray(leaf, float), or take what is not a parameter out of the point",
                )
        self.check_fit(x)

    def __repr__(self) -> str:
        fields = (shown(getattr(self, field.name)) for field in dataclasses.fields(self))
        return f"{type(self).__name__}({', '.join(fields)})"

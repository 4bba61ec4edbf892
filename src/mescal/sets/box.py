"""The box: X = {x : low_i <= x_i <= high_i}, P_X(x)_i = min(max(x_i, low_i), high_i)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PyTree
from numpy.typing import ArrayLike

from ..errors import InputError
from .arrays import host_leaves, matched, size, stored
from .convex_set import ConvexSet, TangentCone


class Box(ConvexSet):
    """Points between two bounds, coordinate by coordinate.

    The tangent cone at x is {d : d_i >= 0 where x_i = low_i, d_i <= 0 where x_i = high_i}.

    **Arguments:**

    - `low`: the lower bounds: a number, an array that broadcasts to the point, or a pytree like the point.
        `-inf` where there is none.
    - `high`: the upper bounds, likewise. `low == high` fixes a coordinate.
    """

    low: PyTree
    high: PyTree

    def __init__(self, low: PyTree[ArrayLike], high: PyTree[ArrayLike]):
        self.low, self.high = stored(low, "low"), stored(high, "high")
        _require_order(self.low, self.high)

    def project(self, x: PyTree) -> PyTree:
        return jax.tree.map(jnp.clip, x, matched(self.low, x, "low"), matched(self.high, x, "high"))

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        def one(at_low: Array, at_high: Array, b: Array) -> Array:
            b = jnp.where(at_low, jnp.maximum(b, 0), b)
            return jnp.where(at_high, jnp.minimum(b, 0), b)

        return jax.tree.map(one, *self._active(x), v)

    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        return jax.tree.map(lambda at_low, at_high, b: jnp.where(at_low | at_high, 0, b), *self._active(x), v)

    def tangent_cone(self, x: PyTree) -> TangentCone:
        lower, upper = (np.concatenate(host_leaves(active)) for active in self._active(jax.tree.map(np.asarray, x)))
        rows = np.zeros((0, size(x)))
        return TangentCone(lower, upper, rows, rows, np.zeros(0))

    def check_fit(self, x: PyTree) -> None:
        matched(self.low, x, "low")
        matched(self.high, x, "high")

    def _active(self, x: PyTree) -> tuple[PyTree[Bool[Array, "..."]], PyTree[Bool[Array, "..."]]]:
        """The coordinates at their lower and at their upper bound, compared in the dtype that they were clipped in."""
        at_low = jax.tree.map(lambda a, low: a <= low, x, matched(self.low, x, "low"))
        return at_low, jax.tree.map(lambda a, high: a >= high, x, matched(self.high, x, "high"))

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        some = np.array([-np.inf, 0.1, 0.3, -1.0])
        tree = {"w": np.zeros((2, 3), np.float32), "b": np.zeros((), np.float32)}
        return (
            (cls(-1.0, 0.7), np.zeros(4, np.float32)),
            (cls(some, np.array([0.0, 0.1, np.inf, 1.0])), np.zeros(4, np.float32)),
            (cls({"w": np.array([-1.0, 0.0, 1.0]), "b": -np.inf}, 2.0), tree),
        )


def _require_order(low: PyTree, high: PyTree) -> None:
    """Raises `InputError` unless low <= high, with a real number between them."""
    lows, highs = jax.tree.leaves(low), jax.tree.leaves(high)
    number = [getattr(bound, "shape", None) == () for bound in (low, high)]
    if not any(number) and jax.tree.structure(low) != jax.tree.structure(high):
        raise InputError(
            f"low with the structure {jax.tree.structure(low)} and high with {jax.tree.structure(high)}",
            "two bounds of the same structure, or a number for one of them",
            "give both as pytrees like the point",
        )
    lows, highs = lows * (len(highs) if number[0] else 1), highs * (len(lows) if number[1] else 1)
    for below, above in zip(lows, highs, strict=True):
        try:
            below, above = np.broadcast_arrays(below, above)
        except ValueError:
            raise InputError(
                f"low of shape {below.shape} and high of shape {above.shape}",
                "shapes that broadcast to one another",
                "give both the shape of the point, or a number",
            ) from None
        crossed = (below > above) | (below == np.inf) | (above == -np.inf)
        if crossed.any():
            where = tuple(int(i) for i in np.argwhere(crossed)[0])
            raise InputError(
                f"a set whose bounds cross: low = {below[where]:g} and high = {above[where]:g}"
                + (f" at {where}, {crossed.sum()} such places in all" if where else ""),
                "low <= high everywhere, low < inf and high > -inf",
                "exchange the two bounds, or widen them",
            )

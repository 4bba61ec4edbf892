"""Any closed convex set with a projection: P_T(x)(v) = lim (P_X(x + tau v) - x) / tau as tau falls to 0."""

from collections.abc import Callable
from types import FunctionType

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PyTree

from ..compiling import compiled, in_precision
from ..errors import InputError, InputTypeError
from .arrays import ROUNDINGS, norm, rounding
from .convex_set import ConvexSet

STEPS = 8  # between the shortest and the longest, in equal ratios
EXPANSION = 1e-2  # what rounding, and projections that are found by iteration, may take points apart
SCALES = (
    0.1,
    0.1,
    0.5,
    0.5,
    1.0,
    1.0,
    3.0,
    3.0,
)  # of the pairs that this is tried with, in units of the largest coordinate
LONGER = 64  # how often a step must hold the rounding of a coordinate, a unit of which is no movement


class Projected(ConvexSet):
    """A set of which only the projection is known.

    The tangent projection is a difference quotient, which never grows with tau: the smaller the step, the nearer the limit, and
    too large a step takes points inside for points of the boundary. A step h s long is taken, h = 1e-6 for float64 and the root
    of the rounding for less; s is the smallest length that the coordinates show where v leads: how far each moves on the way to
    P_X(x + v) at the scale of x, and |x_i|. Coordinates for which that is less than their rounding have the
    first of a few longer steps that is not. A coordinate that the projection leaves where the step led has v_i itself.
    Its inequalities are not known: `tangent_cone` is `None`, and `project_face` is the identity.

    **Arguments:**

    - `project`: a function of the point that returns its nearest point of the set, with the same structure, shapes
        and dtypes; it must be possible to compile it.
    """

    function: Callable[[PyTree], PyTree] = eqx.field(static=True)

    def __init__(self, project: Callable[[PyTree], PyTree]):
        if not callable(project):
            raise InputTypeError(
                f"a projection of type {type(project).__name__}",
                "a function of the point that returns its nearest point of the set",
                "write Projected(lambda x: jnp.clip(x, 0, 1)), for instance",
            )
        # functions alone are known by their identity: other callables may hold arrays
        self.function = project if isinstance(project, FunctionType) else lambda x: project(x)

    def project(self, x: PyTree) -> PyTree:
        return jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), self.function(x), x)

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        # where v is wider than x, so is the sum; the step still has to exceed the rounding of x
        h = max((_relative_step(leaf.dtype) for leaf in jax.tree.leaves(x)), default=0.0)
        length, largest = norm(v), _largest(x)
        unit = jax.tree.map(lambda b: b / jnp.where(length > 0, length, 1).astype(b.dtype), v)
        reach = jnp.maximum(1, largest).astype(length.dtype)
        _, far = self._ahead(x, unit, reach)

        def shown(a: Array, y: Array, u: Array) -> Array:
            """The smaller of the lengths that a coordinate shows."""
            sizes = (jnp.where((u != 0) & (size > 0), size, reach) for size in (jnp.abs(y - a), jnp.abs(a)))
            return jnp.min(jnp.minimum(*sizes), initial=jnp.inf).astype(length.dtype)

        shortest = jnp.min(jnp.stack(jax.tree.leaves(jax.tree.map(shown, x, far, unit))))
        short = jax.lax.stop_gradient(h * jnp.minimum(shortest, reach))
        needed = jax.tree.map(lambda a, u: jnp.max(jnp.abs(a) / jnp.maximum(jnp.abs(u), h), initial=0), x, unit)
        long = jax.lax.stop_gradient(
            jnp.maximum(short, 2 * LONGER * rounding(x) * _largest(needed)).astype(length.dtype)
        )

        def taken(best: PyTree, step: Array) -> tuple[PyTree, None]:
            """Of the coordinates for which this step exceeds their rounding."""
            found = self._ahead(x, unit, step)

            def one(a: Array, b: Array, u: Array, target: Array, y: Array, before: Array) -> Array:
                moved = jnp.where(jnp.abs(y - a) > rounding(x) / ROUNDINGS * jnp.abs(a), y - a, 0)
                quotient = jnp.where(y == target, b, moved / step.astype(b.dtype) * length.astype(b.dtype))
                return jnp.where(step * jnp.abs(u) >= LONGER * rounding(x) * jnp.abs(a), quotient, before).astype(
                    b.dtype
                )

            return jax.tree.map(one, x, v, unit, *found, best), None

        ladder = long * (short / long) ** (jnp.arange(STEPS) / (STEPS - 1)).astype(length.dtype)
        return jax.lax.scan(taken, v, ladder)[0]

    def _ahead(self, x: PyTree, unit: PyTree, step: Array) -> tuple[PyTree, PyTree]:
        """The point that a step leads to, and its projection."""
        target = jax.tree.map(lambda a, u: a + step.astype(jnp.result_type(a, u)) * u, x, unit)
        return target, self.project(target)

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
        with in_precision(max((leaf.dtype for leaf in jax.tree.leaves(given)), key=lambda dtype: dtype.itemsize)):
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
        further = _expansion(self, x)
        if further > 1 + EXPANSION:
            raise InputError(
                f"a projection that takes two points {further:.3g} times as far apart as they were",
                "the projection onto a convex set, which takes no two points further apart",
                "look at whether the set is convex (a sphere is not), and whether the nearest of its points is returned",
            )

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        def clip(x: PyTree) -> PyTree:
            return jax.tree.map(lambda leaf: jnp.clip(leaf, -1, 2), x)

        def ball(x: PyTree) -> PyTree:
            return jax.tree.map(lambda leaf: leaf / jnp.maximum(1, norm(x) / 3).astype(leaf.dtype), x)

        tree = {"w": np.zeros((2, 2), np.float32), "b": np.zeros((), np.float32)}
        return (cls(clip), np.zeros(4, np.float32)), (cls(ball), tree)


def _expansion(domain: Projected, x: PyTree) -> float:
    """By how much the projection takes points apart: the largest quotient of a few random pairs around x, at several scales."""
    flat, unravel = ravel_pytree(jax.tree.map(np.asarray, x))
    random, largest = np.random.default_rng(0), max(1.0, float(np.abs(flat).max(initial=0.0)))
    worst = 0.0
    for scale in SCALES:
        pair = [flat + scale * largest * random.standard_normal(flat.size) for _ in range(2)]
        ends = [np.asarray(ravel_pytree(_projected(domain, unravel(point.astype(flat.dtype))))[0]) for point in pair]
        length = float(np.linalg.norm(pair[0] - pair[1]))
        worst = max(worst, float(np.linalg.norm(ends[0] - ends[1])) / length if length > 0 else 0.0)
    return worst


@compiled
def _projected(domain: Projected, x: PyTree) -> PyTree:
    return domain.project(x)


def _relative_step(dtype: np.dtype) -> float:
    return max(1e-6, float(jnp.finfo(dtype).eps) ** 0.5)


def _largest(x: PyTree) -> Array:
    """max |x_i|, in the widest dtype of x."""
    return jnp.max(jnp.concatenate([jnp.ravel(jnp.abs(leaf)) for leaf in jax.tree.leaves(x)]), initial=0)

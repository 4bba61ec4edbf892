"""The product: X = X_1 x ... x X_k, every projection block by block."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from ..errors import InputError, InputTypeError
from .ball import Ball
from .box import Box
from .convex_set import ConvexSet, TangentCone
from .reals import Reals
from .simplex import Simplex


def _is_set(node: Any) -> bool:
    return isinstance(node, ConvexSet)


class Product(ConvexSet):
    """One set for each block of the point.

    ```python
    Product(a, b)                  # for a tuple or a list of two pytrees
    Product(w=a, b=b)              # for a dict with these two keys
    Product({"w": a, "b": b})      # the same, for any keys
    ```

    **Arguments:**

    - `blocks`: the sets in order, or one pytree of sets whose structure the point begins with.
    - `named`: the sets by key.
    """

    blocks: PyTree[ConvexSet]

    def __init__(self, *blocks: PyTree[ConvexSet], **named: ConvexSet):
        if bool(blocks) == bool(named):
            raise InputError(
                "a product of nothing" if not blocks else "a product with blocks both in order and by name",
                "either sets in order or sets by name, at least one",
                'write Product(a, b) for a tuple or list, Product(w=a, b=b) or Product({"w": a, "b": b}) for a dict',
            )
        alone = len(blocks) == 1 and not _is_set(blocks[0])
        self.blocks = named if named else blocks[0] if alone else blocks
        sets = jax.tree.leaves(self.blocks, is_leaf=_is_set)
        wrong = [type(block).__name__ for block in sets if not _is_set(block)]
        if wrong or not sets:
            raise InputTypeError(
                f"a product with a block of type {wrong[0]}" if wrong else "a product of an empty collection",
                "a mescal set for every block",
                "use Reals() for a block without bounds",
            )

    def project(self, x: PyTree) -> PyTree:
        return self._each(lambda block, part: block.project(part), x)

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        return self._each(lambda block, part, along: block.project_tangent(part, along), x, v)

    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        return self._each(lambda block, part, along: block.project_face(part, along), x, v)

    def renewed(self) -> "Product":
        """Every block anew."""
        return Product(jax.tree.map(lambda block: block.renewed(), self.blocks, is_leaf=_is_set))

    def tangent_cone(self, x: PyTree) -> TangentCone | None:
        _, parts = self._split(x)
        sets = jax.tree.leaves(self.blocks, is_leaf=_is_set)
        cones = [block.tangent_cone(part) for block, part in zip(sets, parts, strict=True)]
        known = [cone for cone in cones if cone is not None]
        return TangentCone.join(known) if len(known) == len(cones) else None

    def check_fit(self, x: PyTree) -> None:
        _, parts = self._split(x)
        for block, part in zip(jax.tree.leaves(self.blocks, is_leaf=_is_set), parts, strict=True):
            block.check_fit(part)

    def _split(self, x: PyTree) -> tuple[Any, list[PyTree]]:
        """The structure of the blocks, and the part of `x` that belongs to each."""
        blocks = list(self.blocks) if type(self.blocks) is tuple and isinstance(x, list) else self.blocks
        structure = jax.tree.structure(blocks, is_leaf=_is_set)
        try:
            return structure, structure.flatten_up_to(x)
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"a point that does not begin like the product {self!r}: {str(error).rstrip('.')}",
                "a tuple or list with one entry for each block, or a dict with the same keys",
                "give every part of the point a set, Reals() for a part without bounds",
            ) from None

    def _each(self, fn: Callable[..., PyTree], *points: PyTree) -> PyTree:
        structure, _ = self._split(points[0])
        parts = zip(*(self._split(point)[1] for point in points), strict=True)
        sets = jax.tree.leaves(self.blocks, is_leaf=_is_set)
        return structure.unflatten([fn(block, *part) for block, part in zip(sets, parts, strict=True)])

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        one, two, three = (np.zeros(n, np.float32) for n in (1, 2, 3))
        return (
            (cls(Ball(1.5), Reals()), (three, two)),
            (cls(Box(-1.0, 1.0), Simplex(), Ball(0.5, center=2.0)), [two, three, {"deep": one}]),
            (
                cls({"p": Simplex(), "rest": cls(a=Reals(), b=Box(0.0, np.inf))}),
                {"p": three, "rest": {"a": two, "b": one}},
            ),
        )

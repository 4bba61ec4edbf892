"""All of space: X = R^n, T_X(x) = R^n."""

import numpy as np
from jaxtyping import PyTree

from .arrays import size
from .convex_set import ConvexSet, TangentCone


class Reals(ConvexSet):
    """All of space; every projection is the identity."""

    def project(self, x: PyTree) -> PyTree:
        return x

    def project_tangent(self, x: PyTree, v: PyTree) -> PyTree:
        return v

    def project_face(self, x: PyTree, v: PyTree) -> PyTree:
        return v

    def tangent_cone(self, x: PyTree) -> TangentCone:
        return TangentCone.whole(size(x))

    def check_fit(self, x: PyTree) -> None:
        pass

    @classmethod
    def examples(cls) -> tuple[tuple[ConvexSet, PyTree], ...]:
        return ((cls(), {"w": np.zeros((2, 2), np.float32), "b": np.zeros((), np.float32)}),)

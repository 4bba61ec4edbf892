"""Closed convex sets X, one per file: projection onto X, onto its tangent cones and onto their linear parts.

To add a set, add a file with one subclass of `ConvexSet`: it is a public name of this package, and its `examples` take it
through the conformance suite.
"""

from typing import TYPE_CHECKING

from ..registry import exported as _exported
from .affine import Affine as Affine
from .ball import Ball as Ball
from .box import Box as Box
from .convex_set import ConvexSet as ConvexSet, TangentCone as TangentCone
from .half_space import HalfSpace as HalfSpace
from .non_negative import NonNegative as NonNegative
from .product import Product as Product
from .projected import Projected as Projected
from .reals import Reals as Reals
from .simplex import Simplex as Simplex

if not TYPE_CHECKING:
    __getattr__, __dir__ = _exported(__name__, ConvexSet)

"""Conjugate gradients in a ball, until enough, negative curvature, or the boundary; on the host.

    min g.d + d'Hd/2  in  |d| <= R                       (Steihaug 1983)

A direction p with p'Hp <= 0 is followed to the boundary, and so is one that would leave the ball.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Array = np.ndarray
NEGATIVE = 1e-12  # of the largest curvature seen: below it a curvature counts as none


class Step(NamedTuple):
    """A step d with H d, whether it ends on the boundary, whether negative curvature was met, and the largest curvature seen."""

    d: Array
    product: Array
    boundary: bool
    negative: bool
    top: float


def truncated_cg(product: Callable[[Array], Array], g: Array, radius: float, enough: float, cap: int) -> Step:
    """CG from zero with at most `cap` products."""
    d, image, r = np.zeros_like(g), np.zeros_like(g), g.copy()
    p, rr, top = -r, float(g @ g), 0.0
    for _ in range(cap):
        if np.sqrt(rr) <= enough:
            break
        along = product(p)
        curvature, length = float(p @ along), float(p @ p)
        top = max(top, abs(curvature) / max(length, 1e-300))
        negative = curvature <= NEGATIVE * top * length
        share = 0.0 if negative else rr / curvature
        if negative or np.linalg.norm(d + share * p) >= radius:
            share = to_boundary(d, p, radius)
            return Step(d + share * p, image + share * along, True, negative, top)
        d, image, r = d + share * p, image + share * along, r + share * along
        before, rr = rr, float(r @ r)
        p = -r + rr / max(before, 1e-300) * p
    return Step(d, image, False, False, top)


def to_boundary(d: Array, p: Array, radius: float) -> float:
    """The positive root of |d + t p| = radius."""
    pp, dp = max(float(p @ p), 1e-300), float(d @ p)
    gap = max(radius**2 - float(d @ d), 0.0)
    root = np.sqrt(dp**2 + pp * gap)
    return gap / max(dp + root, 1e-300) if dp > 0 else (root - dp) / pp

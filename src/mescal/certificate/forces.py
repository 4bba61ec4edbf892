"""What pushes at a point: constraints, bounds and other boundaries of X, and what of them is held."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Face(NamedTuple):
    """What is held of the constraints, of the bounds and of the other boundaries of X; `loose` where more may have to be."""

    rows: np.ndarray
    bounds: np.ndarray
    boundaries: np.ndarray
    loose: bool = False


class Held(NamedTuple):
    """The same of all rows together, boundaries and constraints."""

    rows: np.ndarray
    bounds: np.ndarray
    loose: bool = False


def same_faces(some: Sequence[Face], others: Sequence[Face]) -> bool:
    """Whether the same is held on the faces of two lists."""
    return len(some) == len(others) and all(
        all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        for one, other in zip(some, others, strict=True)
    )


@dataclass(frozen=True)
class Forces:
    """What pushes: `rows` J_j with multipliers lam_j and `bounds`, signed by coordinate, zero where they do not push; beside rows
    that are held `always`, on coordinates that are not `fixed`. Of rows those that are `active` could push as well, of bounds
    those that are touched on a side, -1 or 1 in `sides`.

    Errors make a row push `more`, or less, and a bound by `more_of_a_bound`; what is left of a row beyond others is told from
    nothing where it is more than `least`. Rows that others leave as much as `whole` of count in full.
    """

    rows: np.ndarray
    multipliers: np.ndarray
    more: np.ndarray
    least: np.ndarray
    whole: np.ndarray
    active: np.ndarray
    bounds: np.ndarray
    sides: np.ndarray
    more_of_a_bound: float
    always: np.ndarray
    fixed: np.ndarray

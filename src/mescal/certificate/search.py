"""A direction of a cone with small curvature: an upper bound on ``min d'Hd``, ``|d| = 1``, ``d in K``.

Power steps ``d <- P_K((shift - H) d)`` at unit length, which never increase the curvature when ``shift >= lambda_max``.
Then, for the best few, the smallest eigenvector on the span of the face that was reached, projected onto the cone.
"""

from collections.abc import Callable

import numpy as np

from .budget import ENDLESS, Budget

Array = np.ndarray


def onto_cone(project: Callable[[Array], Array], vector: Array) -> Array | None:
    """`vector` projected onto the cone, at unit length; None when nothing is left of it."""
    point = project(vector)
    length = float(np.linalg.norm(point))
    if not length > 1e-12 * float(np.linalg.norm(vector)):
        return None
    again = project(point / length)
    length = float(np.linalg.norm(again))
    return again / length if length > 0.99 else None


def search(
    apply: Callable[[Array], Array],
    project: Callable[[Array], Array],
    face_vector: Callable[[Array], Array | None],
    shift: float,
    starts: list[Array],
    *,
    target: float = -np.inf,
    leaders: int = 3,
    power_steps: int = 12,
    rounds: int = 6,
    budget: Budget = ENDLESS,
) -> tuple[float, Array] | None:
    """The smallest curvature found and its direction; None when every start projects to zero.

    **Arguments:**

    - `apply`: maps an (n, k) block to H times it; `project`: the projection onto K.
    - `face_vector`: maps a point of K to a smallest eigenvector on the span of its face.
    - `starts`: each is tried with both signs; the best 4 `leaders` of them are pursued.
    - `target`: a curvature below which nothing can be or need be found.
    - `budget`: when to come to an end with the best so far.
    """
    points = [p for v in starts for sign in (1.0, -1.0) if (p := onto_cone(project, sign * v)) is not None]
    if not points:
        return None
    block = np.stack(points, axis=1)
    values = _curvatures(apply, block)
    if float(values.min()) > target and not budget.over:
        first = np.argsort(values, kind="stable")[: 4 * leaders]
        block, values = _power(apply, project, shift, block[:, first], power_steps, budget)
    for _ in range(rounds):
        before = float(values.min())
        if before <= target or budget.over:
            break
        kept = np.argsort(values, kind="stable")[:leaders]
        vectors = [vector for j in kept if (vector := face_vector(block[:, j])) is not None]
        jumps = [p for v in vectors for sign in (1.0, -1.0) if (p := onto_cone(project, sign * v)) is not None]
        block = np.stack([*block[:, kept].T, *jumps], axis=1)
        block, values = _power(apply, project, shift, block, power_steps, budget)
        if float(values.min()) > before - 1e-10 * abs(before):
            break
    best = int(np.argmin(values))
    return float(values[best]), block[:, best]


def _curvatures(apply: Callable[[Array], Array], block: Array) -> Array:
    return np.einsum("ij,ij->j", block, apply(block))


def _power(apply, project, shift: float, block: Array, steps: int, budget: Budget) -> tuple[Array, Array]:
    for _ in range(steps):
        if budget.over:
            break
        ahead = shift * block - apply(block)
        moved = [onto_cone(project, column) for column in ahead.T]
        block = np.stack([old if new is None else new for old, new in zip(block.T, moved, strict=True)], axis=1)
    return block, _curvatures(apply, block)

"""The lowest eigenpair of a symmetric matrix on a subspace: dense, or by Lanczos on its products, on the host.

Lanczos ends as `curvature.lanczos` says, or, where a `gap` below the tolerance is asked for, once it is proved that no
eigenvalue is below ritz - gap, but for the failure probability: |p_k(ritz - gap)| > 1/delta, by the pivots of T - (ritz - gap).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from ..curvature.cone_search import Eigenpair
from ..curvature.critical import Subspace
from ..curvature.lanczos import BREAKDOWN, LOWEST, NOISE as NOISE, RESIDUAL, ROUND

Array = np.ndarray


class Lowest(NamedTuple):
    """The smallest Ritz pair; `vector` is None where it is proved that no eigenvalue is below -3t/4."""

    direction: Array
    curvature: float
    vector: Array | None


def dense(matrix: Array, space: Subspace) -> Eigenpair:
    """The lowest eigenpair of a matrix on a subspace."""
    basis = space.basis()
    if basis.shape[1] == 0:
        return Eigenpair(None, 0.0)
    values, vectors = scipy.linalg.eigh(basis.T @ matrix @ basis, subset_by_index=(0, 0))
    return Eigenpair(basis @ vectors[:, 0], float(values[0]))


def lowest(
    product: Callable[[Array], Array],
    space: Subspace,
    tolerance: float,
    gap: float,
    steps: int,
    failure: float,
    seed: tuple[int, ...],
) -> Lowest:
    """Lanczos on a subspace, from a random start of it."""
    start = space.project(np.random.default_rng([*seed, 0]).standard_normal(space.free.size))
    length = float(np.linalg.norm(start))
    if length == 0:
        return Lowest(start, 0.0, None)
    needed = -math.log(failure * math.sqrt(math.pi / (2 * start.size)))
    basis, diagonal, links = [start / length], [], []
    certainty, pivot, below, scale, most = 0.0, 1.0, False, 0.0, min(steps, space.dimension)
    while True:
        image = space.project(product(basis[-1]))
        alpha = float(basis[-1] @ image)
        known = np.asarray(basis)
        for _ in range(2):  # twice is enough
            image = image - (known @ image) @ known
        beta = float(np.linalg.norm(image))
        scale = max(scale, abs(alpha) + beta)
        beta = beta if beta > BREAKDOWN * np.finfo(np.float32).eps * scale else 0.0
        pivot = alpha + LOWEST * tolerance - (links[-1] ** 2 / pivot if links else 0.0)
        below = below or not pivot > 0
        pivot = 1.0 if below else pivot
        diagonal.append(alpha)
        links.append(beta)
        certainty += math.log(pivot) - (math.log(beta) if beta > 0 else -math.inf)
        none = not below and certainty > needed
        over = none or len(diagonal) >= most or beta == 0
        if over or (below and (len(diagonal) % ROUND == 0 or beta <= RESIDUAL * tolerance)):
            values, vectors = scipy.linalg.eigh_tridiagonal(np.asarray(diagonal), np.asarray(links[:-1]))
            y = np.asarray(vectors)[:, 0]
            ritz, residual = float(values[0]), beta * abs(float(y[-1]))
            enough = residual <= RESIDUAL * max(tolerance, -ritz)
            if gap < tolerance:
                enough = _proved(diagonal, links, ritz - gap) > needed
            if over or enough:
                direction = y @ known
                direction = direction / np.linalg.norm(direction)
                return Lowest(direction, ritz, None if none else direction)
        basis.append(image / beta)


def _proved(diagonal: list[float], links: list[float], shift: float) -> float:
    """ln |p_k(shift)| for a shift below all Ritz values, by the pivots of LDL' = T - shift."""
    pivot, total = 1.0, 0.0
    for j, alpha in enumerate(diagonal):
        pivot = alpha - shift - (links[j - 1] ** 2 / pivot if j else 0.0)
        if not pivot > 0 or not links[j] > 0:
            return math.inf if pivot > 0 else -math.inf
        total += math.log(pivot) - math.log(links[j])
    return total

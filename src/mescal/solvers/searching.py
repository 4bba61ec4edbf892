"""Negative curvature at a stationary point, from the host: by the Hessian itself, by Lanczos on products, or by a given search.

On finite populations the Hessian of L on the face of z is exact, in float64: formed where it is small, else by its products. On
streams the sub-sampled Lanczos of `curvature.lanczos` runs here around one compiled product; other searches are compiled
whole, when one is asked for.
"""

import math
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy

from ..compiling import compiled
from ..curvature import Lanczos, Search
from ..curvature.base import ENOUGH, GROUPS, GROWTH, SURE
from ..curvature.lanczos import BREAKDOWN, LOWEST, NOISE, RESIDUAL, ROUND
from ..oracle import Lagrangian, Tally, Work
from ..oracle.draw import as_key, words
from ..oracle.subproblem import Array, Subproblem

DENSE = 1500  # parameters up to which a Hessian is formed, as the judge does


class Found(NamedTuple):
    """A unit direction of negative curvature, or None; and the smallest curvature that was seen."""

    direction: Array | None
    curvature: float


def search_at(
    search: Search, sub: Subproblem, at: Any, tolerance: float, key: tuple[int, ...], batch: int
) -> tuple[Found, Tally]:
    """Search on the face of a point that is known as `at` (z, multipliers, jacobian)."""
    if sub.looks is not None and at.jacobian is not None and isinstance(search, Lanczos):
        return _exact_search(sub, at, tolerance, key)
    if isinstance(search, Lanczos) and sub.looks is None:
        return _sampled_search(search, sub, at, tolerance, key, batch)
    found, work = _compiled_search(
        search, sub.lagrangian, at.z, np.asarray(tolerance, at.z.dtype), words(*key), np.int32(batch)
    )
    direction = np.asarray(found.direction, np.float64) if bool(found.negative) else None
    return Found(direction, float(found.curvature)), work.tally()


def hessian_on_face(sub: Subproblem, at: Any, hessian: Array) -> Array:
    """P (H + al J'J) P in z, for the Hessian H of the weighted functions in x and P the projection onto the face of z."""
    z, size = at.z, sub.parameters
    joint = np.zeros((z.size, z.size))
    joint[:size, :size] = hessian
    joint += sub.penalty * at.jacobian.T @ at.jacobian
    inside = np.asarray([sub.project_face(z.astype(np.float64), row) for row in joint])
    return np.asarray([sub.project_face(z.astype(np.float64), row) for row in inside.T])


def _exact_search(sub: Subproblem, at: Any, tolerance: float, key: tuple[int, ...]) -> tuple[Found, Tally]:
    assert sub.looks is not None
    before, size = sub.looks.tally, sub.parameters
    factor = sub.factor
    x, weight = at.z[:size].astype(np.float64), at.multipliers * sub.scale / factor
    if size <= DENSE:
        matrix = hessian_on_face(sub, at, factor * sub.looks.hessian(x, weight))
        values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(0, 0))
        lowest, direction = float(values[0]), vectors[:, 0]
    else:

        def product(v: Array) -> Array:
            inside = sub.project_face(at.z, v)
            out = np.zeros_like(inside)
            out[:size] = factor * sub.looks.hessian_times(x, weight, inside[:size])  # pyright: ignore[reportOptionalMemberAccess]
            out += sub.penalty * (at.jacobian @ inside) @ at.jacobian
            return sub.project_face(at.z, out)

        lowest, direction, _ = _lanczos(product, _start(sub, at.z, key), tolerance, 40, 0.01)
    found = Found(direction, lowest) if lowest <= -ENOUGH * tolerance else Found(None, lowest)
    return found, sub.looks.tally - before


def _sampled_search(
    search: Lanczos, sub: Subproblem, at: Any, tolerance: float, key: tuple[int, ...], batch: int
) -> tuple[Found, Tally]:
    """Batches growing from the first until fresh samples agree; see `curvature.lanczos`.

    The Hessian is that of f + w.c on the batch, with the weights w = lam + al c of the reset, and al J'J of the reset: what of
    it is estimated there is known better than a batch of products could.
    """
    z, jacobian, weight = at.z, np.asarray(at.jacobian), np.asarray(at.multipliers, at.z.dtype)
    start, n, work, attempt = _start(sub, z, key), min(search.first_batch, batch), Tally(), 0
    while True:
        spent: list[Tally] = []

        def product(v: Array, sample: int = 0, n: int = n, attempt: int = attempt, spent: list[Tally] = spent) -> Array:
            given = words(*key, attempt, 1 + sample)
            inside = sub.project_face(z, v)
            found, work = _hvp(sub.lagrangian, z, inside.astype(z.dtype), weight, given, np.int32(n))
            spent.append(work.tally())
            return sub.project_face(z, np.asarray(found, np.float64) + sub.penalty * (jacobian @ inside) @ jacobian)

        ritz, direction, none = _lanczos(product, start, tolerance, min(search.steps, z.size), search.failure)
        candidate = not none and ritz <= -ENOUGH * tolerance
        few = max(n // GROUPS, 2)
        curvatures = [float(direction @ product(direction, 1 + group, few)) for group in range(GROUPS)]
        work = sum(spent, work)
        mean, error = float(np.mean(curvatures)), float(np.std(curvatures, ddof=1) / math.sqrt(GROUPS))
        last = n >= batch
        negative = candidate and (mean + SURE * error <= -tolerance / 2 or (last and mean <= -ENOUGH * tolerance))
        if negative:
            return Found(direction, mean), work
        if last or (not candidate and SURE * error <= NOISE * tolerance):
            return Found(None, mean if candidate else ritz), work
        wanted = max(GROWTH * n, np.nan_to_num(n * (SURE * error / (NOISE * tolerance)) ** 2, nan=0.0))
        n, attempt = int(min(wanted, batch)), attempt + 1


def _lanczos(product, start: Array, tolerance: float, steps: int, failure: float) -> tuple[float, Array, bool]:
    """The smallest Ritz pair, and whether it is proved that no eigenvalue is below -3t/4 (but for `failure`)."""
    needed = -math.log(failure * math.sqrt(math.pi / (2 * start.size)))
    basis, diagonal, links = [start], [], []
    certainty, pivot, below, scale = 0.0, 1.0, False, 0.0
    if not np.any(start):
        return 0.0, start, True
    while True:
        image = product(basis[-1])
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
        over = none or len(diagonal) == steps or beta == 0
        if over or (below and (len(diagonal) % ROUND == 0 or beta <= RESIDUAL * tolerance)):
            values, vectors = scipy.linalg.eigh_tridiagonal(np.asarray(diagonal), np.asarray(links[:-1]))
            y = np.asarray(vectors)[:, 0]
            ritz, residual = float(values[0]), beta * abs(float(y[-1]))
            if over or residual <= RESIDUAL * max(tolerance, -ritz):
                direction = y @ known
                return ritz, direction / np.linalg.norm(direction), none
        basis.append(image / beta)


def _start(sub: Subproblem, z: Array, key: tuple[int, ...]) -> Array:
    """A unit vector, uniform on the sphere of the face of z; zero where the face is a point."""
    v = sub.project_face(z, np.random.default_rng([*key, 0]).standard_normal(z.size))
    length = float(np.linalg.norm(v))
    return v / length if length > 0 else v


@compiled
def _hvp(oracle: Lagrangian, z: jax.Array, v: jax.Array, weight: jax.Array, given: jax.Array, n: jax.Array):
    return oracle.weighted_hvp(z, v, weight, as_key(given), n)


@compiled
def _compiled_search(search: Search, oracle: Lagrangian, z, tolerance, given, batch) -> tuple[Any, Work]:
    return search(oracle, z, tolerance, as_key(given), batch)

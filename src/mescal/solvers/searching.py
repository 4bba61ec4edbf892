"""Negative curvature at a stationary point, from the host: on the critical cone of X and the slacks, by `ConeSearch`.

On finite populations the Hessian of L is exact, in float64: formed where it is small, else by its products. On streams the
sub-sampled Lanczos of `curvature.lanczos` runs here around one compiled product; other searches are compiled whole, within
the subspaces that `ConeSearch` asks for.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ..compiling import compiled
from ..curvature import ConeSearch, CriticalCone, Lanczos, Search
from ..curvature.cone_search import Eigen, Eigenpair, Sought
from ..curvature.contract import ENOUGH, GROUPS, GROWTH, SURE, Within
from ..curvature.critical import Subspace
from ..oracle import Lagrangian, Tally, Work
from ..oracle.draw import as_key, words
from ..oracle.subproblem import Array, Subproblem
from ..sets.convex_set import TangentCone
from .lowest import NOISE, dense, lowest

MANY_ROWS = (
    8  # weakly active rows, beyond which a direction is looked for here before the judge proves that there is none
)
DENSE = 1500  # parameters up to which a Hessian is formed, as the judge does
FEW = 64  # variables up to which the Hessian of a batch is formed where several faces are looked at
EXACT_STEPS, EXACT_FAILURE = 40, 0.01  # of Lanczos on exact products


class Found(NamedTuple):
    """A unit direction of negative curvature, or None; and the smallest curvature that was seen."""

    direction: Array | None
    curvature: float


def search_at(
    search: Search,
    sub: Subproblem,
    at: Any,
    tolerance: float,
    key: tuple[int, ...],
    batch: int,
    weak: float = 0.0,
    cone: CriticalCone | None = None,
) -> tuple[Found, Tally]:
    """Search at a point that is known as `at` (z, gradient, multipliers, jacobian); rows with multipliers <= `weak` are weak.

    On another cone than that of X and the slacks, where one is given.
    """
    cone = critical_cone(sub, at, weak) if cone is None else cone
    if sub.looks is not None and at.jacobian is not None and isinstance(search, Lanczos):
        return _exact_search(sub, at, cone, tolerance, key)
    if isinstance(search, Lanczos) and sub.looks is None:
        return _sampled_search(search, sub, at, cone, tolerance, key, batch)
    return _compiled_searches(search, sub, at, cone, tolerance, key, batch)


def critical_cone(sub: Subproblem, at: Any, weak: float) -> CriticalCone:
    """The critical cone of X x {s >= 0} at a point; all of space in place of X where its tangent cones are not known."""
    z, size = at.z, sub.parameters
    shift = np.zeros(len(sub.multipliers))
    if at.jacobian is not None:
        shift = np.asarray(at.multipliers) - sub.multipliers - sub.penalty * np.asarray(at.constraint)
    slope = np.asarray(at.gradient, np.float64) + (shift @ np.asarray(at.jacobian) if shift.any() else 0.0)
    tangent = sub.form.domain.tangent_cone(sub.form.program.parameters.arrays(np.asarray(z[:size])))
    normal = -slope[:size] - sub.project_tangent(z, -slope)[:size]
    at_zero = np.asarray(z[size:]) <= 0
    return CriticalCone.of(tangent or TangentCone.whole(size), normal, weak, at_zero & (slope[size:] > weak), at_zero)


def on_cone(
    eigen: Eigen, cone: CriticalCone, tolerance: float, seed: int, product: Callable[[Array], Array] | None = None
) -> Sought:
    """`ConeSearch`; with one sign condition, which is void, or none, the contract of a plain search."""
    if cone.weak > 1:
        return ConeSearch()(eigen, cone, tolerance, product, seed)
    vector, curvature = eigen(cone.subspace(), tolerance, EXACT_FAILURE, 1)
    if vector is None or curvature > -ENOUGH * tolerance:
        return Sought(None, curvature, 1, True)
    return Sought(vector if cone.contains(vector) else -vector, curvature, 1, True)


def _exact_search(
    sub: Subproblem, at: Any, cone: CriticalCone, tolerance: float, key: tuple[int, ...]
) -> tuple[Found, Tally]:
    assert sub.looks is not None
    looks, before, size, factor = sub.looks, sub.looks.tally, sub.parameters, sub.factor
    x, weight = at.z[:size].astype(np.float64), at.multipliers * sub.scale / factor
    if size <= DENSE:
        matrix = np.diag(cone.bending) + sub.penalty * at.jacobian.T @ at.jacobian
        matrix[:size, :size] += factor * looks.hessian(x, weight)
        found = on_cone(lambda space, *_: dense(matrix, space), cone, tolerance, key[0], lambda v: matrix @ v)
    else:

        def product(v: Array) -> Array:
            out = cone.bending * v + sub.penalty * (at.jacobian @ v) @ at.jacobian
            out[:size] += factor * looks.hessian_times(x, weight, v[:size])
            return out

        def eigen(space: Subspace, gap: float, failure: float, node: int) -> Eigenpair:
            pair = lowest(product, space, tolerance, gap, EXACT_STEPS, failure, (*key, node))
            return Eigenpair(pair.vector, pair.curvature)

        found = on_cone(eigen, cone, tolerance, key[0], product)
    return Found(found.direction, found.curvature), looks.tally - before


def _sampled_search(
    search: Lanczos, sub: Subproblem, at: Any, cone: CriticalCone, tolerance: float, key: tuple[int, ...], batch: int
) -> tuple[Found, Tally]:
    """Batches growing from the first until fresh samples agree; see `curvature.lanczos`.

    The Hessian is that of f + w.c on the batch, with the weights w = lam + al c of the reset, and al J'J of the reset: what of
    it is estimated there is known better than a batch of products could. One batch serves all faces of the cone.
    """
    z, jacobian, weight = at.z, np.asarray(at.jacobian), np.asarray(at.multipliers, at.z.dtype)
    span, n, work, attempt = cone.subspace(), min(search.first_batch, batch), Tally(), 0
    while True:
        spent: list[Tally] = []
        met: list[Array] = []

        def product(v: Array, sample: int = 0, n: int = n, attempt: int = attempt, spent: list[Tally] = spent) -> Array:
            given = words(*key, attempt, 1 + sample)
            found, work = _hvp(sub.lagrangian, z, v.astype(z.dtype), weight, given, np.int32(n))
            spent.append(work.tally())
            return np.asarray(found, np.float64) + cone.bending * v + sub.penalty * (jacobian @ v) @ jacobian

        def eigen(
            space: Subspace, gap: float, failure: float, node: int, product: Any = product, met: list[Array] = met
        ) -> Eigenpair:
            pair = lowest(product, space, tolerance, gap, search.steps, failure, (*key, node))
            met.append(pair.direction)
            return Eigenpair(pair.vector, pair.curvature)

        solve: Eigen = eigen
        if cone.weak > 1 and span.dimension <= FEW:
            basis = span.basis()
            matrix = basis @ np.stack([basis.T @ product(column) for column in basis.T]) @ basis.T
            solve = lambda space, *_, matrix=matrix: dense((matrix + matrix.T) / 2, space)
        found = on_cone(solve, cone, tolerance, key[0], product)
        direction = found.direction if found.direction is not None else met[0] if met else _start(span, key)
        few = max(n // GROUPS, 2)
        curvatures = [float(direction @ product(direction, 1 + group, few)) for group in range(GROUPS)]
        work = sum(spent, work)
        mean, error = float(np.mean(curvatures)), float(np.std(curvatures, ddof=1) / math.sqrt(GROUPS))
        last, candidate = n >= batch, found.direction is not None
        if candidate and (mean + SURE * error <= -tolerance / 2 or (last and mean <= -ENOUGH * tolerance)):
            return Found(direction, mean), work
        if last or (not candidate and SURE * error <= NOISE * tolerance):
            return Found(None, mean if candidate else found.curvature), work
        wanted = max(GROWTH * n, np.nan_to_num(n * (SURE * error / (NOISE * tolerance)) ** 2, nan=0.0))
        n, attempt = int(min(wanted, batch)), attempt + 1


def _compiled_searches(
    search: Search, sub: Subproblem, at: Any, cone: CriticalCone, tolerance: float, key: tuple[int, ...], batch: int
) -> tuple[Found, Tally]:
    """Oja's method, Neon2, or another search, within the subspaces that the cone asks for."""
    spent: list[Tally] = []
    dtype, most = at.z.dtype, len(cone.equal) + len(cone.rows)

    def eigen(space: Subspace, gap: float, failure: float, node: int) -> Eigenpair:
        oracle = Within.of(sub.lagrangian, space, cone.bending, most, dtype)
        asked = search.finer(gap / tolerance, failure) if cone.weak > 1 else search
        found, work = _compiled_search(
            asked, oracle, at.z, np.asarray(tolerance, dtype), words(*key, node), np.int32(batch)
        )
        spent.append(work.tally())
        vector = space.project(np.asarray(found.direction, np.float64)) if bool(found.negative) else None
        return Eigenpair(None if vector is None else vector / np.linalg.norm(vector), float(found.curvature))

    found = on_cone(eigen, cone, tolerance, key[0])
    return Found(found.direction, found.curvature), sum(spent, Tally())


def _start(space: Subspace, key: tuple[int, ...]) -> Array:
    """A unit vector, uniform on the sphere of a subspace; zero where that is a point."""
    v = space.project(np.random.default_rng([*key, 0]).standard_normal(space.free.size))
    length = float(np.linalg.norm(v))
    return v / length if length > 0 else v


@compiled
def _hvp(oracle: Lagrangian, z: jax.Array, v: jax.Array, weight: jax.Array, given: jax.Array, n: jax.Array):
    return oracle.weighted_hvp(z, v, weight, as_key(given), n)


@compiled
def _compiled_search(search: Search, oracle: Any, z, tolerance, given, batch) -> tuple[Any, Work]:
    return search(oracle, z, tolerance, as_key(given), batch)

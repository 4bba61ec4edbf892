"""Face branch and bound for ``min y'My`` over ``|y| = 1``, ``G y <= 0``, M dense (Kaplan's criterion).

A minimiser lies in the relative interior of a face of the cone and is a smallest eigenvector on the span of that face.
The smallest eigenvalue grows from a face to its subfaces, so the smallest one among the open faces bounds from below.

Deviations from Kaplan's enumeration:

1. A face is closed by the curvature of its eigenvectors projected onto the cone, not by the signs of their entries: a
   point at distance t from an eigenvector costs O(t^2), so no tolerance on signs is needed.
2. Multiple eigenvalues: if eigenspace and cone meet, then for a random y of the eigenspace y or -y has a nonzero
   projection onto their intersection, which nonnegative least squares computes.
3. Only rows with ``g_i u != 0`` are branched on, u being one eigenvector of the face: were all active rows of a
   minimiser orthogonal to u, it could move along u both ways, and would descend.
4. When the first faces do not decide, the lower end also uses ``y'My >= lambda_min(M - G'NG)`` for N >= 0 entrywise: on
   the cone ``(Gy)'N(Gy) >= 0``. Maximised over N, it is far above the open faces where sign conditions are many.
"""

import heapq
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from .budget import ENDLESS, Budget
from .eigen import lowest_eigenpairs, smallest_eigenspace
from .rows import RANK_TOLERANCE, NonnegativeLeastSquares, compressed, null_basis, unit_rows
from .search import onto_cone, search

Array = np.ndarray

FIRST_FACES = 30  # faces before the copositive bound is tried: more than all faces of four rows
FIRST_LARGE = 8  # the same where an eigenvalue problem takes long
CLOSED = 1e-8  # relative length of an interval after which branching stops
SMALL = 200  # dimension up to which an eigenvalue problem takes milliseconds
SUBSPACE = 100  # lowest eigenvectors that span the subspace on which a larger copositive bound is optimised
RANDOM_STARTS = 20  # of the search for an upper end


@dataclass(order=True)
class Face:
    """A face: its smallest eigenvalue, the rows that vanish on it, and the eigenvectors of that value."""

    value: float
    active: tuple[int, ...]
    vectors: Array = field(compare=False)


class Faces:
    """Best-first search over the faces of ``{y : rows y <= 0}``; `best` and `vector` are the best point so far."""

    def __init__(self, matrix: Array, rows: Array, rounding: float, seed: int, budget: Budget = ENDLESS):
        self.matrix, self.rows, self.rounding, self.budget = matrix, rows, rounding, budget
        self.rng = np.random.default_rng(seed)
        self.span, self.short = compressed(rows)
        self.dual = NonnegativeLeastSquares(self.short.T)
        self.best, self.vector = math.inf, None
        self.count = 0
        self.seen: set[tuple[int, ...]] = {()}
        self.heap = [self._evaluate(matrix, np.eye(len(matrix)), ())]

    def minimise(self, max_faces: int, thorough: bool = True) -> tuple[float, str]:
        """(a lower bound on the minimum, how it was found); the first faces alone where it need not be `thorough`."""
        first = FIRST_FACES if len(self.matrix) <= SMALL else FIRST_LARGE
        open_value, floor, how = self._branch(min(first, max_faces)), -math.inf, ""
        if thorough and open_value < self.best - self.rounding and not self.budget.over:
            copositive = copositive_bound(self.matrix, self.rows, self.best, self.budget.share(0.5))
            floor = copositive.bound
            enough = CLOSED * max(abs(self.best), float(np.abs(self.matrix).max()))
            starts = [*copositive.vectors.T, *(face.vectors[:, 0] for face in heapq.nsmallest(10, self.heap))]
            self._search(starts, max(floor, open_value) + (self.rounding if len(self.matrix) <= SMALL else enough))
            if max(floor, open_value) < self.best - enough:
                open_value = self._branch(max_faces)
            how = ", search in the cone and copositive bound"
        lower = min(self.best, max(open_value, floor))
        return lower, f"face branch and bound, {self.count} face{'s' if self.count > 1 else ''}{how}"

    def project(self, y: Array) -> Array:
        """Projection onto the cone."""
        return y - self.span @ (self.dual.solve(self.span.T @ y) @ self.short)

    def offer(self, vector: Array) -> None:
        """Keeps `vector`, projected onto the cone, if its curvature is the smallest so far."""
        point = onto_cone(self.project, vector)
        if point is None or float((self.rows @ point).max()) > 1e-9:
            return
        value = float(point @ self.matrix @ point)
        if value < self.best:
            self.best, self.vector = value, point

    def _branch(self, max_faces: int) -> float:
        """Branches until the cap; the smallest value that is still open, +inf when no face is."""
        while self.heap and self.heap[0].value < self.best - self.rounding:
            face = heapq.heappop(self.heap)
            for child in self._children(face, max_faces):
                if child is None:
                    heapq.heappush(self.heap, face)
                    return face.value
                if child.value < self.best - self.rounding:
                    heapq.heappush(self.heap, child)
        return self.heap[0].value if self.heap else math.inf

    def _evaluate(self, matrix: Array, lift: Array, active: tuple[int, ...]) -> Face:
        self.count += 1
        value, space = smallest_eigenspace(matrix, self.rounding)
        vectors = lift @ space
        candidates = [vectors[:, 0], -vectors[:, 0]]
        if vectors.shape[1] > 1:
            inside = self.rows @ vectors
            meeting = NonnegativeLeastSquares(unit_rows(inside, np.ones(len(inside)), RANK_TOLERANCE).T)
            probes = self.rng.standard_normal((2, vectors.shape[1]))
            for probe in (*probes, *-probes):
                rest = meeting.residual(probe)
                if np.linalg.norm(rest) > 1e-9 * np.linalg.norm(probe):
                    candidates.append(vectors @ rest)
        for candidate in candidates:
            self.offer(candidate)
        return Face(value, active, vectors)

    def _children(self, face: Face, max_faces: int):
        """The faces with one more row active; None in place of the first one past the cap.

        The basis of a subface is that of the face, reflected so that the new row becomes the first axis, without it.
        """
        basis = null_basis(self.rows[list(face.active)])
        if basis.shape[1] <= 1:
            return
        matrix = basis.T @ self.matrix @ basis
        inner = self.rows @ basis
        slope = np.abs(self.rows @ face.vectors[:, 0])
        for i in range(len(self.rows)):
            if i in face.active or slope[i] <= 1e-14:
                continue
            normal = inner[i] / np.linalg.norm(inner[i])
            rest = inner - np.outer(inner @ normal, normal)
            active = tuple(np.flatnonzero(np.linalg.norm(rest, axis=1) <= RANK_TOLERANCE).tolist())
            if active in self.seen:
                continue
            if self.count >= max_faces or self.budget.over:
                yield None
                return
            self.seen.add(active)
            mirror = normal.copy()
            mirror[0] += math.copysign(1.0, normal[0])
            mirror *= math.sqrt(2) / np.linalg.norm(mirror)
            smaller = matrix - np.outer(mirror, mirror @ matrix)
            smaller = (smaller - np.outer(smaller @ mirror, mirror))[1:, 1:]
            lift = (basis - np.outer(basis @ mirror, mirror))[:, 1:]
            yield self._evaluate(0.5 * (smaller + smaller.T), lift, active)

    def _search(self, starts: list[Array], target: float) -> None:
        size = len(self.matrix)
        leaders = 8 if size <= SMALL else 3
        largest = float(scipy.linalg.eigh(self.matrix, eigvals_only=True, subset_by_index=(size - 1, size - 1))[0])
        if self.budget.over:
            return
        starts = [*starts, *self.rng.standard_normal((RANDOM_STARTS, size))]
        if self.vector is not None:
            starts.append(self.vector)
        found = search(
            lambda y: self.matrix @ y,
            self.project,
            self._face_vector,
            largest,
            starts,
            target=target,
            leaders=leaders,
            budget=self.budget.share(0.5),
        )
        if found is not None:
            self.offer(found[1])

    def _face_vector(self, point: Array) -> Array | None:
        basis = null_basis(self.rows[self.rows @ point >= -1e-9])
        if basis.shape[1] == 0:
            return None
        return basis @ smallest_eigenspace(basis.T @ self.matrix @ basis, 0.0)[1][:, 0]


@dataclass(frozen=True, eq=False)
class Copositive:
    """A lower bound ``lambda_min(M - G'NG)`` with its N, and the lowest eigenvectors of M - G'NG."""

    bound: float
    weights: Array
    vectors: Array


def copositive_bound(matrix: Array, rows: Array, reach: float, budget: Budget = ENDLESS) -> Copositive:
    """``max lambda_min(M - G'NG)`` over N >= 0 with zero diagonal, from below; `reach` bounds the maximum from above.

    A large M is replaced by its restriction to a subspace while N is optimised, and the subspace extended by the lowest
    eigenvectors of M - G'NG; the bound is that of the whole M. Where it is tight, a minimiser of the cone is among the
    combinations of the lowest eigenvectors.
    """
    if len(matrix) <= SMALL:
        weights = copositive_weights(matrix, rows, reach, budget=budget)
        return _bound_of(matrix, rows, weights)
    subspace = lowest_eigenpairs(matrix, SUBSPACE)[1]
    subspace = scipy.linalg.orth(np.concatenate([subspace, rows.T], axis=1))
    best = None
    for _ in range(4):
        small, inner = subspace.T @ matrix @ subspace, rows @ subspace
        weights = copositive_weights(small, inner, reach, budget=budget)
        on_subspace = _bound_of(small, inner, weights).bound
        found = _bound_of(matrix, rows, weights)
        if best is None or found.bound > best.bound:
            best = found
        if budget.over or found.bound >= on_subspace - CLOSED * max(abs(found.bound), float(np.abs(matrix).max())):
            break
        subspace = scipy.linalg.orth(np.concatenate([subspace, found.vectors], axis=1))
    assert best is not None
    return best


def _bound_of(matrix: Array, rows: Array, weights: Array) -> Copositive:
    shifted = matrix - rows.T @ weights @ rows
    count = min(10, len(matrix))
    values, vectors = lowest_eigenpairs(shifted, count)
    size = float(np.linalg.norm(matrix)) + float(np.linalg.norm(rows, 2)) ** 2 * float(np.linalg.norm(weights))
    return Copositive(float(values[0]) - 8 * len(matrix) * np.finfo(float).eps * size, weights, vectors)


def copositive_weights(
    matrix: Array, rows: Array, reach: float, evaluations: int = 100, budget: Budget = ENDLESS
) -> Array:
    """An N >= 0 with zero diagonal and large ``lambda_min(M - G'NG)``, by L-BFGS on a smoothed smallest eigenvalue.

    The smoothing, ``-width log sum exp(-lambda_i / width)``, is narrowed four times; each takes up to `evaluations`
    eigenvalue problems. The best one so far is as good a bound as it is, when the `budget` is over.
    """
    count = len(rows)
    pairs = np.triu_indices(count, 1)
    spectrum = scipy.linalg.eigvalsh(matrix)
    spread = max(min(reach, float(spectrum[-1])) - float(spectrum[0]), 1e-12 * float(np.abs(spectrum).max()), 1e-300)
    best = -math.inf, np.zeros((count, count))

    def objective(entries: Array, width: float) -> tuple[float, Array]:
        nonlocal best
        N = np.zeros((count, count))
        N[pairs] = entries
        N += N.T
        values, vectors = np.linalg.eigh(matrix - rows.T @ N @ rows)
        if float(values[0]) > best[0]:
            best = float(values[0]), N
        likely = np.exp((values[0] - values) / width)
        inner = rows @ vectors
        gradient = 2 * ((inner * (likely / likely.sum())) @ inner.T)[pairs]
        return float(width * np.log(likely.sum()) - values[0]), gradient

    def stop(intermediate_result: Any):
        if budget.over:
            raise StopIteration

    entries = np.zeros(len(pairs[0]))
    options = {"maxfun": evaluations, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-9}
    for width in (0.1, 0.01, 1e-3, 1e-4):
        entries = scipy.optimize.minimize(
            objective,
            entries,
            (width * spread,),
            jac=True,
            bounds=[(0, None)] * len(entries),
            options=options,
            callback=stop,
        ).x
        if budget.over:
            break
    return best[1]

"""Rows of linear conditions ``G y <= 0``: spans, null spaces, which rows matter, and projections onto their cone.

Ranks are decided on rows of unit length, so that the scaling of a constraint does not matter.

Nonnegative least squares, ``argmin |A mu - b|`` over ``mu >= 0``, is checked against its optimality conditions. The residual
``b - A mu`` is the projection of b onto the cone ``{y : A'y <= 0}``. Block principal pivoting (Portugal, Judice and Vicente; Kim
and Park) on the cached Gram matrix solves most cases in a few linear systems. Where it does not meet ``A'(b - A mu) <= 0``, with
equality where mu > 0, the active-set method of Lawson and Hanson takes over.

`scipy.optimize.nnls` is not used: since 1.15, and in 1.17.1 still, it can return a point that is not the minimiser, with a
residual norm that is not that of the point (scipy issue 25389), where b is orthogonal to columns up to rounding: projections of
points on a face are, and 277 of the projections in the tests of cones came back wrong, by up to five times |b|.
"""

import numpy as np
import scipy

Array = np.ndarray

RESTRICTION_TOLERANCE = 1e-10  # a row whose part on the free coordinates is a smaller fraction of it is zero there
RANK_TOLERANCE = 1e-10  # singular values of unit rows below this are rounding in the rows
ANGLE = 1e-3  # directions that errors of the rows may have turned further than this are taken for unknown
SAME_ROW = 1e-12  # distance of two unit rows that are one, and residual of a row implied by others
MINIMAL = 64  # up to this many rows, those implied by the others are looked for: one least-squares problem each
OPTIMALITY = 1e-13  # tolerated slope, in units of |b|, for unit columns


def unit_rows(rows: Array, reference: Array, tolerance: float) -> Array:
    """The rows longer than `tolerance` times their reference length, at unit length."""
    lengths = np.linalg.norm(rows, axis=1)
    kept = lengths > tolerance * reference
    return rows[kept] / lengths[kept, None]


def restricted(rows: Array, free: Array) -> Array:
    """The rows at unit length with zeros off the `free` coordinates; those that vanish there are left out."""
    return unit_rows(np.where(free, rows, 0.0), np.linalg.norm(rows, axis=1), RESTRICTION_TOLERANCE)


def spectrum(rows: Array) -> tuple[Array, Array]:
    """Singular values of unit rows, the largest first, and the orthonormal rows that belong to them."""
    if len(rows) == 0:
        return np.zeros(0), rows
    return scipy.linalg.svd(rows, full_matrices=False, lapack_driver="gesdd")[1:]


def counted(values: Array, floor: float = 0.0) -> Array:
    """Which singular values are more than rounding, and more than a floor."""
    return values > np.maximum(RANK_TOLERANCE * values[:1], floor)


def row_space(rows: Array) -> Array:
    """Orthonormal rows with the span of the given unit rows."""
    values, vectors = spectrum(rows)
    return vectors[counted(values)]


def null_basis(rows: Array) -> Array:
    """Orthonormal columns that span ``{y : rows y = 0}``, for unit rows."""
    return complement(row_space(rows))


def complement(space: Array) -> Array:
    """The same for orthonormal rows."""
    if len(space) == 0:
        return np.eye(space.shape[1])
    return np.asarray(scipy.linalg.qr(space.T, mode="full")[0])[:, len(space) :]


def compressed(rows: Array) -> tuple[Array, Array]:
    """(Q, R) with ``rows = R Q'`` and Q orthonormal: the rows in as few coordinates as there are rows."""
    if len(rows) < rows.shape[1]:
        Q, R = np.linalg.qr(rows.T)
        return Q, R.T
    return np.eye(rows.shape[1]), rows


def implied_equalities(rows: Array) -> Array:
    """Which unit rows g_i vanish on all of ``{y : rows y <= 0}``.

    They do if and only if a nonnegative combination of rows in which g_i takes part is zero (Gordan). For
    ``r = sum_{i in I} (1 + mu_i) g_i`` of smallest norm over mu >= 0, either r = 0 and all of I is implied, or -r meets
    all conditions of I and some of them strictly; these leave I. Starting from all rows, those that left are strict at
    one common point.
    """
    implied = np.ones(len(rows), dtype=bool)
    _, short = compressed(rows)
    while implied.any():
        chosen = short[implied]
        weights = 1 + NonnegativeLeastSquares(chosen.T).solve(-chosen.sum(axis=0))
        rest = weights @ chosen
        length = float(np.linalg.norm(rest))
        if length <= min(SAME_ROW * float(weights.sum()), RANK_TOLERANCE):
            return implied
        strict = chosen @ rest
        leaving = ~(strict <= 1e-8 * length) | (strict >= strict.max())  # one at least, what is no number included
        implied[np.flatnonzero(implied)[leaving]] = False
    return implied


def distinct(rows: Array) -> Array:
    """The unit rows without duplicates and, where they are few, without those implied by the others."""
    kept: list[int] = []
    near = rows @ rows.T > 1 - 1e-9
    for i in range(len(rows)):
        if not any(near[i, j] and float(np.linalg.norm(rows[i] - rows[j])) <= SAME_ROW for j in kept):
            kept.append(i)
    if 2 < len(kept) <= MINIMAL:
        _, short = compressed(rows)
        for i in tuple(kept):
            others = [j for j in kept if j != i]
            if float(np.linalg.norm(NonnegativeLeastSquares(short[others].T).residual(short[i]))) <= SAME_ROW:
                kept.remove(i)
    return rows[kept]


class NonnegativeLeastSquares:
    """``argmin |A mu - b|`` over mu >= 0 for one matrix A with unit columns and many b."""

    def __init__(self, matrix: Array):
        self.matrix = np.ascontiguousarray(matrix, dtype=np.float64)
        self.gram = self.matrix.T @ self.matrix

    def solve(self, target: Array) -> Array:
        size = self.matrix.shape[1]
        scale = float(np.linalg.norm(target))
        if size == 0 or scale == 0.0:
            return np.zeros(size)
        mu = self._pivot(target, OPTIMALITY * scale)
        if mu is None:
            mu = self._active_set(target, OPTIMALITY * scale)
        return mu

    def residual(self, target: Array) -> Array:
        """``target - A mu``: the projection of `target` onto ``{y : A'y <= 0}``."""
        return target - self.matrix @ self.solve(target)

    def _pivot(self, target: Array, tolerance: float) -> Array | None:
        """Block principal pivoting; None when it does not arrive at an optimal point."""
        size = self.matrix.shape[1]
        passive = np.zeros(size, dtype=bool)
        mu = np.zeros(size)
        fewest, patience = size + 1, 3
        for _ in range(50 + size):
            slope = self.matrix.T @ (target - self.matrix @ mu)
            wrong = np.where(passive, mu < 0, slope > tolerance)
            count = int(wrong.sum())
            if count == 0:
                return mu if float(np.abs(slope[passive]).max(initial=0.0)) <= tolerance else None
            if count < fewest:
                fewest, patience = count, 3
            elif patience:
                patience -= 1
            else:
                wrong[: np.flatnonzero(wrong)[-1]] = False
            passive ^= wrong
            chosen = np.flatnonzero(passive)
            gram = self.gram[np.ix_(chosen, chosen)]
            mu = np.zeros(size)
            try:
                mu[chosen] = np.linalg.solve(gram, self.matrix[:, chosen].T @ target)
                mu[chosen] += np.linalg.solve(gram, self.matrix[:, chosen].T @ (target - self.matrix @ mu))
            except np.linalg.LinAlgError:
                return None
            if not np.isfinite(mu).all():
                return None
        return None

    def _active_set(self, target: Array, tolerance: float) -> Array:
        """Lawson and Hanson: one column enters at a time and the residual norm falls with each."""
        size = self.matrix.shape[1]
        passive = np.zeros(size, dtype=bool)
        blocked = np.zeros(size, dtype=bool)
        mu = np.zeros(size)
        for _ in range(10 * size + 50):
            slope = self.matrix.T @ (target - self.matrix @ mu)
            slope[passive | blocked] = -np.inf
            entering = int(np.argmax(slope))
            if not slope[entering] > tolerance:
                break
            passive[entering] = True
            trial = self._least_squares(passive, target)
            if trial[entering] <= 0:
                passive[entering], blocked[entering] = False, True
                continue
            while (negative := passive & (trial <= 0)).any():
                steps = np.full(size, np.inf)
                steps[negative] = mu[negative] / (mu[negative] - trial[negative])
                length = float(steps.min())
                mu = mu + length * (trial - mu)
                passive &= ~(negative & (steps <= length)) & (mu > 0)
                mu[~passive] = 0.0
                trial = self._least_squares(passive, target)
            mu = trial
            blocked[:] = False
        return mu

    def _least_squares(self, passive: Array, target: Array) -> Array:
        mu = np.zeros(self.matrix.shape[1])
        if passive.any():
            mu[passive] = np.linalg.lstsq(self.matrix[:, passive], target, rcond=1e-13)[0]
        return mu

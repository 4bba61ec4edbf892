"""Rows of linear conditions: spans, null spaces, and which rows of ``G y <= 0`` matter.

Ranks are decided on rows of unit length, so that the scaling of a constraint does not matter.
"""

import numpy as np
import scipy

from .nonnegative import NonnegativeLeastSquares

Array = np.ndarray

RESTRICTION_TOLERANCE = 1e-10  # a row whose part on the free coordinates is a smaller fraction of it is zero there
RANK_TOLERANCE = 1e-10  # singular values of unit rows below this are rounding in the rows
ANGLE = 1e-3  # directions that errors of the rows may have turned further than this are taken for unknown
SAME_ROW = 1e-12  # distance of two unit rows that are one, and residual of a row implied by others
MINIMAL = 64  # up to this many rows, those implied by the others are looked for: one least-squares problem each


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

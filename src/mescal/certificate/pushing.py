"""Which of what pushes is held on the critical cone: forces that nearly cancel hold less than each of them pushes.

A force is a condition J_j d <= 0 with a multiplier lam_j > 0: a constraint, a boundary of X, a bound. Multipliers within the
tolerance of the true ones may have R of them where the truth has none, if the slope |P sum_R lam_j J_j| that is left on the
face of the others is no more than what counts as a push. With R all its parts can go, too, so that it is enough to look at the
largest sets: each makes a face, the others held and R let go, and a minimiser has no negative curvature on any of them. Of
what cannot go alone nothing can go with others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from .rows import RANK_TOLERANCE, RESTRICTION_TOLERANCE, row_space

MOST = 8  # forces of which all sets are looked at
LEFT = 0.5  # what boundaries of X push counts in full while others leave so much of it: many push by little more than the tolerance


class Face(NamedTuple):
    """What is held of the constraints, of the bounds and of the other boundaries of X; `loose` where more may have to be."""

    rows: np.ndarray
    bounds: np.ndarray
    boundaries: np.ndarray
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
    that are held `always`, on coordinates that are not `fixed`.

    Errors make a row push `more`, or less, and a bound by `more_of_a_bound`; what is left of a row beyond others is told from
    nothing where it is more than `least`. Rows that others leave as much as `whole` of count in full.
    """

    rows: np.ndarray
    multipliers: np.ndarray
    more: np.ndarray
    least: np.ndarray
    whole: np.ndarray
    bounds: np.ndarray
    more_of_a_bound: float
    always: np.ndarray
    fixed: np.ndarray

    def faces(self, held: np.ndarray, strong: float) -> list[tuple[np.ndarray, np.ndarray, bool]]:
        """Masks of the rows and of the bounds that are held, of those `held` and of all bounds that push, one pair for each face;
        and whether that may be too few.
        """
        touching = self.bounds != 0
        rows, bounds = self._doubtful(held, touching, strong)
        if not (rows.any() or bounds.any()):
            return [(held, touching, False)]
        few = self._few(held, touching, rows, bounds)
        sets, loose = few.sets(strong)
        faces = []
        for gone in sets:
            kept = ~gone
            kept |= few.within(kept)  # what others make up makes no difference
            of_rows, of_bounds = held & ~rows, touching & ~bounds
            of_rows[rows], of_bounds[bounds] = kept[: rows.sum()], kept[rows.sum() :]
            faces.append((of_rows, of_bounds, loose))
        return _largest(faces)

    def _doubtful(self, held: np.ndarray, touching: np.ndarray, strong: float) -> tuple[np.ndarray, np.ndarray]:
        """Rows and bounds that leave no more than a slope that is none on the face where all others are held."""
        rows, bounds = np.zeros_like(held), np.zeros_like(touching)
        chosen = np.concatenate([self.rows[held], self.always])
        if not len(chosen):
            return rows, bounds
        free = ~(touching | self.fixed)
        length, size = np.linalg.norm(chosen, axis=1), np.linalg.norm(np.where(free, chosen, 0.0), axis=1)
        vanishing = size <= RESTRICTION_TOLERANCE * length
        size = np.where(vanishing, np.where(length > 0, length, 1.0), size)
        units = chosen / size[:, None]
        inside = np.where(free & ~vanishing[:, None], units, 0.0)
        left, values, _ = np.linalg.svd(inside, full_matrices=False)
        kept = values > RANK_TOLERANCE * values.max(initial=1.0)
        left, values = left[:, kept], values[kept]
        count = int(held.sum())
        own = 1 - (left**2).sum(axis=1) < np.sqrt(RANK_TOLERANCE)  # without it the rank were smaller
        lengths = np.linalg.norm(left / values, axis=1)
        margins = np.where(own, size / np.where(own, lengths, 1.0), 0.0)[:count]
        steep = self.multipliers[held] * margins + self.more[held]
        rows[held] = ((steep <= strong) | (margins <= self.least[held])) & (margins < self.whole[held] * length[:count])
        columns = units[:, touching]
        shares = left.T @ columns
        beyond = np.linalg.norm(columns - left @ shares, axis=0) > np.sqrt(RANK_TOLERANCE)
        margins = np.where(beyond, 0.0, 1 / np.sqrt(1 + ((shares / values[:, None]) ** 2).sum(axis=0)))
        bounds[touching] = (margins < LEFT) & (np.abs(self.bounds[touching]) * margins + self.more_of_a_bound <= strong)
        return rows, bounds

    def _few(self, held: np.ndarray, touching: np.ndarray, rows: np.ndarray, bounds: np.ndarray) -> "_Few":
        """These rows and bounds, without what all others make up of them."""
        places = np.flatnonzero(bounds)
        units = np.zeros((len(places), self.rows.shape[1]))
        units[np.arange(len(places)), places] = np.sign(self.bounds[places])
        free = ~((touching & ~bounds) | self.fixed)
        mine = np.where(free, np.concatenate([self.rows[rows], units]), 0.0)
        others = np.where(free, np.concatenate([self.rows[held & ~rows], self.always]), 0.0)
        lengths = np.linalg.norm(others, axis=1)
        least = np.concatenate([self.least[rows], np.full(len(places), RESTRICTION_TOLERANCE)])
        span = row_space(others[lengths > 0] / lengths[lengths > 0, None])
        for _ in range(2):  # the second time takes off what rounding left
            mine = mine - (mine @ span.T) @ span
        return _Few(
            mine,
            np.concatenate([self.multipliers[rows], np.abs(self.bounds[places])]),
            np.concatenate([self.more[rows], np.full(len(places), self.more_of_a_bound)]),
            least,
        )


@dataclass(frozen=True)
class _Few:
    """Rows that may go, their multipliers, and what errors add to their pushes."""

    rows: np.ndarray
    multipliers: np.ndarray
    more: np.ndarray
    least: np.ndarray

    def sets(self, strong: float) -> tuple[list[np.ndarray], bool]:
        """The largest sets that may go, as masks, and whether these are more than may."""
        size = len(self.rows)
        spare = self._spare() if size > MOST else np.zeros(size, bool)
        single = [j for j in np.flatnonzero(~spare).tolist() if self._slope(_with(spare, [j])) <= strong]
        if len(single) > MOST:
            return [_with(spare, single)], True
        found: list[np.ndarray] = []
        for count in range(len(single), -1, -1):
            for chosen in combinations(single, count):
                gone = _with(spare, chosen)
                if not any((gone <= larger).all() for larger in found) and (count == 0 or self._slope(gone) <= strong):
                    found.append(gone)
        return found, False

    def within(self, held: np.ndarray) -> np.ndarray:
        """Which rows those that are held make up."""
        span = self._span(held)
        return np.linalg.norm(self.rows - (self.rows @ span.T) @ span, axis=1) <= self.least

    def _slope(self, gone: np.ndarray) -> float:
        """What these push together where the others are held, at most."""
        push, span = self.multipliers[gone] @ self.rows[gone], self._span(~gone)
        return float(np.linalg.norm(push - (push @ span.T) @ span) + self.more[gone].sum())

    def _span(self, held: np.ndarray) -> np.ndarray:
        lengths = np.linalg.norm(self.rows, axis=1)
        counted = held & (lengths > self.least)
        return row_space(self.rows[counted] / lengths[counted, None])

    def _spare(self) -> np.ndarray:
        """Rows that are combinations of those that push more."""
        spare, basis = np.zeros(len(self.rows), bool), np.zeros((0, self.rows.shape[1]))
        for j in np.argsort(-np.linalg.norm(self.rows, axis=1) * self.multipliers, kind="stable").tolist():
            rest = self.rows[j] - (self.rows[j] @ basis.T) @ basis
            rest = rest - (rest @ basis.T) @ basis
            length = float(np.linalg.norm(rest))
            spare[j] = length <= self.least[j]
            basis = basis if spare[j] else np.concatenate([basis, rest[None] / length])
        return spare


def _with(mask: np.ndarray, more) -> np.ndarray:
    """A mask with some more of its entries."""
    mask = mask.copy()
    mask[list(more)] = True
    return mask


def _largest(faces: list[tuple[np.ndarray, np.ndarray, bool]]) -> list[tuple[np.ndarray, np.ndarray, bool]]:
    """Without those that hold what another does, and more."""
    found: list[tuple[np.ndarray, np.ndarray, bool]] = []
    for face in sorted(faces, key=lambda face: int(face[0].sum() + face[1].sum())):
        if not any((other[0] <= face[0]).all() and (other[1] <= face[1]).all() for other in found):
            found.append(face)
    return found

"""Which of the rows that push are held on the critical cone: those that nearly cancel hold less than each of them pushes.

Rows are let go, R of them, while the slope that is left on the face where the others stay, |P sum_R lam_j J_j|, is no more than
what counts as a push: the one that leaves the least goes first. What is within rounding of a combination of those that push more
goes before all, as it makes no difference then, and is held in the end if it still makes none.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .rows import RANK_TOLERANCE, RESTRICTION_TOLERANCE, restricted, row_space


class Apart(NamedTuple):
    """Rows beside the span of those that are held with them: how far each lies from the others, zero where it lies among them or
    is not held; the unit vector along which it does; and a basis of the span of all.
    """

    margins: np.ndarray
    ways: np.ndarray
    span: np.ndarray


@dataclass(frozen=True)
class Pushing:
    """Rows J_j with multipliers lam_j, beside rows that are held `always`, on the `free` coordinates.

    Lengths are `off` by so much; what is left of a row beyond others is told from nothing where it is more than `least`.
    """

    rows: np.ndarray
    multipliers: np.ndarray
    always: np.ndarray
    free: np.ndarray
    off: np.ndarray
    least: np.ndarray

    def kept(self, held: np.ndarray, strong: float) -> np.ndarray:
        """Those of the rows `held` that stay so, where a slope up to `strong` is none."""
        pushes = self.rows * self.multipliers[:, None]
        spare = self._spare(held)
        held, gone = held & ~spare, spare.copy()
        while held.any():
            apart = self._apart(held)
            known = np.flatnonzero(apart.margins > self.least)
            push = np.where(self.free, pushes[gone].sum(axis=0), 0.0)
            across = np.linalg.norm(push - (push @ apart.span.T) @ apart.span)
            steep = np.hypot(across, apart.ways[known] @ push + self.multipliers[known] * apart.margins[known])
            steep += self.multipliers[gone] @ self.off[gone] + self.multipliers[known] * self.off[known]
            slow = known[np.argsort(steep, kind="stable")][: np.count_nonzero(steep <= strong)]
            # margins are told to the square root of rounding: what others make up is seen without them
            j = next((j for j in slow.tolist() if self._beyond(held, j) > self.least[j]), None)
            if j is None:
                break
            held[j], gone[j] = False, True
        for j in np.flatnonzero(spare).tolist():
            spare[j] = self._beyond(held, j) <= self.least[j]
        return held | spare

    def _spare(self, held: np.ndarray) -> np.ndarray:
        """Rows that are held, each a combination of those that push more and of those that always are."""
        spare, counted = np.zeros_like(held), np.zeros_like(held)
        if (self._apart(held).margins > self.least)[held].all():
            return spare
        order = np.argsort(-(np.linalg.norm(self.rows, axis=1) * self.multipliers)[held], kind="stable")
        for j in np.flatnonzero(held)[order].tolist():
            spare[j] = self._beyond(counted, j) <= self.least[j]
            counted[j] = not spare[j]
        return spare

    def _apart(self, held: np.ndarray) -> Apart:
        """The rows that are held, beside each other and those that always are, from one singular value decomposition."""
        size = np.linalg.norm(np.where(self.free, self.rows, 0.0), axis=1)
        counted = np.flatnonzero(held & (size > RESTRICTION_TOLERANCE * np.linalg.norm(self.rows, axis=1)))
        own_units = np.where(self.free, self.rows[counted], 0.0) / size[counted, None]
        units = np.concatenate([own_units, restricted(self.always, self.free)])
        margins, ways = np.zeros(len(self.rows)), np.zeros(self.rows.shape)
        if not len(units):
            return Apart(margins, ways, units)
        left, values, span = np.linalg.svd(units, full_matrices=False)
        kept = values > RANK_TOLERANCE * values[0]
        left, values, span = left[: len(counted), kept], values[kept], span[kept]
        own = 1 - (left**2).sum(axis=1) < np.sqrt(RANK_TOLERANCE)  # without it the rank were smaller
        dual = left / values
        lengths = np.linalg.norm(dual, axis=1)
        margins[counted[own]] = size[counted[own]] / lengths[own]
        ways[counted[own]] = (dual[own] / lengths[own, None]) @ span
        return Apart(margins, ways, span)

    def _beyond(self, held: np.ndarray, j: int) -> float:
        """How much of a row is there beyond the others that are held and those that always are."""
        others = held & (np.arange(len(held)) != j)
        span = row_space(restricted(np.concatenate([self.always, self.rows[others]]), self.free))
        row = np.where(self.free, self.rows[j], 0.0)
        return float(np.linalg.norm(row - (row @ span.T) @ span))

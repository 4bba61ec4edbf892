"""Which sets of a few forces may go together: those that leave no slope on the face where the others are held."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .rows import row_space

MOST = 8  # forces of which all sets are looked at


@dataclass(frozen=True)
class Few:
    """Rows that may go, their multipliers, and what errors add to their pushes."""

    rows: np.ndarray
    multipliers: np.ndarray
    more: np.ndarray
    least: np.ndarray

    def sets(self, strong: float) -> tuple[list[np.ndarray], bool]:
        """The largest sets that may go, as masks, and whether these are more than may."""
        size = len(self.rows)
        if size <= MOST:
            spare = np.zeros(size, bool)
            single = [j for j in range(size) if self._slope(_with(spare, [j])) <= strong]
        else:
            spare = self._spare()
            single = np.flatnonzero(~spare)[self._slopes(spare) <= strong].tolist()
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

    def _slopes(self, spare: np.ndarray) -> np.ndarray:
        """The same of the spare ones and one of the others, for each of these, which are independent: from one decomposition."""
        rows, push = self.rows[~spare], self.multipliers[spare] @ self.rows[spare]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        left, values, span = np.linalg.svd(rows / lengths, full_matrices=False)
        ways = (left / values) @ span
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        along = ways @ push + self.multipliers[~spare] * (ways * rows).sum(axis=1)
        beyond = float(np.linalg.norm(push - (push @ span.T) @ span))
        return np.hypot(along, beyond) + self.more[~spare] + self.more[spare].sum()

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

"""Forces beside each other: how much of each is left beyond the others, and which are nearly parallel there."""

from dataclasses import dataclass, replace

import numpy as np

from .forces import Forces, Held
from .rows import RANK_TOLERANCE, RESTRICTION_TOLERANCE

LEFT = 0.5  # what boundaries of X push counts in full while others leave so much of it: many push by little more than the tolerance


@dataclass(frozen=True)
class Beside:
    """The rows that are held beside each other, beside the bounds that push and what always is: from one decomposition,

    units = left diag(values) span  on the free coordinates, and of each row and bound the `margin` beyond the others; the `rest` of
    a push is what they do not make up of it.
    """

    forces: Forces
    held: np.ndarray
    units: np.ndarray
    left: np.ndarray
    values: np.ndarray
    span: np.ndarray
    free: np.ndarray
    margins: np.ndarray
    of_bounds: np.ndarray
    rest: np.ndarray

    @classmethod
    def of(cls, forces: Forces, held: np.ndarray) -> "Beside":
        """At the rows `held`."""
        chosen, touching = np.concatenate([forces.rows[held], forces.always]), forces.bounds != 0
        free = ~(touching | forces.fixed)
        length, size = np.linalg.norm(chosen, axis=1), np.linalg.norm(np.where(free, chosen, 0.0), axis=1)
        vanishing = size <= RESTRICTION_TOLERANCE * length
        size = np.where(vanishing, np.where(length > 0, length, 1.0), size)
        units = chosen / size[:, None]
        inside = np.where(free & ~vanishing[:, None], units, 0.0)
        left, values, span = np.linalg.svd(inside, full_matrices=False)
        kept = values > RANK_TOLERANCE * values.max(initial=1.0)
        left, values, span = left[:, kept], values[kept], span[kept]
        own = 1 - (left**2).sum(axis=1) < np.sqrt(RANK_TOLERANCE)  # without it the rank were smaller
        lengths = np.linalg.norm(left / values, axis=1)
        margins = np.where(own, size / np.where(own, lengths, 1.0), 0.0)[: held.sum()]
        columns = units[:, touching]
        shares = left.T @ columns
        beyond = np.linalg.norm(columns - left @ shares, axis=0) > np.sqrt(RANK_TOLERANCE)
        of_bounds = np.where(beyond, 0.0, 1 / np.sqrt(1 + ((shares / values[:, None]) ** 2).sum(axis=0)))
        return cls(forces, held, units, left, values, span, free, margins, of_bounds, np.zeros(free.shape))

    def doubtful(self, strong: float) -> tuple[np.ndarray, np.ndarray]:
        """Rows and bounds that leave no more than a slope that is none on the face where all others are held."""
        forces, held, touching = self.forces, self.held, self.forces.bounds != 0
        rows, bounds = np.zeros_like(held), np.zeros_like(touching)
        steep = forces.multipliers[held] * self.margins + forces.more[held]
        lengths = np.linalg.norm(forces.rows[held], axis=1)
        short = (self.margins < forces.whole[held] * lengths) | (lengths == 0)
        rows[held] = ((steep <= strong) | (self.margins <= forces.least[held])) & short
        steep = np.abs(forces.bounds[touching]) * self.of_bounds + forces.more_of_a_bound
        bounds[touching] = (self.of_bounds < LEFT) & (steep <= strong)
        return rows, bounds

    def sharing(self, push: np.ndarray) -> tuple["Beside", float]:
        """The same with the multipliers that come closest to making up a `push`, and how much more of it is left by any without
        one of a wrong sign.
        """
        forces, count, touching = self.forces, len(self.margins), np.flatnonzero(self.forces.bounds)
        free = np.where(self.free, push, 0.0)
        along = self.span @ free
        shares = (self.left / self.values) @ along
        lengths = np.linalg.norm(forces.rows[self.held], axis=1)
        of_rows = shares[:count] * np.linalg.norm(self.units[:count], axis=1) / lengths
        signs = np.sign(forces.bounds[touching])
        of_bounds = signs * (push[touching] - shares @ self.units[:, touching])
        multipliers, bounds = forces.multipliers.copy(), forces.bounds.copy()
        multipliers[self.held] = np.maximum(of_rows, 0.0)
        bounds[touching] = signs * np.maximum(of_bounds, np.finfo(float).tiny)
        steep = np.concatenate([of_rows * self.margins, of_bounds * self.of_bounds])
        forces = replace(forces, multipliers=multipliers, bounds=bounds)
        return replace(self, forces=forces, rest=free - along @ self.span), float(np.max(-steep, initial=0.0))

    def exchanges(self, strong: float, all_held: Held) -> list[tuple[int, int]]:
        """Which force may go if which other, not `all_held` and nearly parallel beside the rest, takes its place.

        Of what is left of a force beyond the others, another that is free has the part `along` it and `apart` from all.
        """
        forces, held, count = self.forces, self.held, len(self.forces.rows)
        touching, weak = np.flatnonzero(forces.bounds), np.flatnonzero(forces.active & ~all_held.rows)
        open_sides = np.flatnonzero((forces.sides != 0) & self.free & ~all_held.bounds)
        # a bound of which more is apart is near none: few are left, no more than rows are held, and a third
        beyond = 1 - (self.span[:, open_sides] ** 2).sum(axis=0)
        sides = open_sides[beyond < LEFT**2]
        walls = np.zeros((len(sides), forces.rows.shape[1]))
        walls[np.arange(len(sides)), sides] = forces.sides[sides]
        others = np.concatenate([forces.rows[weak], walls])
        least = np.concatenate([forces.least[weak], np.full(len(sides), RESTRICTION_TOLERANCE)])

        inside = np.where(self.free, others, 0.0)
        shares = inside @ self.span.T
        apart = np.linalg.norm(inside - shares @ self.span, axis=1)[:, None]
        dual = self.left[: len(self.margins)] / self.values
        ways = (dual / np.maximum(np.linalg.norm(dual, axis=1, keepdims=True), np.finfo(float).tiny)) @ self.span
        makes = (shares / self.values) @ self.left.T  # of each unit row, in another force
        on_bounds = others[:, touching] - makes @ self.units[:, touching]
        along = np.concatenate([inside @ ways.T, on_bounds * np.sign(forces.bounds[touching]) * self.of_bounds], axis=1)
        steep = np.concatenate(
            [forces.multipliers[held] * self.margins, np.abs(forces.bounds[touching]) * self.of_bounds]
        )
        across = np.hypot(along, apart)
        turned = np.divide(apart, across, out=np.ones_like(across), where=across > 0)
        takes = (inside @ self.rest)[:, None]  # of what no force held makes up
        gained = np.divide(takes * (2 * steep * along + takes), across**2, out=np.zeros_like(across), where=across > 0)
        slope = (steep * turned) ** 2 + self.rest @ self.rest - gained
        near = (apart > least[:, None]) & (along > 0) & (steep > 0) & (turned < LEFT) & (slope <= strong**2)
        old, new = np.append(np.flatnonzero(held), count + touching), np.append(weak, count + sides)
        return [(int(old[p]), int(new[w])) for w, p in np.argwhere(near).tolist()]

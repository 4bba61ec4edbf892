"""Scalars that statements add to x: how they follow x, and the coordinates in which the judge measures both.

A scalar is a function of x, or nearly: a denominator by its equation, a bound on groups by those that reach it, a quantile as the
minimiser of what it stands in. Its length and its slope beside those of x would mean little: in small units it moves fast, and
every curvature along it is small; in large ones a multiplier turns a slope of x into one of the scalar, as small as one likes. So
with t = W x to first order, what is measured is in coordinates (x, t') of

    t = W x + u t',   u_i = max(1, |W_i|):   slopes g_x + W'g_t and u g_t,   curvatures of T'HT,   T = [[I, 0], [W, diag u]],

where a direction in which scalars follow has the length of its part in x. Slope and curvature of what was stated are among those
that are measured. W is from one relation r d = 0 for each scalar:

    r = sum_j w_j J_j   over the rows j that determine it, w_j >= 0: of an equality 1, of active inequalities their multipliers, or
                        1 where all are zero; where none is active, the nearest row alone;
    r = H_i             where no row determines it and H_ii > 0: with the others as they are, d'Hd is smallest there.

All of it holds at the values that scalars have at x, where they are judged. Where something pushes a scalar and no inequality that
determines it is active, the nearest one is taken for active.

So the slope in x is that of what was stated, at some weights of what is largest there, whatever the multipliers sum up to.
Multipliers of rows that determine scalars follow from all the others, by g_t = 0, and are `completed`: with others, which
tolerances let pass, the Lagrangian would have the curvature of something else.

A scalar at an end of its range does not follow, W_i = 0: where it might, to one side, directions are by up to sqrt(1 + k) longer
than x, for k of these. Slopes and curvatures are then by so much larger: `loosened`. Nor does one without a relation: how fast it
moves is not known, and so no slope along it may be left, u_i = `STEEPEST`, but for that of rounding, u_i = 1.
Where of several active inequalities some do not push, critical directions lie above all of them: u_i is no less than
v = |W of row j alone - W| of each, directions are by up to sqrt(1 + sum of v^2/u^2) longer, and curvatures larger: `lengthened`.

Where scalars are not at their values, because these are only known from draws or are rounded, slopes in x are those of something
else. Where what determines scalars is off by c, they lag by R_t^-1 c, R_t the relations' part in scalars, and slopes by

    Z c = (H_xt + W'H_tt) R_t^-1 c

to first order, multipliers of these rows following: `lag`. Minimisers have their slope g_t in place of c, and W'g_t is there.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..oracle.look import At
from .situation import Situation

SINGULAR = 1e-10  # relations between scalars that are this close to dependent determine none
STEEPEST = 1e100  # a unit in which any slope is beyond any tolerance


class Frame(NamedTuple):
    """The coordinates: W of shape (k, d - k); u, which scalars do not follow, and v^2/u^2, of shape (k,)."""

    follow: Any
    units: Any
    loose: Any
    above: Any

    @classmethod
    def none(cls, size: int) -> "Frame":
        """Of parameters without scalars."""
        return cls(np.zeros((0, size)), np.zeros(0), np.zeros(0), np.zeros(0))

    @property
    def count(self) -> int:
        """How many scalars there are."""
        return len(self.units)

    @property
    def loosened(self) -> float:
        """What the square of a length may be, per length of x."""
        return 1.0 + float(np.sum(self.loose))

    @property
    def lengthened(self) -> float:
        """The same on the critical cone."""
        return self.loosened + float(np.sum(self.above))

    @property
    def norm(self) -> float:
        """No less than |T|."""
        return max(1.0, float(np.max(self.units, initial=1.0))) + float(np.linalg.norm(self.follow))

    @property
    def magnitude(self) -> "Frame":
        """That of |T|, entry by entry."""
        return self._replace(follow=np.abs(self.follow))

    def outward(self, d: Any) -> Any:
        """T d, of a vector or of columns: a direction of the parameters."""
        if not self.count:
            return d
        x, t = d[: -self.count], d[-self.count :]
        return _joined(x, self.follow @ x + (self.units * t.T).T)

    def inward(self, d: Any) -> Any:
        """The vector whose T d this is."""
        if not self.count:
            return d
        x, t = d[: -self.count], d[-self.count :]
        return _joined(x, (t - self.follow @ x) / self.units)

    def slope(self, g: Any) -> Any:
        """T'g, of a vector or of columns: a derivative."""
        if not self.count:
            return g
        x, t = g[: -self.count], g[-self.count :]
        return _joined(x + self.follow.T @ t, (self.units * t.T).T)

    def look(self, point: At) -> At:
        """A look in these coordinates."""
        if not self.count:
            return point
        off, size = point.rounding, self.magnitude
        rounding = off._replace(gradient=size.slope(off.gradient), jacobian=size.slope(off.jacobian.T).T)
        return point._replace(
            gradient=self.slope(point.gradient), jacobian=self.slope(point.jacobian.T).T, rounding=rounding
        )

    def matrix(self, hessian: np.ndarray) -> np.ndarray:
        """T'HT."""
        return self.slope(self.slope(hessian).T) if self.count else hessian

    def product(self, product: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        """v -> T'H T v, from v -> H v."""
        return (lambda v: self.slope(product(self.outward(v)))) if self.count else product


def _joined(first: Any, second: Any) -> Any:
    return (jnp if isinstance(first, jax.Array) else np).concatenate([first, second])


class Determined(NamedTuple):
    """Which rows of c determine the scalars, the last `count` parameters: `scalar` is the number of each row's, or -1.

    `shares` are the weights w of the rows, `active` says which may hold, `free` which of these need not on the critical cone;
    `errors` are those of the rows, entry by entry.
    """

    count: int
    rows: np.ndarray
    scalar: np.ndarray
    shares: np.ndarray
    active: np.ndarray
    free: np.ndarray
    errors: np.ndarray

    @classmethod
    def of(cls, count: int, scalar: np.ndarray, situation: Situation, point: At) -> "Determined":
        """At a point with the multipliers and slacks of a situation."""
        inequality, multipliers = situation.inequality, situation.multipliers
        active = ~inequality | situation.at_zero
        shares = np.zeros(len(scalar))
        for own in (scalar == i for i in range(count)):
            if (own & active).any():
                weights = np.where(own & active, np.where(inequality, np.maximum(multipliers, 0.0), 1.0), 0.0)
                weights = weights / weights.max() if weights.any() else (own & active).astype(float)
                shares += weights / weights.sum()
            elif own.any():
                shares[np.argmax(np.where(own, point.constraint, -np.inf))] = 1.0
        free = situation.at_zero & ~situation.pushing & (scalar >= 0)
        return cls(count, point.jacobian, scalar, shares, active, free, point.rounding.jacobian)

    def relation(self, i: int) -> tuple[np.ndarray, bool]:
        """r of a scalar, and whether its entry there is more than rounding."""
        shares = np.where(self.scalar == i, self.shares, 0.0)
        row, off = shares @ self.rows, shares @ self.errors
        return row, bool(abs(row[i - self.count]) > off[i - self.count])

    def relations(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All of them, each 1 in its own scalar, and for which scalars there is one; `columns` are those of H at the scalars."""
        count, size = self.count, self.rows.shape[1]
        first = size - count
        relations, known = np.zeros((count, size)), np.zeros(count, bool)
        for i in range(count):
            row, known[i] = self.relation(i)
            if not (self.scalar == i).any():
                row, known[i] = columns[:, i], columns[first + i, i] > 0
            relations[i] = row / row[first + i] if known[i] else np.eye(size)[first + i]
        if not _independent(relations[:, first:]):
            return np.eye(size)[first:], ~np.ones(count, bool)
        return relations, known

    def lag(self, columns: np.ndarray, frame: "Frame") -> np.ndarray:
        """Z of shape (d - k, m): by how much slopes in x are off, per unit of c, as scalars lag behind what determines them."""
        first, (relations, known) = self.rows.shape[1] - self.count, self.relations(columns)
        off = np.zeros((self.count, len(self.scalar)))
        for i in np.flatnonzero(known & np.isin(range(self.count), self.scalar)):
            off[i] = np.where(self.scalar == i, self.shares, 0.0) / self.relation(int(i))[0][first + i]
        slopes = columns[:first] + frame.follow.T @ columns[first:]
        return slopes @ np.linalg.solve(relations[:, first:], off)


def completed(determined: Determined, multipliers: np.ndarray, inequality: np.ndarray, steep: np.ndarray) -> np.ndarray:
    """Multipliers with those of rows that determine scalars such that the Lagrangian, whose slopes along scalars are `steep`, has
    none; zero in `steep` is left.
    """
    count, found = determined.count, [determined.relation(i) for i in range(determined.count)]
    holds = [(determined.active & (determined.scalar == i)).any() for i in range(count)]
    chosen = [i for i in range(count) if steep[i] != 0 and holds[i] and found[i][1]]
    units = [found[i][0][i - count] for i in chosen]
    among = np.array([[found[i][0][k - count] / u for k in chosen] for i, u in zip(chosen, units, strict=True)])
    if not chosen or not _independent(among):
        return multipliers
    more = np.zeros(count + 1)  # the last for rows that determine none
    more[chosen] = np.linalg.solve(among.T, -steep[chosen]) / units
    changed = multipliers + more[determined.scalar] * determined.shares * determined.active
    return np.where(inequality, np.maximum(changed, 0.0), changed)


def frame_of(determined: Determined, columns: np.ndarray, ended: np.ndarray, steep: np.ndarray) -> Frame:
    """The frame of parameters, with scalars at an end of their range where `ended`; `steep` is what slope the Lagrangian has along
    them beyond rounding, `columns` are those of its Hessian at them.
    """
    count, first = determined.count, determined.rows.shape[1] - determined.count
    relations, known = determined.relations(columns)
    moves = -np.linalg.solve(relations[:, first:], relations[:, :first])
    apart = np.zeros(count)  # v
    for row, i in zip(determined.rows[determined.free], determined.scalar[determined.free], strict=True):
        if row[first + i] != 0:
            left = np.linalg.norm(row[:first] + row[first:] @ moves) / abs(row[first + i])
            apart[i] = max(apart[i], float(left))
    units = np.maximum(np.maximum(1.0, apart), np.linalg.norm(moves, axis=1))
    units = np.where(known | (steep == 0), units, STEEPEST)
    follow = np.where(ended[:, None], 0.0, moves)
    return Frame(follow, units, (known & ended).astype(float), (apart / units) ** 2)


def _independent(among: np.ndarray) -> bool:
    """Whether relations, each 1 in a scalar of its own, determine all of these; in any unit of theirs."""
    return bool(np.abs(np.linalg.det(among)) > SINGULAR)

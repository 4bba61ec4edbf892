"""Scalars that statements add to x: how they follow x, and the coordinates in which the judge measures both.

A scalar is a function of x, or nearly: a denominator by its equation, a bound on groups by those that reach it, a quantile as the
minimiser of what it stands in. Its length and its slope beside those of x would mean little: in small units it moves fast, and
every curvature along it is small; in large ones a multiplier turns a slope of x into one of the scalar, as small as one likes. So
with t = W x to first order, what is measured is in coordinates (x, t') of

    t = W x + u t',   u_i = max(1, |W_i|):   slopes g_x + W'g_t and u g_t,   curvatures of T'HT,   T = [[I, 0], [W, diag u]],

where a direction in which scalars follow has the length of its part in x. Slope and curvature of what was stated are among those
that are measured. W is from one relation r d = 0 for each scalar:

    r = J_j      of the rows j that determine it and hold, the one in which it moves slowest; where there is none,
    r = H_i      where H_ii > 0: with the others as they are, d'Hd is smallest there.

A scalar at an end of its range, or without such a relation, does not follow, W_i = 0: where it might, to one side,
directions are by up to sqrt(1 + k) longer than x, for k of these. Slopes and curvatures are then by so much larger: `loosened`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..oracle.look import At

SINGULAR = 1e-10  # relations between scalars that are this close to dependent determine none


class Frame(NamedTuple):
    """The coordinates: W of shape (k, d - k), u and which scalars do not follow, of shape (k,)."""

    follow: Any
    units: Any
    loose: Any

    @classmethod
    def none(cls, size: int) -> "Frame":
        """Of parameters without scalars."""
        return cls(np.zeros((0, size)), np.zeros(0), np.zeros(0))

    @property
    def count(self) -> int:
        """How many scalars there are."""
        return len(self.units)

    @property
    def loosened(self) -> float:
        """What the square of a length may be, per length of x."""
        return 1.0 + float(np.sum(self.loose))

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


def frame_of(
    count: int,
    rows: np.ndarray,
    determined: np.ndarray,
    errors: np.ndarray,
    product: Callable[[np.ndarray], np.ndarray],
    ended: np.ndarray,
) -> Frame:
    """The frame of parameters of which the last `count` are scalars, at an end of their range where `ended`.

    Of `rows`, which hold up to `errors` in length, each determines the scalar of this number.
    """
    size = rows.shape[1]
    first = size - count
    speeds = np.concatenate([np.ones(first), np.full(count, np.inf)])
    relations = np.zeros((count, size))

    def offer(i: int, row: np.ndarray, of_others: np.ndarray):
        speed = _speed(row, i, of_others)
        if speed < speeds[i] * (1 - SINGULAR):
            speeds[i], relations[i - first] = speed, row / row[i]

    def by_rows():
        for _ in range(count):  # scalars may be functions of each other
            for i in range(first, size):
                for row in rows[(determined == i - first) & (np.abs(rows[:, i]) > errors)]:
                    offer(i, row, speeds)

    by_rows()
    columns = product(np.eye(size)[:, first:]).T
    for i, column in zip(range(first, size), columns, strict=True):
        if column[i] > 0 and not (determined == i - first).any():
            offer(i, column, np.where(np.isfinite(speeds), speeds, 0.0))
    by_rows()  # of those, too
    known = np.isfinite(speeds[first:])
    relations[~known, first:] = np.eye(count)[~known]
    among = relations[:, first:]
    follow, loose = np.zeros((count, first)), known & ended
    if np.linalg.svd(among, compute_uv=False).min(initial=1.0) > SINGULAR:
        follow = np.where(ended[:, None], 0.0, -np.linalg.solve(among, relations[:, :first]))
    else:
        loose = known
    units = np.where(known, np.maximum(speeds[first:], 1.0), 1.0)
    return Frame(follow, units, loose.astype(float))


def _speed(row: np.ndarray, i: int, units: np.ndarray) -> float:
    """How fast coordinate i moves where others move by their units, row d = 0."""
    moved = np.zeros(len(row))
    others = (row != 0) & (np.arange(len(row)) != i)
    moved[others] = row[others] * units[others]
    return float(np.linalg.norm(moved)) / abs(float(row[i]))

"""Scalars that statements add to x: the units in which they count beside x in the length of a direction.

A scalar is a function of x, or nearly: a denominator by its equation, a bound on groups by those that reach it, a quantile as the
minimiser of what it stands in. Stated in small units it moves fast, and with its own length beside that of x every curvature
would be small. It counts in the unit in which it moves as x does, where that is larger than its own, u_i = max(1, v_i). Its speed
v_i is the smallest of

    |J_(j, others) u_others| / |J_ji|                          for rows j that hold, J d = 0,
    (b + sqrt(b^2 + a H_ii)) / H_ii,  b = |H_(i, others) u_others|,  a = |H_xx|,    where H_ii > 0:

a scalar that moves faster beside a unit of x than the last makes d'Hd positive. So a direction of negative curvature is no longer
than about sqrt(1 + k) times its part in x, for k scalars. |H_xx| is that of Frobenius, from random products.
"""

from collections.abc import Callable

import numpy as np

PROBES = 4  # random products for the size of a Hessian


def units_of_scalars(
    count: int, rows: np.ndarray, errors: np.ndarray, product: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray | None:
    """Units of all parameters, of which the last `count` are scalars; None without any. `rows` hold, up to `errors` in length."""
    size = rows.shape[1]
    if count == 0:
        return None
    scalars = range(size - count, size)
    units = np.concatenate([np.ones(size - count), np.full(count, np.inf)])
    for _ in scalars:  # scalars may be functions of each other
        for i in scalars:
            of_it = rows[np.abs(rows[:, i]) > errors]
            units[i] = min(units[i], *(_speed(row, i, units) for row in of_it), np.inf)
    probes = np.zeros((size, PROBES))
    probes[: size - count] = np.random.default_rng(0).choice([-1.0, 1.0], size=(size - count, PROBES))
    images = product(np.concatenate([np.eye(size)[:, size - count :], probes], axis=1))
    curved = float(np.linalg.norm(images[: size - count, count:])) / PROBES**0.5
    for i, column in zip(scalars, images[:, :count].T, strict=True):
        if column[i] > 0:
            coupled = _speed(column, i, np.where(np.isfinite(units), units, 0.0))
            units[i] = min(units[i], coupled + np.hypot(coupled, np.sqrt(curved / column[i])))
    return np.where(np.isfinite(units), np.maximum(units, 1.0), 1.0)


def _speed(row: np.ndarray, i: int, units: np.ndarray) -> float:
    """How fast coordinate i moves where others move by their units, row d = 0."""
    moved = np.zeros(len(row))
    others = (row != 0) & (np.arange(len(row)) != i)
    moved[others] = row[others] * units[others]
    return float(np.linalg.norm(moved)) / abs(float(row[i]))

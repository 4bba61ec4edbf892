"""Rows in buckets: arrays padded to few sizes, so that a fit on new shapes compiles nothing.

Rows are padded by rows that stand there once more, and share their weight; columns (of the linear model alone) by zeros, and
so are their weights at the minimiser. Neither moves a value or a derivative. Parts of rows that have a second axis are weights.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

SMALLEST_ROWS, SMALLEST_COLUMNS = 512, 16
POWERS = 8192  # rows up to which powers of two are worth their padding


def bucket_rows(n: int) -> int:
    """Rows after padding: powers of two from 512 to 8192, beyond that steps of a quarter to an eighth."""
    if n <= POWERS:
        return max(SMALLEST_ROWS, 1 << (n - 1).bit_length())
    step = 1 << ((n - 1).bit_length() - 3)
    return -(-n // step) * step


def bucket_columns(d: int) -> int:
    """Columns after padding: 16, 32, then multiples of 32."""
    return max(SMALLEST_COLUMNS, d if d <= SMALLEST_COLUMNS else -(-d // 32) * 32)


@dataclass(frozen=True)
class Scaling:
    """Columns of zero mean and unit variance: (x - mean) / scale; a constant column keeps its scale."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray, weights: np.ndarray) -> "Scaling":
        """Weighted, so that a weight of k is a row k times."""
        share = weights / weights.sum()
        largest = np.abs(features).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)  # squares of what is left neither overflow nor vanish
        relative = features / unit
        mean = share @ relative
        deviation = np.sqrt(share @ (relative - mean) ** 2)
        constant = deviation <= 1e-12  # what rounding leaves of a constant column is no deviation
        return cls(mean * unit, np.where(constant, 1.0, deviation * unit))

    @classmethod
    def none(cls, width: int) -> "Scaling":
        """Columns as they are."""
        return cls(np.zeros(width), np.ones(width))

    def __call__(self, features: np.ndarray) -> np.ndarray:
        return (features - self.mean) / self.scale


def pad(rows: Any, columns: int, dtype: str) -> Any:
    """Rows and columns up to their buckets; weights sum over the bucket, so that means over it are weighted means."""
    n, d = rows.features.shape
    taken = np.arange(bucket_rows(n)) % n
    weight = (len(taken) / np.bincount(taken))[taken, None]  # of a share, spread over the times that its row is there
    features = np.zeros((len(taken), columns), dtype)
    features[:, :d] = rows.features[taken]
    parts: dict[str, np.ndarray] = {"features": features}
    for name, part in rows._asdict().items():
        if np.ndim(part) == 0:
            parts[name] = np.full(len(taken), part, dtype)
        elif name != "features":
            parts[name] = (weight * part[taken] if part.ndim == 2 else part[taken]).astype(dtype)
    return type(rows)(**parts)

"""Tables to features: columns of text, standardised numbers, indicators in sorted order, quantile bins, rows of unit length.

All arithmetic is float64; `design` rounds once, to the type asked for. Deviations are those of the population
(divided by n), and a zero deviation or length counts as 1.
"""

import csv
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

BLOCK = 512  # rows held at a time


class Levels(NamedTuple):
    """A column of strings: what occurs in it, in sorted order, and which of these stands in every row."""

    names: np.ndarray
    codes: np.ndarray

    def at(self, rows: np.ndarray) -> "Levels":
        """Those of some rows; names that none of them has stay."""
        return Levels(self.names, self.codes[rows])

    @property
    def texts(self) -> np.ndarray:
        """The strings, row by row."""
        return self.names[self.codes]


class Indicators(NamedTuple):
    """One-hot columns: the level of every row, (n,) integers, and the levels' names."""

    codes: np.ndarray
    names: tuple[str, ...]


def standardise(values: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and deviation 1."""
    values = np.asarray(values, np.float64)
    # A constant column has deviation zero by definition; computed, it would be rounding error.
    constant = (values == values[0]).all(axis=0)
    mean = np.where(constant, values[0], values.mean(axis=0))
    return (values - mean) / np.where(constant, 1.0, values.std(axis=0))


def unit_rows(values: np.ndarray) -> np.ndarray:
    """Rows with Euclidean length 1."""
    length = np.linalg.norm(values, axis=1, keepdims=True)
    return values / np.where(length == 0, 1.0, length)


def fill_missing(values: np.ndarray) -> np.ndarray:
    """Missing values (NaN) replaced by the median of the others, column by column."""
    return np.where(np.isnan(values), np.nanmedian(values, axis=0), values)


def one_hot(column: str, levels: Levels) -> Indicators:
    """An indicator for every level of a column that some row has, in sorted order; a blank is a level."""
    kept = np.flatnonzero(np.bincount(levels.codes, minlength=len(levels.names)))
    return Indicators(np.searchsorted(kept, levels.codes), tuple(f"{column}={name}" for name in levels.names[kept]))


def quantile_bins(column: str, values: np.ndarray, bins: int) -> Indicators:
    """An indicator for every bin between the quantiles k/bins; equal edges are merged, empty bins dropped."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1]))
    kept, codes = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)
    bounds = ["-inf", *(f"{edge:g}" for edge in edges), "inf"]
    return Indicators(codes, tuple(f"{column} in [{bounds[k]}, {bounds[k + 1]})" for k in kept))


def design(numeric: np.ndarray, indicators: Sequence[Indicators], dtype: np.dtype) -> np.ndarray:
    """Numeric columns, then indicators in the order given, in rows of length 1.

    Every row has exactly one 1 in each group of indicators, so its length is known before the matrix is made, and no
    float64 copy of the matrix is needed.
    """
    rows = numeric.shape[0]
    length = np.sqrt((numeric**2).sum(axis=1) + len(indicators))
    length = np.where(length == 0, 1.0, length)
    stops = np.cumsum([numeric.shape[1], *(len(group.names) for group in indicators)])
    matrix = np.zeros((rows, int(stops[-1])), dtype)
    matrix[:, : numeric.shape[1]] = numeric / length[:, None]
    for start, group in zip(stops[:-1], indicators, strict=True):
        matrix[np.arange(rows), start + group.codes] = 1.0 / length
    return matrix


def signs(positive: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Labels: +1 where `positive`, -1 elsewhere."""
    return np.where(positive, 1.0, -1.0).astype(dtype)


def read_columns(lines: Iterable[str], separator: str = ",") -> dict[str, list[str]]:
    """The columns of a table whose first line holds their names.

    Rows are let go block by block, and equal strings are one object: a string of its own for each of a million entries costs more
    than to read them.
    """
    rows = csv.reader(lines, delimiter=separator)
    names = next(rows)
    columns: list[list[str]] = [[] for _ in names]
    once: dict[str, str] = {}
    while block := list(islice(rows, BLOCK)):
        for column, part in zip(columns, zip(*block, strict=True), strict=True):
            column += map(once.setdefault, part, part)
    return dict(zip(names, columns, strict=True))


def levels(values: Sequence[str]) -> Levels:
    """What a column of strings holds."""
    names = sorted(set(values))
    places = {name: place for place, name in enumerate(names)}
    return Levels(np.array(names), np.fromiter(map(places.__getitem__, values), np.intp, len(values)))


def numbers(values: Iterable[str]) -> np.ndarray:
    """A column of numbers; a blank is missing (NaN)."""
    return np.array([float(value) if value else np.nan for value in values])


ENCODINGS = {
    "paper": "columns standardised, then rows scaled to length 1",
    "standardised": "columns standardised, rows left as they are",
}


def encode_numbers(values: np.ndarray, encoding: str, dtype: np.dtype) -> np.ndarray:
    """A matrix of numbers in one of `ENCODINGS`."""
    scaled = standardise(values)
    return (unit_rows(scaled) if encoding == "paper" else scaled).astype(dtype)

"""Text tables as columns of strings, with nothing but the standard library."""

import csv
from collections.abc import Iterable

import numpy as np


def read_columns(lines: Iterable[str], separator: str = ",") -> dict[str, tuple[str, ...]]:
    """The columns of a table whose first line holds their names."""
    rows = csv.reader(lines, delimiter=separator)
    header = next(rows)
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def numbers(values: Iterable[str]) -> np.ndarray:
    """A column of numbers; a blank is missing (NaN)."""
    return np.array([float(value) if value else np.nan for value in values])

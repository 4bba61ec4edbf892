"""Sensitive groups: one value per row, or one per row and column, where a group is a combination of them.

With one column a group is its value, "woman". With several it is the tuple of one value per column, ("woman", "x"), in which
None stands for any: ("woman", None) are all women.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError


@dataclass(frozen=True)
class Groups:
    """The sensitive values of all rows: objects (n, columns)."""

    values: np.ndarray

    def has(self, group: Any) -> np.ndarray:
        """bool (n,): who is in a group."""
        columns = self.values.shape[1]
        asked = (group,) if columns == 1 else group if isinstance(group, tuple) else ()
        if len(asked) != columns:
            return np.zeros(len(self.values), bool)
        held = [self.values[:, k] == _boxed(value) for k, value in enumerate(asked) if value is not None]
        return np.logical_and.reduce([np.ones(len(self.values), bool), *held]).astype(bool)

    @property
    def all(self) -> list[Any]:
        """The groups that there are, sorted by their names."""
        rows = set(map(tuple, self.values.tolist()))
        return sorted((row[0] if len(row) == 1 else row for row in rows), key=str)

    def taken(self, rows: np.ndarray) -> "Groups":
        """Those of some of the rows."""
        return Groups(self.values[rows])


def check_groups(sensitive_features: Any, rows: int) -> Groups | None:
    """The sensitive values of every row; None where none were passed."""
    if sensitive_features is None:
        return None
    values = np.asarray(sensitive_features, dtype=object)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != rows or not values.shape[1]:
        raise InputError(
            f"sensitive_features has shape {np.shape(sensitive_features)}",
            f"one group per row, shape ({rows},), or one per row and column, shape ({rows}, k)",
            "pass the column of the frame that X was made of, or several: frame[['sex', 'origin']]",
        )
    missing = np.asarray([any(map(_is_missing, row)) for row in values])
    if missing.any():
        raise InputError(
            f"sensitive_features holds {missing.sum()} missing values, first in row {int(missing.argmax())}",
            "a group for every row",
            'drop those rows, or make them a group of their own: fillna("unknown")',
        )
    return Groups(values)


def check_known(groups: Groups | None, known: np.ndarray | None):
    """Refuse groups that no constraint can have been about."""
    if groups is None or known is None:
        return
    unknown = sorted(set(groups.all) - set(known.tolist()), key=str)
    if unknown:
        raise InputError(
            f"sensitive_features holds groups that were not there in fit: {unknown[:4]}",
            f"the groups {known.tolist()[:8]}",
            "drop those rows, or fit again with rows of these groups",
        )


def as_objects(values: list[Any]) -> np.ndarray:
    """A one-dimensional array of objects, tuples among them."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def called(group: Any) -> str:
    """A group as a word: the values of a combination beside each other."""
    return (
        ", ".join("any" if value is None else str(value) for value in group) if isinstance(group, tuple) else str(group)
    )


def _boxed(value: Any) -> np.ndarray:
    """One object as an array without axes, whatever it is."""
    box = np.empty((), object)
    box[()] = value
    return box


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True

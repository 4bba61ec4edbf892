"""What a data set is once it is loaded, what a file of this folder declares about one, and those that are declared, by name."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..errors import InputError
from ..registry import by_name, declared, unknown_name

DEFAULT_ENCODING = "paper"  # every data set has an encoding of this name
DTYPES = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class Encoded:
    """Rows as numbers.

    **Arguments:**

    - `features`: (n, d), computed in float64 and rounded once to the type asked for.
    - `labels`: (n,), +1 or -1, in the type of `features`.
    - `columns`: d names, one per feature; an indicator is named `column=level`.
    - `groups`: columns of strings, (n,) each, by which groups of rows can be chosen.
    - `population`, `labelled`: the rows of A and of D in the fairness problems; all rows unless a split is made.
    """

    features: np.ndarray
    labels: np.ndarray
    columns: tuple[str, ...]
    groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    population: slice = field(default_factory=lambda: slice(None))
    labelled: slice = field(default_factory=lambda: slice(None))


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset(Encoded):
    """A loaded data set: arrays that may not be written to, and where they come from."""

    name: str
    encoding: str
    description: str
    citation: str
    licence: str

    @property
    def positives(self) -> np.ndarray:
        """The features of the rows with label +1."""
        return self.features[self.labels > 0]

    @property
    def negatives(self) -> np.ndarray:
        """The features of the rows with label -1."""
        return self.features[self.labels < 0]

    def in_group(self, group: str) -> np.ndarray:
        """bool (n,): the rows of a group, given as `column=level`."""
        column, equals, level = group.partition("=")
        if not equals:
            raise InputError(
                f"the group {group!r} of {self.name}",
                "a column and one of its levels, as in column=level",
                f"name one of the columns {', '.join(sorted(self.groups)) or '(there are none)'}",
            )
        if column not in self.groups:
            raise unknown_name(f"column for groups of {self.name}", column, self.groups)
        rows = self.groups[column] == level
        if not rows.any():
            raise unknown_name(f"level of {column}", level, map(str, np.unique(self.groups[column])))
        return rows

    def __repr__(self) -> str:
        rows, d = self.features.shape
        return f"Dataset({self.name!r}, {rows} rows, d = {d}, {self.features.dtype}, encoding={self.encoding!r})"


@dataclass(frozen=True)
class Declaration:
    """What a file of this folder says about its data set.

    **Arguments:**

    - `name`: how people ask for it.
    - `encode`: a function of (encoding, dtype) that finds the files and returns the rows as numbers.
    - `encodings`: the encodings on offer and what each does; the first is the default.
    - `description`, `citation`, `licence`: for people.
    """

    name: str
    encode: Callable[[str, np.dtype], Encoded]
    encodings: Mapping[str, str]
    description: str
    citation: str
    licence: str

    def load(self, encoding: str, dtype: np.dtype) -> Dataset:
        """The data set, in arrays that may not be written to."""
        encoded = self.encode(encoding, dtype)
        for array in (encoded.features, encoded.labels, *encoded.groups.values()):
            array.flags.writeable = False
        return Dataset(
            **vars(encoded),
            name=self.name,
            encoding=encoding,
            description=self.description,
            citation=self.citation,
            licence=self.licence,
        )


def names() -> tuple[str, ...]:
    """The names of all data sets."""
    return tuple(sorted(_declarations()))


def about(name: str) -> Declaration:
    """What is declared about a data set: description, citation, licence, encodings. Reads no data."""
    if name not in _declarations():
        raise unknown_name("data set", name, names())
    return _declarations()[name]


def load(name: str, *, encoding: str = DEFAULT_ENCODING, dtype: str = "float32") -> Dataset:
    """A data set, found or downloaded, and encoded; kept in memory, so that asking again costs nothing.

    **Arguments:**

    - `name`: one of `names()`.
    - `encoding`: how columns become features; `about(name).encodings` lists what there is.
    - `dtype`: of the features. The arithmetic is float64; only the result is rounded.
    """
    declaration = about(name)
    if encoding not in declaration.encodings:
        raise unknown_name(f"encoding of {name}", encoding, declaration.encodings)
    if dtype not in DTYPES:
        raise InputError(f"dtype={dtype!r}", " or ".join(map(repr, DTYPES)), "leave it out for float32")
    return _load(name, encoding, dtype)


@functools.cache
def _load(name: str, encoding: str, dtype: str) -> Dataset:
    return _declarations()[name].load(encoding, np.dtype(dtype))


@functools.cache
def _declarations() -> dict[str, Declaration]:
    return by_name(declared(__package__ or "", "DATASET"))

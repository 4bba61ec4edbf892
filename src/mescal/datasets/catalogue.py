"""The data sets that the files of this folder declare, by name."""

import functools

import numpy as np

from ..errors import InputError
from ..registry import by_name, declared, unknown_name
from .dataset import DEFAULT_ENCODING, Dataset, Declaration

DTYPES = ("float32", "float64")


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

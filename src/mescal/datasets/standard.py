"""The two encodings of tables that hold nothing but numbers: standardised columns, with or without unit rows."""

import numpy as np

from .preprocess import standardise, unit_rows

ENCODINGS = {
    "paper": "columns standardised, then rows scaled to length 1",
    "standardised": "columns standardised, rows left as they are",
}


def encode_numbers(values: np.ndarray, encoding: str, dtype: np.dtype) -> np.ndarray:
    """A matrix of numbers in one of `ENCODINGS`."""
    scaled = standardise(values)
    return (unit_rows(scaled) if encoding == "paper" else scaled).astype(dtype)

"""Diabetes: 442 patients x 10; +1 where the disease progressed by more than the median (221). With scikit-learn.

A and D are all rows: there are too few to split. Groups are by sex, which the source codes 1 (235) and 2 (207) without
saying which is which.
"""

import numpy as np

from .dataset import Declaration, Encoded
from .places import load_bundled
from .preprocess import ENCODINGS, encode_numbers, signs


def encode(encoding: str, dtype: np.dtype) -> Encoded:
    """All rows in scikit-learn's order, from the unscaled values."""
    bunch = load_bundled("diabetes", scaled=False)
    columns = tuple(map(str, bunch.feature_names))
    sex = bunch.data[:, columns.index("sex")].astype(int).astype(str)
    progressed = bunch.target > np.median(bunch.target)
    return Encoded(encode_numbers(bunch.data, encoding, dtype), signs(progressed, dtype), columns, groups={"sex": sex})


DATASET = Declaration(
    name="diabetes",
    encode=encode,
    encodings=ENCODINGS,
    description="442 patients, 10 measurements; did the disease progress by more than the median (+1) or not (-1)?",
    citation="Efron, Hastie, Johnstone, Tibshirani: Least angle regression. Annals of Statistics 32, 2004",
    licence="public; comes with scikit-learn",
)

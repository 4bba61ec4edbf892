"""Breast cancer Wisconsin (diagnostic): 569 x 30; +1 for malignant (212), -1 for benign (357). With scikit-learn.

Malignant is the positive class because Neyman-Pearson bounds false alarms and minimises misses, and a missed cancer is
the error to be made rare. (scikit-learn codes it the other way: 0 for malignant.)
"""

import numpy as np

from .bundled import load_bundled
from .dataset import Declaration, Encoded
from .preprocess import signs
from .standard import ENCODINGS, encode_numbers


def encode(encoding: str, dtype: np.dtype) -> Encoded:
    """All rows in scikit-learn's order."""
    bunch = load_bundled("breast_cancer")
    malignant = bunch.target == list(bunch.target_names).index("malignant")
    features = encode_numbers(bunch.data, encoding, dtype)
    return Encoded(features, signs(malignant, dtype), tuple(map(str, bunch.feature_names)))


DATASET = Declaration(
    name="breast-cancer",
    encode=encode,
    encodings=ENCODINGS,
    description="569 tumours, 30 measurements of their cells' nuclei; malignant (+1) or benign (-1)",
    citation="Wolberg, Mangasarian, Street, Street: Breast Cancer Wisconsin (Diagnostic). UCI Machine Learning "
    "Repository, 1993, doi:10.24432/C5DW2B",
    licence="CC BY 4.0",
)

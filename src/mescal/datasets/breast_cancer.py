"""Breast cancer Wisconsin (diagnostic): 569 x 30; +1 for malignant (212), -1 for benign (357). With scikit-learn.

Malignant is the positive class because Neyman-Pearson bounds false alarms and minimises misses, and a missed cancer is
the error to be made rare. (scikit-learn codes it the other way: 0 for malignant.)
"""

import numpy as np

from .dataset import Declaration, Encoded
from .places import bundled_file, load_bundled
from .preprocess import ENCODINGS, encode_numbers, signs

FILE = "breast_cancer.csv", "fed3eb72d0575ef6192293f5093c6e801b1476b577d0386bf4455504522172ed"
MEASURES = ("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity")
MEASURES += ("concave points", "symmetry", "fractal dimension")
COLUMNS = tuple(pattern.format(name) for pattern in ("mean {}", "{} error", "worst {}") for name in MEASURES)


def read() -> tuple[np.ndarray, np.ndarray]:
    """Measurements, and which tumours are malignant, in scikit-learn's order."""
    path = bundled_file(*FILE)
    if path is not None:
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        return table[:, :-1], table[:, -1] == 0
    bunch = load_bundled("breast_cancer")
    return bunch.data, bunch.target == list(bunch.target_names).index("malignant")


def encode(encoding: str, dtype: np.dtype) -> Encoded:
    """All rows in scikit-learn's order."""
    values, malignant = read()
    return Encoded(encode_numbers(values, encoding, dtype), signs(malignant, dtype), COLUMNS)


DATASET = Declaration(
    name="breast-cancer",
    encode=encode,
    encodings=ENCODINGS,
    description="569 tumours, 30 measurements of their cells' nuclei; malignant (+1) or benign (-1)",
    citation="Wolberg, Mangasarian, Street, Street: Breast Cancer Wisconsin (Diagnostic). UCI Machine Learning "
    "Repository, 1993, doi:10.24432/C5DW2B",
    licence="CC BY 4.0",
)

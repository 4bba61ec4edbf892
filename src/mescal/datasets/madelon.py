"""Madelon: 2,600 x 500, train rows before validation rows; 1,300 of each class, labels +1 and -1."""

import numpy as np

from .dataset import Declaration, Encoded
from .places import Files
from .preprocess import ENCODINGS, encode_numbers, signs

FILES = Files(
    {
        "madelon_train.data": "0b6e37711efdc7ab74250c51e7d6966bffd9f8f2b0e9971e882c3a7a380c2314",
        "madelon_train.labels": "10bffcc3b017467cb810d326b931951adcbde2b4870faf981da2991993b48689",
        "madelon_valid.data": "025ff83b9378a1b1ec0194524ab709b5680d24c21d7a226753d46b0004a1b83c",
        "madelon_valid.labels": "fbac32fa87fac41ab731994a1c824e7b25396069bff6df242c01fe240fcb34dc",
    },
    archive="static/public/171/madelon.zip",
)


def encode(encoding: str, dtype: np.dtype) -> Encoded:
    """The 2,000 train rows, then the 600 validation rows."""
    found = FILES.find()
    values = np.concatenate([np.loadtxt(found[f"madelon_{part}.data"]) for part in ("train", "valid")])
    labels = np.concatenate([np.loadtxt(found[f"madelon_{part}.labels"]) for part in ("train", "valid")])
    features = encode_numbers(values, encoding, dtype)
    return Encoded(features, signs(labels == 1, dtype), tuple(f"x{i}" for i in range(features.shape[1])))


DATASET = Declaration(
    name="madelon",
    encode=encode,
    encodings=ENCODINGS,
    description="2,600 artificial points, 500 features of which 20 matter; two classes of 1,300",
    citation="Guyon, Gunn, Ben-Hur, Dror: Result analysis of the NIPS 2003 feature selection challenge. NIPS 2004, "
    "doi:10.24432/C5602H",
    licence="CC BY 4.0",
)

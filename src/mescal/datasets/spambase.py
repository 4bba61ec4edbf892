"""Spambase: 4,601 e-mails x 57 word and character frequencies; +1 for spam (1,813), -1 for other mail (2,788)."""

import numpy as np

from .dataset import Declaration, Encoded
from .places import Files
from .preprocess import ENCODINGS, encode_numbers, signs

FILES = Files(
    {"spambase.data": "b1ef93de71f97714d3d7d4f58fc9f718da7bbc8ac8a150eff2778616a8097b12"},
    archive="static/public/94/spambase.zip",
)


def encode(encoding: str, dtype: np.dtype) -> Encoded:
    """All rows in the order of the file."""
    table = np.loadtxt(FILES.find()["spambase.data"], delimiter=",")
    features = encode_numbers(table[:, :-1], encoding, dtype)
    return Encoded(features, signs(table[:, -1] == 1, dtype), tuple(f"x{i}" for i in range(features.shape[1])))


DATASET = Declaration(
    name="spambase",
    encode=encode,
    encodings=ENCODINGS,
    description="4,601 e-mails, 57 frequencies of words and characters; spam (+1) or not (-1)",
    citation="Hopkins, Reeber, Forman, Suermondt: Spambase. UCI Machine Learning Repository, 1999, doi:10.24432/C53G6X",
    licence="CC BY 4.0",
)

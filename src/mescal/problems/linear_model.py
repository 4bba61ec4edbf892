"""The linear model of the classification problems, one sample at a time.

    score(x; a) = sigma(a'x),   miss(x; a) = sigma(-a'x) = 1 - score(x; a),   sigma(z) = 1 / (1 + exp(-z))

Functions live at module level: two problems that share them share their compiled programs.
"""

import jax

from ..datasets import about
from .named import Parameter

DTYPE = Parameter(
    "float32",
    "the type of the data and of x0; features are computed in float64 and rounded once",
    choices=("float32", "float64"),
    restates=False,
)


def score(x, a):
    """The predicted probability of the positive class."""
    return jax.nn.sigmoid(a @ x)


def miss(x, a):
    """The predicted probability of the negative class, without the cancellation of 1 - score."""
    return jax.nn.sigmoid(-(a @ x))


def encoding_of(dataset: str) -> Parameter:
    """The parameter that chooses how a data set's columns become features."""
    encodings = about(dataset).encodings
    text = "; ".join(f"{name}: {what}" for name, what in encodings.items())
    return Parameter(next(iter(encodings)), f"how columns become features ({text})", choices=tuple(encodings))

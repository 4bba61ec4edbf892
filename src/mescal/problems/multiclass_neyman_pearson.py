"""Multi-class Neyman-Pearson: min M_1(x)  s.t.  M_k(x) <= rate for every class k > 1.

    M_k(x) = mean_{a in class k} sum_{l != k} sigma(x_l'a - x_k'a),   sigma(z) = 1 / (1 + exp(-z))

x is a row x_k for every class, one behind the other, and a row of data goes to the class of the largest x_k'a; M_k is a smooth
count of the classes by which a member of class k is beaten. The problem is that of Ma, Lin and Yang (2020) and of Liu and Xu
(arXiv 2501.19214), on made-up rows a = (g + c_k, 1) with Gaussian g, c_1 = 0, and the other centres c_k of length `distance`.

1. x lies in a box, in place of a ball for every row: bounds are what every solver knows.
"""

import jax
import jax.numpy as jnp
import numpy as np

from ..problem import E, Problem
from ..sets import Box
from .linear_model import DTYPE
from .named import Entry, Instance, Parameter

RADIUS = 50.0  # of the box: scores of +-1 are saturated long before


def beaten(x, row):
    """By how many classes a row is beaten, smoothly; the row brings the number of its own class as a one-hot vector."""
    a, own = row
    scores = x.reshape(own.size, a.size) @ a
    return jnp.sum((1 - own) * jax.nn.sigmoid(scores - own @ scores))


def build(*, classes: int, rows: int, d: int, rate: float, distance: float, seed: int, dtype: str) -> Instance:
    """The problem with as many rows in every class."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((classes, d))
    centres *= distance / np.linalg.norm(centres, axis=1, keepdims=True)
    centres[0] = 0

    def members(k: int) -> tuple[np.ndarray, np.ndarray]:
        drawn = rng.standard_normal((rows, d)) + centres[k]
        own = np.zeros((rows, classes), dtype)
        own[:, k] = 1
        return np.column_stack([drawn, np.ones(rows)]).astype(dtype), own

    over = [members(k) for k in range(classes)]
    limits = {f"class {k + 1}": E(beaten, over=over[k]) <= rate for k in range(1, classes)}
    return Instance(Problem(E(beaten, over=over[0]), limits, Box(-RADIUS, RADIUS)), np.zeros(classes * (d + 1), dtype))


PROBLEMS = (
    Entry(
        "synthetic/neyman-pearson",
        build,
        "Neyman-Pearson classification of several classes, on made-up data: fewest misses in one, bounds on the others",
        {
            "classes": Parameter(5, "the number of classes", low=2),
            "rows": Parameter(400, "in every class", low=2),
            "d": Parameter(10, "the number of features, without the constant one", low=1),
            "rate": Parameter(0.2, "the largest M_k of the classes behind the first", low=0),
            "distance": Parameter(2.5, "of the other classes' centres from that of the first", low=0),
            "seed": Parameter(0, "of the data", low=0),
            "dtype": DTYPE,
        },
    ),
)

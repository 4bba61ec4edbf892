"""Synthetic fairness: the fairness problem on rows a = g/|g|, labels with P(y = 1) = sigma(3 sqrt(d) a'w), of any size.

g is Gaussian and w of length 1, so that sqrt(d) a'w has deviation about 1. The target group are the 28 % of A with
the lowest a'(w + v), v another direction: it is scored lower than the population, and the constraint is active.
"""

import numpy as np

from .fairness import RHO, fairness_problem, start
from .linear_model import DTYPE
from .named import Entry, Instance, Parameter

SHARPNESS = 3.0  # deviation of the log-odds: labels neither noise nor certain
SHARE = 0.28  # |A_tar| / |A|, as in the paper's bank problem


def build(*, rows: int, d: int, tau: float, rho: float, seed: int, dtype: str) -> Instance:
    """The problem with |D| = |A| = rows."""
    from scipy.special import expit  # here, and not above: the catalogue imports this file for every problem

    rng = np.random.default_rng(seed)
    w, v = np.linalg.qr(rng.standard_normal((d, 2)))[0].T.astype(dtype)

    def points() -> np.ndarray:
        # Made in its final type and scaled in place: at this family's largest sizes a copy would not fit.
        drawn = rng.standard_normal((rows, d), dtype=np.dtype(dtype).type)
        drawn /= np.maximum(np.linalg.norm(drawn, axis=1, keepdims=True), np.finfo(dtype).tiny)
        return drawn

    labelled, population = points(), points()
    chance = expit(SHARPNESS * np.sqrt(d) * (labelled @ w))
    labels = np.where(rng.uniform(size=rows) < chance, 1, -1).astype(dtype)
    lowest = np.argsort(population @ (w + v), kind="stable")[: max(1, round(SHARE * rows))]
    problem = fairness_problem((labelled, labels), population, population[np.sort(lowest)], tau, rho)
    return Instance(problem, start(d, dtype))


PROBLEMS = (
    Entry(
        "synthetic/fairness",
        build,
        "The fairness problem on made-up data of any size, with an active constraint, for scaling studies",
        {
            "rows": Parameter(10_000, "the number of rows of D and of A", low=2),
            "d": Parameter(50, "the number of features", low=2),
            "tau": Parameter(0.8, "the least rate of the target group, as a fraction of the population's", low=0),
            "rho": RHO,
            "seed": Parameter(0, "of the data", low=0),
            "dtype": DTYPE,
        },
    ),
)

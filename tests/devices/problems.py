"""The problem of these tests, whatever holds its rows: two populations of sizes that no number of devices divides."""

import re

import jax
import numpy as np

import mescal
from mescal import E

COLLECTIVES = r"(all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter|collective-broadcast)(?:-start)?\("


def rows() -> dict[str, np.ndarray]:
    """Rows of two classes and weights of the first."""
    rng = np.random.default_rng(0)
    return {
        "positives": (rng.normal(size=(1501, 5)) + 0.4).astype(np.float32),
        "ages": rng.integers(0, 3, 1501),
        "flags": rng.uniform(size=1501) < 0.5,
        "negatives": rng.normal(size=(1203, 5)) - 0.4,  # float64: the judge looks at them as they are
        "weights": rng.uniform(0.5, 2.0, 1501),
    }


def score(w, a):
    """A probability."""
    return jax.nn.sigmoid(a @ w)


def miss(w, row):
    """A loss on a row of three columns, of three types."""
    a, age, flag = row
    return (1 - score(w, a)) * (1 + 0.1 * age) + 0.01 * flag


def problem(hold, weigh=lambda weights: weights) -> mescal.Problem:
    """A Neyman-Pearson problem; `hold` makes of arrays what `over=` is given."""
    data = rows()
    first = hold((data["positives"], data["ages"], data["flags"]))
    return mescal.Problem(
        E(miss, over=first, weights=weigh(data["weights"])),
        {"rate": E(score, over=hold(data["negatives"])) <= 0.3},
        mescal.sets.Box(-20.0, 20.0),
    )


def collectives(text: str) -> list[str]:
    """The kinds of collective operations in a compiled program."""
    return sorted(set(re.findall(COLLECTIVES, text)))


def measures(certificate: mescal.Certificate) -> dict[str, float]:
    """What a certificate says, as numbers."""
    return {
        "stationarity": certificate.stationarity.value,
        "feasibility": certificate.feasibility.value,
        "curvature": certificate.curvature.value,
        "whole": certificate.curvatures["whole"].value,
        "objective": certificate.objective.value,
    }

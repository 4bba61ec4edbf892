"""Neyman-Pearson classification: min mean_{a in P} sigma(-a'x)  s.t.  mean_{a in N} sigma(a'x) <= tau.

The paper's second experiment, with phi(u) = 1 / (1 + exp(u)) = sigma(-u): misses among the positives P are minimised,
false alarms among the negatives N are at most tau. The objective samples the positives and the constraint the
negatives (the paper's text exchanges the two). x0 = 0.
"""

from functools import partial

import numpy as np

from .. import datasets
from ..problem import E, Problem
from .linear_model import DTYPE, encoding_of, miss, score
from .named import Entry, Instance, Parameter


def build(dataset: str, *, tau: float, encoding: str, dtype: str) -> Instance:
    """The problem on a data set."""
    data = datasets.load(dataset, encoding=encoding, dtype=dtype)
    problem = Problem(E(miss, over=data.positives), {"false positives": E(score, over=data.negatives) <= tau})
    return Instance(problem, np.zeros(data.features.shape[1], dtype))


def _entry(dataset: str, tau: float, optimum: float | None = None) -> Entry:
    about = datasets.about(dataset)
    return Entry(
        f"neyman-pearson/{dataset}",
        partial(build, dataset),
        f"Fewest misses at a false-positive rate of at most tau. {about.description}",
        {
            "tau": Parameter(tau, "the largest false-positive rate", low=0, high=1),
            "encoding": encoding_of(dataset),
            "dtype": DTYPE,
        },
        optimum=optimum,
    )


PROBLEMS = (
    # Both have many local minima; these are the lowest values known.
    _entry("spambase", tau=0.2, optimum=0.0066),
    _entry("madelon", tau=0.4, optimum=0.148),
    _entry("breast-cancer", tau=0.2),
)

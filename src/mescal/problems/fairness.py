"""Fairness: min mean_D phi_rho(log(1 + exp(-y a'x)))  s.t.  tau mean_A sigma(a'x) <= mean_Atar sigma(a'x).

The paper's first experiment, with phi_rho(u) = rho log(1 + u/rho), a logistic loss truncated for outliers. The target
group must be predicted positive at a rate of at least tau times the population's. x0 = 20/sqrt(d) (1, ..., 1). The
paper does not give rho: 2 unless told otherwise.

With the paper's tau and our reading of the data the constraint is slack at the solution. The `-tight` variants ask for
more, for a group that the unconstrained model puts at a disadvantage, so that the constraint is active. Measured with
an augmented Lagrangian and L-BFGS on full gradients in float64:

| problem | group (rows in A) | tau | rate of the group / of A without the constraint | multiplier | objective |
|---|---|---|---|---|---|
| bank | marital=single (6,320) | 0.4 | 1.330 | 0 | 0.167603 |
| bank-tight | marital=married (13,664) | 1.0 | 0.852 | 0.282 | 0.169592 |
| loan | home_ownership=MORTGAGE (31,356) | 0.6 | 1.019 | 0 | 0.339599 |
| loan-tight | term=60 months (14,996) | 1.0 | 0.906 | 0.153 | 0.345317 |
| diabetes | sex=1 (235) | 0.8 | 0.983 | 0 | 0.382515 |
| diabetes-tight | sex=1 (235) | 1.1 | 0.983 | 0.293 | 0.391224 |
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .. import datasets
from ..problem import E, Problem
from .linear_model import DTYPE, encoding_of, score
from .named import Entry, Instance, Parameter

RHO = Parameter(2.0, "the scale beyond which the loss is truncated", low=1e-6)
START = 20.0  # the length of x0


@functools.cache
def truncated_logistic(rho: float) -> Callable:
    """phi_rho of the logistic loss of one sample (a, y); one function per rho, so that compiled programs are shared."""

    def loss(x, sample):
        a, y = sample
        return rho * jnp.log1p(jax.nn.softplus(-y * (a @ x)) / rho)

    return loss


def fairness_problem(labelled, population, target, tau: float, rho: float) -> Problem:
    """The problem on D (features and labels), A and A_tar."""
    rate = tau * E(score, over=population) - E(score, over=target)
    return Problem(E(truncated_logistic(rho), over=labelled), {"fairness": rate <= 0})


def start(d: int, dtype: str) -> np.ndarray:
    """The paper's x0."""
    return np.full(d, START / np.sqrt(d), dtype)


def build(dataset: str, *, tau: float, rho: float, group: str, encoding: str, dtype: str) -> Instance:
    """The problem on a data set."""
    data = datasets.load(dataset, encoding=encoding, dtype=dtype)
    population = data.features[data.population]
    target = population[data.in_group(group)[data.population]]
    labelled = (data.features[data.labelled], data.labels[data.labelled])
    return Instance(fairness_problem(labelled, population, target, tau, rho), start(population.shape[1], dtype))


SHARED = "Logistic model whose rate for a target group is at least tau times the population's."


def _demand(name: str, group: str, tau: float) -> str:
    """What sets a tight variant apart from the problem that it varies."""
    return f"With an active constraint ({group}, tau {tau:g}). " if name.endswith("-tight") else ""


def _entry(name: str, group: str, tau: float, optimum: float) -> Entry:
    dataset = name.removesuffix("-tight")
    about = datasets.about(dataset)
    return Entry(
        f"fairness/{name}",
        functools.partial(build, dataset),
        f"{SHARED} {_demand(name, group, tau)}{about.description}",
        {
            "tau": Parameter(tau, "the least rate of the target group, as a fraction of the population's", low=0),
            "rho": RHO,
            "group": Parameter(group, "the target group, as column=level"),
            "encoding": encoding_of(dataset),
            "dtype": DTYPE,
        },
        optimum=optimum,
    )


PROBLEMS = (
    _entry("bank", "marital=single", tau=0.4, optimum=0.167603),
    _entry("bank-tight", "marital=married", tau=1.0, optimum=0.169592),
    _entry("loan", "home_ownership=MORTGAGE", tau=0.6, optimum=0.339599),
    _entry("loan-tight", "term=60 months", tau=1.0, optimum=0.345317),
    _entry("diabetes", "sex=1", tau=0.8, optimum=0.382515),
    _entry("diabetes-tight", "sex=1", tau=1.1, optimum=0.391224),
)

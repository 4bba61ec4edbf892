"""Rare events, offsets and draws that show nothing: what intervals from samples see, and what they say of the rest.

Thresholds: at confidence 0.95 all bounds together fail with probability 0.05, a single one with 0.05/3. Of 60 runs more than 9
failures have probability 0.2 % at 0.05; seeds are fixed.
"""

import jax
import numpy as np
import pytest

import mescal
from mescal import E, Sampler
from mescal.certificate import confidence
from mescal.certificate.scalars import Frame
from mescal.oracle.evaluator import Evaluator
from mescal.problem import Population


def bent(x, event):
    """H_i = -0.12 + 100 [event]: of probability 0.001, so that the curvature is -0.02."""
    return 0.5 * (-0.12 + 100.0 * event) * x[0] ** 2


def uniform(key):
    return jax.random.uniform(key, ())


def bernoulli(probability):
    return Sampler(lambda key: jax.random.bernoulli(key, probability).astype(float))


def test_curvature_from_rare_events_is_not_certified_by_chance():
    """-0.02 against a tolerance of 0.01: at most 9 of 60 may pass; 512 rows alone see no event in three of five runs."""
    problem = mescal.Problem(E(bent, over=bernoulli(1e-3)))
    found = [mescal.certify(problem, np.zeros(1), tol=0.01, samples=8192, seed=seed) for seed in range(60)]
    assert sum(certificate.passes(0.01) for certificate in found) <= 3
    covered = [c.curvature.lower <= -0.02 <= c.curvature.upper for c in found]
    assert np.mean(covered) >= 0.93


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e8])
def test_offsets_cost_no_digits(offset):
    """The variances of values and gradients do not change when a constant is added; E[u^2] - E[u]^2 would have none left."""
    rows = np.random.default_rng(0).normal(size=(20_000, 2))
    problem = mescal.Problem(E(lambda x, a: x[0] * (a[0] + offset) + offset + a[1], over=mescal.stream(rows)))
    program, x = problem.bind(np.ones(1))
    population = Population(rows)
    judge = Evaluator.of(program, [population])
    found = confidence.moments(judge, [population], (True,), x, np.zeros(0), Frame.none(x.size))
    n = len(rows) * (len(rows) - 1)
    assert found.gradient.trace == pytest.approx(np.var(rows[:, 0]) * len(rows) / n, rel=1e-6)
    assert found.objective == pytest.approx(np.var(rows.sum(1)) * len(rows) / n, rel=1e-6)


def slope(x, u):
    return x[0] * u


@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda key: 1.0 + jax.random.normal(key, ()), 1.0),
        (lambda key: 1.0 + jax.random.bernoulli(key, 1e-2).astype(float) * 100.0, 2.0),
        (lambda key: 1.0 + jax.random.bernoulli(key, 1e-3).astype(float) * 1000.0, 2.0),
        (lambda key: jax.random.pareto(key, 2.5, ()), 2.5 / 1.5),  # two moments, no third
        (lambda key: 1.0 + 1e-6 * jax.random.normal(key, ()), 1.0),
    ],
    ids=["gaussian", "one in 100", "one in 1,000", "heavy tails", "tiny variance"],
)
def test_intervals_cover_the_mean(draw, mean):
    """Of 60 runs more than 9 misses have probability 0.2 % at a failure probability of 0.05."""
    problem = mescal.Problem(E(slope, over=Sampler(draw)))
    found = [mescal.certify(problem, np.zeros(1), samples=8192, seed=seed).stationarity for seed in range(60)]
    assert np.mean([m.lower <= mean + 1e-9 and mean - 1e-9 <= m.upper for m in found]) >= 0.85


def test_draws_that_show_nothing_are_said_to_show_nothing():
    """A spike of 10^6 with probability 10^-9 makes a gradient of 0.001 that no run will ever see."""
    problem = mescal.Problem(E(lambda x, u: 0.5 * x @ x + 1e6 * x[0] * (u < 1e-9), over=Sampler(uniform)))
    found = mescal.certify(problem, np.zeros(1), tol=0.01)
    assert "blind to events rarer than 1 in 2,7" in found.stationarity.how
    (sentence,) = [warning for warning in found.warnings if "draws differ" in warning]
    assert "gradient" in sentence and "Hessian" in sentence and "give `bounds`" in sentence
    bounded = mescal.certify(
        problem, np.zeros(1), tol=0.01, samples=8192, bounds={"gradient": 1e6, "hessian": 1.0, "constraint": 1.0}
    )
    assert not bounded.passes(0.01) and not any("draws differ" in warning for warning in bounded.warnings)

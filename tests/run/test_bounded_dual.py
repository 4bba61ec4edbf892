"""Bounded dual variables: |lam_k| <= |lam_0| + sum_{j<k} gamma_j for any noise, read from the history of every solver.

The problem is infeasible, c >= 1, and its noise is heavy-tailed (Student's t with two degrees of freedom: no variance), so
that the mean constraint of a batch can be anything.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest

import mescal
from mescal import E, Outer, Tolerance, theory
from mescal.run.between_solves import summable_bound
from mescal.solvers import Natasha2Theory, SgHvNcTheory, SpiderTheory

START = np.array([0.3], np.float32)


def heavy(key):
    return jax.random.t(key, 2.0)


@pytest.fixture(scope="module")
def hostile() -> mescal.Problem:
    constraint = E(lambda x, noise: x[0] ** 2 + 1 + 2 * noise, over=mescal.Sampler(heavy))
    return mescal.Problem(E(lambda x: (x[0] - 1) ** 2), {"c": constraint == 0})


def sizes(history) -> np.ndarray:
    """|lam_k| of every row, the last one included."""
    return np.array([np.linalg.norm(row.multipliers) for row in history])


def bounds(gammas) -> np.ndarray:
    """sum_{j<k} gamma_j, k = 0, 1, ...; a rounding above."""
    return np.concatenate([[0.0], np.cumsum(gammas)[:-1]]) * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spider", "sg-hv-nc", "natasha2"])
def test_multipliers_stay_bounded(hostile, name):
    given = {"tol": Tolerance(0.5, 0.5), "solver": name, "max_outer": 6}
    outer = Outer(scale=False, max_inner=20)
    history = mescal.minimize(hostile, START, outer=replace(outer, bounded_dual=True), **given).history
    limits = bounds([summable_bound(k, history[0].feasibility) for k in range(len(history))])
    assert len(history) == 6 and sizes(history)[1] > 0 and np.all(sizes(history) <= limits)
    plain = mescal.minimize(hostile, START, outer=outer, **given).history
    limits = bounds([summable_bound(k, plain[0].feasibility) for k in range(len(plain))])
    assert np.any(sizes(plain) > 2 * limits), "the plain rule stays bounded here, so this test shows nothing"


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver",
    [SpiderTheory(sharp=True), SgHvNcTheory(sharp=True), Natasha2Theory(sharp=True)],
    ids=lambda solver: solver.name,
)
def test_multipliers_of_theory_modes_stay_bounded(known, solver):
    """c = 0.1 v + 0.5 + noise on |v| <= 1, with constants that deny violation and noise: they promise nothing then.

    gamma_k = al_0 (kappa_c + sigma_c) log^2 2 / ((k+1) log^2(k+2)) is known before the run, and K* with it.
    """
    stated = known.stream
    problem = mescal.Problem(
        stated.objective,
        {"c": E(lambda x, noise: 0.1 * x[1] + 0.5 + 0.3 * noise, over=mescal.Sampler(heavy)) == 0},
        stated.domain,
    )
    wrong = replace(known.constants, jacobian_bound=0.1, constraint_bound=0.1, constraint_noise=0.02)
    given = {"penalty": 0.5, "growth": 2.0}
    history = known.minimize(solver, problem, constants=wrong, max_outer=4, **given).history
    limits = bounds([theory.dual_bound(k, 0.12, 0.5) for k in range(len(history))])
    assert len(history) == 4 and sizes(history)[1] > 0 and np.all(sizes(history) <= limits)
    assert limits[-1] < theory.predict(wrong, tol=known.tol, **given).schedule.multiplier_bound
    plain = np.concatenate([[0.0], np.cumsum(history.column("penalty") * history.column("feasibility"))[:-1]])
    assert plain[-1] > 2 * limits[-1]  # what lam + al c would have become

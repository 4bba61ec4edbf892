"""Saddles: started exactly at one, every solver leaves it; first-order methods stay."""

import numpy as np
import pytest

import mescal
from mescal import problems

SOLVERS = ("spider", "sg-hv-nc", "natasha2")
FAST = ("saddles/strict", "saddles/circle", "saddles/active-bounds")
SLOW = ("saddles/sphere-dense", "saddles/sphere-axis", "saddles/orthonormal")


def solve(name, solver, seed):
    named = problems.get(name)
    result = mescal.minimize(named.problem, named.x0, solver=solver, tol=0.01, seed=seed, cone=named.cone)
    assert result.converged, f"{name} {solver} seed {seed}: {result}"
    assert result.objective <= named.optimum + 0.01 * max(1, abs(named.optimum)), f"{name} {solver} {seed}: {result}"
    return result


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", FAST)
def test_every_solver_reaches_a_minimiser(name, solver):
    for seed in range(3):
        solve(name, solver, seed)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", SLOW)
def test_twenty_of_twenty_seeds(name, solver):
    named = problems.get(name)
    for seed in range(20):
        result = solve(name, solver, seed)
        assert sum(row.escapes for row in result.history) >= 1 or not np.array_equal(result.x, named.x0)

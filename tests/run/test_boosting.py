"""Boosting in `minimize`: a solver that succeeds every other time is lifted to 0.95, and to Option I's expectations.

The solver is a coin: heads, a point that is as good as it was asked for and no better; tails, a saddle, or a point off the
constraint. What is tested is everything around it: copies, verification, tolerances, what is kept when all copies fail.
"""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal.curvature import Search
from mescal.oracle import Work
from mescal.solvers import Natasha2Theory, SgHvNcTheory, SpiderTheory
from mescal.solvers.base import VERIFIED, Memory, Progress, fresh_progress
from mescal.solvers.paper.theory_mode import SEARCH, TheorySolver
from mescal.theory.natasha2 import FreeConstants
from mescal.theory.success import lower_bound

A, W = 0.125, 1.85
PENALTY, GROWTH = 4.0, 64.0  # K* = 1; the tests look at the first subproblem alone


class CoinState(eqx.Module):
    progress: Progress
    memory: Memory


class Coin(TheorySolver):
    """Good with probability 1/2."""

    name: ClassVar[str] = "coin-theory"
    guarantee: ClassVar[float | None] = 0.5

    heads: float = 0.5
    sharp: bool = eqx.field(static=True, default=True)
    search: Search = SEARCH
    surrogate: str = eqx.field(static=True, default="pair")

    def plan(self, goal, dtype):
        return jnp.asarray(goal.gradient, dtype)

    def sizes(self, plan):
        return plan, jnp.int32(1), jnp.int32(1)

    def init(self, oracle, z, plan, memory, key):
        return CoinState(fresh_progress(z, key), memory)

    def step(self, oracle, state, plan):
        key_next, key_coin, key_bad = jax.random.split(state.progress.key, 3)
        good = jnp.stack([(math.pi + jnp.arcsin(0.999 * plan / (A * W))) / W, jnp.zeros_like(plan)])
        saddle, ridge = jnp.zeros_like(good), jnp.asarray([0.0, 0.9], good.dtype)
        bad = jnp.where(jax.random.bernoulli(key_bad), saddle, ridge)
        old = state.progress
        z = jnp.where(jax.random.bernoulli(key_coin, jnp.asarray(self.heads)), good, bad)
        progress = Progress(
            z, key_next, old.steps + 1, jnp.int32(VERIFIED), old.work + Work.of(gradient_samples=1), old.searches,
            old.stationarity, old.curvature, old.escapes,
        )  # fmt: skip
        return CoinState(progress, state.memory)


def is_good(known, x, tol) -> bool:
    return known.gradient(x, 0.0, PENALTY) <= tol.gradient and known.curvature(x, PENALTY) >= -tol.curvature


def runs(known, solver, seeds, **changes):
    """The first subproblem alone."""
    return [known.minimize(solver, penalty=PENALTY, growth=GROWTH, max_outer=1, seed=s, **changes) for s in seeds]


def test_a_coin_is_lifted(known):
    """p_k = sqrt(0.95): 7 copies, all tails with probability 1/128. 0.95 is proved by 291 of 300.

    Ten or more failures of 300 have probability 1e-4. Alone, 30 of 60 are expected, 50 have probability 1e-7.
    """
    boosted = runs(known, Coin(), range(300), success=0.95)
    good = sum(is_good(known, result.x, known.tol) for result in boosted)
    copies = np.array([result.history[0].copies for result in boosted])
    print(f"{good} of 300 boosted, {copies.mean():.2f} copies in mean")
    assert lower_bound(good, 300) >= 0.95
    assert copies.max() <= 7 and 1.6 < copies.mean() < 2.4  # 2 expected, standard error 0.08
    assert all(r.history[0].inner == "verified" for r in boosted if is_good(known, r.x, known.tol))
    alone = sum(is_good(known, result.x, known.tol) for result in runs(known, Coin(), range(60)))
    assert 1 - lower_bound(60 - alone, 60) < 0.95


def test_copies_are_asked_for_half_the_tolerance(known):
    """A coin that always falls on heads returns what it was asked for; Option I halves once more."""
    for given, share in (({}, 1.0), ({"success": 0.95}, 0.5), ({"option": "I"}, 0.25)):
        (result,) = runs(known, Coin(heads=1.0), [0], **given)
        row = result.history[0]
        assert row.stationarity == pytest.approx(0.999 * share * known.tol.gradient, rel=1e-4)
        assert (row.copies, row.inner) == (1, "verified")


def test_where_every_copy_fails_nothing_is_verified(known):
    """Kept is a copy without negative curvature if there is one; there is none here, so the most stationary: the saddle."""
    (result,) = runs(known, Coin(heads=0.0), [0], success=0.95)
    row = result.history[0]
    assert row.inner == "cap" and row.copies == 7 and not result.converged
    assert np.allclose(result.x, 0)


def test_option_one_holds_in_expectation(known):
    """E|grad L| <= eps_g and E lambda_min >= -eps_H; alone, the coin misses both by far.

    q = eps_g/(2 G) = 0.06 here and 60 runs: means of the boosted measures are exact up to q of the bad ones; a copy passes
    with probability 1 - 2^-R, R = 7.
    """
    means = {}
    for option in ("I", "II"):
        points = [result.x for result in runs(known, Coin(), range(60), option=option)]
        means[option] = (
            np.mean([known.gradient(x, 0.0, PENALTY) for x in points]),
            np.mean([known.curvature(x, PENALTY) for x in points]),
        )
    assert means["I"][0] <= known.tol.gradient and means["I"][1] >= -known.tol.curvature
    assert means["II"][0] > known.tol.gradient


def test_the_work_of_all_copies_is_counted(known):
    """A coin spends one gradient; a copy also costs its outcome (one pass, one value) and its verification."""
    by_copies = {}
    for result in runs(known, Coin(), range(40), success=0.95):
        by_copies.setdefault(result.history[0].copies, []).append(result.work.solver.gradients)
    least = {copies: min(work) for copies, work in by_copies.items()}
    assert {1, 2, 3} <= set(least)
    assert least[2] > least[1] + 1 and least[3] > least[2] + 1


@pytest.mark.slow
def test_a_short_natasha2_is_lifted(known):
    """With c_N = 4 instead of 64 about 7 runs of 10 succeed, as the theorem's 2/3 would have it; 4 copies, 0.8 % of failures.

    0.95 is proved by 291 of 300 runs; ten failures have probability 2e-4. Alone, 60 of 60 would be 5e-10.
    """
    short = Natasha2Theory(sharp=True, free=FreeConstants(iterations=4.0))
    alone = sum(is_good(known, r.x, known.tol) for r in runs(known, short, range(60)))
    good = sum(is_good(known, r.x, known.tol) for r in runs(known, short, range(300), success=0.95))
    print(f"{good} of 300 boosted, {alone} of 60 alone")
    assert lower_bound(good, 300) >= 0.95
    assert 1 - lower_bound(60 - alone, 60) < 0.95


@pytest.mark.slow
@pytest.mark.parametrize("solver", [SpiderTheory(sharp=True), SgHvNcTheory(sharp=True), Natasha2Theory(sharp=True)])
def test_whole_runs_succeed_as_promised(known, solver):
    """59 certified runs of 59 prove 0.95; the judge is exact here. Promised failures of 5 % would show in 19 runs of 20."""
    results = [known.minimize(solver, seed=seed, success=0.95) for seed in range(59)]
    assert lower_bound(sum(result.converged for result in results), 59) >= 0.95

"""Uniformly random outputs in the memory of one: the reservoir, and what the solvers draw from it; fair signs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.solvers.paper.natasha15 import Natasha15Plan, hinge_gradient, natasha15
from mescal.solvers.paper.theory_mode import fair_sign, replaces

# 1 - 1e-6 quantiles of chi-square with k degrees of freedom.
CHI_SQUARE = {2: 27.7, 3: 30.7, 4: 33.4, 9: 45.1}


def chi_square(counts, probabilities=None):
    counts = np.asarray(counts)
    expected = counts.sum() * (np.full(counts.size, 1 / counts.size) if probabilities is None else probabilities)
    return np.sum((counts - expected) ** 2 / expected)


def test_every_candidate_is_kept_equally_often(key):
    """10 candidates, 20 000 reservoirs; false failures 1e-6."""

    @jax.jit
    @jax.vmap
    def keep(k):
        def one(i, kept):
            return jnp.where(replaces(jax.random.fold_in(k, i), i + 1), i, kept)

        return jax.lax.fori_loop(0, 10, one, jnp.int32(-1))

    kept = keep(jax.random.split(key, 20_000))
    assert chi_square(np.bincount(kept, minlength=10)) < CHI_SQUARE[9]


def test_signs_are_fair(key):
    """20 000 signs: |mean| < 5 standard errors, 6e-7."""
    signs = np.asarray(jax.jit(jax.vmap(lambda k: fair_sign(k, jnp.float32)))(jax.random.split(key, 20_000)))
    assert set(signs.tolist()) == {-1.0, 1.0}
    assert abs(signs.mean()) < 5 / np.sqrt(signs.size)


def test_output_of_sg_hv_nc_is_uniform_over_its_iterates(subproblem, knowing_solvers):
    """5 iterates, 600 runs, chi-square with 4 degrees of freedom: false failures 1e-6.

    With tiny gradient steps and no resets after the first, all moves of a run are equal, so that the distance from the
    start says which iterate came out. z_1, the start, is one of them; z_6 is not.
    """
    solver, counts = knowing_solvers["sg-hv-nc"], np.zeros(5, int)
    plan, size = subproblem.plan(solver), 1e-3
    for name, value in {"first_order_probability": 1, "first_order_reset_probability": 1e-7, "step_size": size,
                        "path_density": 1e-9, "steps": 5}.items():  # fmt: skip
        plan = eqx.tree_at(lambda p, n=name: getattr(p, n), plan, jnp.asarray(value, getattr(plan, name).dtype))
    for seed in range(600):
        progress = subproblem.solve(solver, plan, seed).progress
        moved = np.linalg.norm(np.asarray(progress.z) - subproblem.start.astype(np.float32))
        index = moved / (size * float(progress.stationarity))
        assert abs(index - round(index)) < 0.1
        counts[round(index)] += 1
    assert chi_square(counts) < CHI_SQUARE[4]


def test_the_pair_of_natasha2_is_uniform(subproblem, knowing_solvers):
    """Of three pairs the first, whose centre is the start, is chosen once in three: 400 runs, 5 deviations (6e-7)."""
    solver = knowing_solvers["natasha2"]
    plan, start = subproblem.plan(solver), np.array([1.0, 1.0], np.float32)
    first = 0
    for seed in range(400):
        state = subproblem.advance(solver, subproblem.begin(solver, plan, seed, z=start), plan, 3)
        assert int(state.pairs) == 3
        first += bool((np.asarray(state.centre) == start).all())
    assert abs(first - 400 / 3) < 5 * np.sqrt(400 * 2 / 9)


SLOPE = np.array([3.0, 4.0])


@pytest.fixture(scope="module")
def epochs(make_lagrangian):
    """Many epochs on f = 3 x1 + 4 x2, where without a regulariser each step has length 5 eta."""
    oracle = make_lagrangian(
        mescal.Problem(E(lambda x: jnp.asarray(SLOPE, x.dtype) @ x)), np.zeros(2), np.zeros(0), 1.0, "pair", 8
    )

    @jax.jit
    def run(plan, keys):
        return jax.vmap(lambda k: natasha15(oracle, jnp.zeros(2), plan, k)[:2])(keys)

    return run


def epoch_plan(sub_epochs, inner, iota=0.0, weight=0.0, radius=1.0, size=0.1):
    return Natasha15Plan(
        jnp.int32(sub_epochs * inner), jnp.asarray(False), jnp.int32(inner), jnp.int32(sub_epochs * inner),
        *(jnp.float32(number) for number in (size, iota, weight, radius)),
    )  # fmt: skip


def test_a_sub_epoch_hands_over_one_of_its_iterates(epochs, key):
    """q = 1, B' = 5: x+ uniform over y_0..y_4 (not y_5), x^ = y~; 4000 epochs, false failures 1e-6."""
    chosen, end = epochs(epoch_plan(1, 5), jax.random.split(key, 4000))
    assert not np.asarray(chosen).any()
    steps = np.linalg.norm(end, axis=1) / 0.5
    counts = np.bincount(np.round(steps).astype(int), minlength=5)
    assert counts.size == 5 and np.abs(steps - np.round(steps)).max() < 1e-4
    assert chi_square(counts) < CHI_SQUARE[4]


def test_the_chosen_point_is_a_uniform_start_of_a_sub_epoch(epochs, key):
    """q = 3, B' = 2: yh_1 = 0, yh_2 uniform over {0, 1} steps, yh_3 its sum with another; x^ uniform over the three.

    So x^ is 0, 1, 2 steps away with probabilities (1 + 1/2 + 1/4)/3, (1/2 + 1/2)/3, (1/4)/3, and x+ = yh_4 is binomial.
    """
    chosen, end = epochs(epoch_plan(3, 2), jax.random.split(key, 4000))
    counts = np.bincount(np.round(np.linalg.norm(chosen, axis=1) / 0.5).astype(int), minlength=3)
    assert chi_square(counts, np.array([7, 4, 1]) / 12) < CHI_SQUARE[2]
    counts = np.bincount(np.round(np.linalg.norm(end, axis=1) / 0.5).astype(int), minlength=4)
    assert chi_square(counts, np.array([1, 3, 3, 1]) / 8) < CHI_SQUARE[3]


def test_regulariser_and_hinge_hold_an_epoch_back(epochs, key):
    """Steps settle where 2 iota |y - yh| = 5, and where 2 L (|y - centre| - r) = 5, whatever theta."""
    keys = jax.random.split(key, 4000)
    end = np.linalg.norm(epochs(epoch_plan(1, 400, iota=2.0), keys)[1], axis=1)
    assert np.median(end) == pytest.approx(5 / 4, rel=1e-3) and end.max() < 5 / 4 + 1e-3
    end = np.linalg.norm(epochs(epoch_plan(1, 400, weight=2.0, radius=0.3), keys)[1], axis=1)
    assert np.median(end) == pytest.approx(0.3 + 5 / 4, rel=1e-3)


def test_hinge_gradient():
    """Zero in the ball and at its centre; outside, the derivative of weight (|z - centre| - r)^2."""
    centre = jnp.asarray([1.0, 2.0])
    assert not np.asarray(hinge_gradient(centre, centre, jnp.float32(3), jnp.float32(0.5))).any()
    assert not np.asarray(hinge_gradient(centre + 0.1, centre, jnp.float32(3), jnp.float32(0.5))).any()
    z = centre + jnp.asarray([3.0, 4.0])
    np.testing.assert_allclose(
        hinge_gradient(z, centre, jnp.float32(3), jnp.float32(0.5)), 2 * 3 * 4.5 * np.array([0.6, 0.8]), rtol=1e-6
    )

"""SGD3SC: a small gradient of a strongly convex function from single samples, at the schedule's price."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.solvers.paper.natasha15 import Natasha15Plan
from mescal.solvers.paper.sgd3sc import pad_schedule, sgd3sc_run, sgd3sc_start
from mescal.theory.sgd3sc import schedule

IOTA, CURVATURES = 0.5, np.array([0.2, 3.0])
SMOOTHNESS = 3.0 + 2 * IOTA
CHOSEN = np.array([0.7, -0.4])
START = np.array([2.0, 1.5])


@pytest.fixture(scope="module")
def run(make_lagrangian):
    """Whole phases on L = x'diag(0.2, 3)x/2 with noise s'x, |s| = 0.5 sqrt(2), for many keys."""
    noise = mescal.Sampler(lambda k: 0.5 * (1.0 - 2.0 * (jax.random.key_data(k) & 1).astype(jnp.float32)))
    problem = mescal.Problem(E(lambda x, s: x @ (jnp.asarray(CURVATURES, x.dtype) * x) / 2 + s @ x, over=noise))
    oracle = make_lagrangian(problem, np.zeros(2), np.zeros(0), 1.0, "pair", 8)
    plan = Natasha15Plan(
        *(jnp.int32(1),) * 4, *(jnp.float32(n) for n in (0.0, IOTA, 0.0, 1.0))
    )  # fmt: skip
    centre, chosen = jnp.zeros(2), jnp.asarray(CHOSEN, jnp.float32)

    @jax.jit
    def phase(rows, keys):
        def one(key):
            def body(carry):
                z, state, work, runs = carry
                k = jax.random.fold_in(key, runs)
                z, state, spent = sgd3sc_run(oracle, z, state, rows, plan, centre, chosen, k)
                return z, state, work + spent, runs + 1

            z = jnp.asarray(START, jnp.float32)
            carry = (z, sgd3sc_start(z), oracle.gradient(z, key, 1)[1], jnp.int32(0))
            z, state, work, _ = jax.lax.while_loop(lambda c: c[1].row < rows.rows, body, carry)
            return z, state, work

        return jax.lax.map(one, keys)

    return phase


def gradient(z):
    """|grad W|, W = L + iota |z - x^|^2."""
    return np.linalg.norm(CURVATURES * z + 2 * IOTA * (z - CHOSEN), axis=-1)


def test_gradient_falls_like_one_over_root_t_at_the_schedules_price(run, key):
    """E|grad W| = O~(s/sqrt(T)): over 16 times the budget it falls at least by 2, not counting the logarithm; 60 keys."""
    means = []
    for budget in (1000, 16_000):
        stages = schedule(IOTA, SMOOTHNESS, budget)
        z, _, work = run(pad_schedule("test", stages, jnp.float32), jax.random.split(key, 60))
        spent = {int(low[1]) for low in np.asarray(work.low)}
        assert spent == {1 + sum(stage.steps for stage in stages)}
        means.append(gradient(np.asarray(z)).mean())
    assert gradient(START) > 5
    assert means[0] < 0.2
    assert means[1] < means[0] / 2


def test_the_added_quadratics(run, key):
    """After the stages mu, 2 mu, ...: M = sum of 2^s mu, s = 1..S, with the mean of their centres near the minimiser."""
    stages = schedule(IOTA, SMOOTHNESS, 4000)
    _, state, _ = run(pad_schedule("test", stages, jnp.float32), jax.random.split(key, 60))
    total = sum(2 * stage.strong_convexity for stage in stages)
    assert len(stages) == 3
    np.testing.assert_allclose(state.weight, total, rtol=1e-6)
    minimiser = 2 * IOTA * CHOSEN / (CURVATURES + 2 * IOTA)
    assert np.abs(np.asarray(state.mean) - minimiser).max() < 0.1

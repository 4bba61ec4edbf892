"""The single loop: certified where MESCAL is, by itself, and by MESCAL where constraints are not independent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize as by_slsqp

import mescal
from mescal import E, problems, sets
from mescal.run.single_loop import REASONS
from mescal.solvers.single_loop.linear_step import Face, is_regular, linear_step

CLASSICS = tuple(f"hock-schittkowski/{number}" for number in (6, 7, 26, 39, 40))
SADDLES = ("saddles/sphere-axis", "saddles/sphere-dense", "saddles/orthonormal")
DATA = ("neyman-pearson/spambase", "neyman-pearson/madelon", "fairness/bank", "fairness/loan")
WHOLE = Face(None, lambda x, columns: columns)


def certified(name, seed, tol=0.01):
    """A certificate that the single loop came to by itself, near the optimum; data problems are too flat for that."""
    named = problems.get(name)
    result = mescal.minimize(named.problem, named.x0, solver="null-space", tol=tol, seed=seed, cone=named.cone)
    assert result.converged and not result.reason, f"{name} {seed}: {result}"
    if name not in DATA and named.optimum is not None:
        assert result.objective <= named.optimum + 0.02 * max(1, abs(named.optimum)), f"{name} {seed}: {result}"
    return result


@pytest.mark.parametrize("name", CLASSICS[:2])
def test_noisy_classics(name):
    for seed in range(3):
        certified(name, seed)


def test_a_stream_takes_fewer_samples_than_mescal_with_spider():
    """Hock-Schittkowski 7, where penalties must rise: measured a tenth; half of it is asked for here."""
    named = problems.get("hock-schittkowski/7")
    other = mescal.minimize(named.problem, named.x0, solver="spider", tol=0.01, seed=0)
    assert other.converged and certified("hock-schittkowski/7", 0).work.total <= other.work.total / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CLASSICS, *SADDLES])
def test_twenty_of_twenty_seeds(name):
    for seed in range(20):
        certified(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("tol", [0.01, 0.001])
@pytest.mark.parametrize("name", DATA)
def test_the_data_problems(data_folder, name, tol):
    certified(name, 0, tol)


def test_inequalities_and_a_box():
    """min |x - (2, 2, 2)|^2 with x0 + x1 <= 1 (active), x2 >= -9 (not), x0 <= 0.2: (0.2, 0.8, 2), by hand."""
    rows = np.concatenate([half := np.random.default_rng(0).normal(size=(40, 3)), -half]).astype(np.float32)
    problem = mescal.Problem(
        E(lambda x, a: jnp.sum((x - 2) ** 2) + a @ x, over=rows),
        {"sum": E(lambda x, a: x[0] + x[1] + a[0] * x[2], over=rows) <= 1, "far": E(lambda x: x[2]) >= -9},
        sets.Box(-5.0, np.array([0.2, 5.0, 5.0])),
    )
    result = mescal.minimize(problem, np.zeros(3, np.float32), solver="null-space", tol=1e-3)
    assert result.converged and not result.reason, result
    np.testing.assert_allclose(result.x, [0.2, 0.8, 2.0], atol=2e-3)
    assert result.multipliers["sum"] == pytest.approx(2.4, abs=0.01) and result.multipliers["far"] == 0


def doubled(stream):
    """min |x - 1|^2 with x0 + x1 = 1 said twice."""
    noise = mescal.Sampler(lambda key: jax.random.normal(key, (2,)))
    twice = lambda x: (x[0] + x[1] - 1) * jnp.array([1.0, 2.0])
    f = (
        E(lambda x, s: jnp.sum((x - 1) ** 2) + 0.1 * s @ x, over=noise)
        if stream
        else E(lambda x: jnp.sum((x - 1) ** 2))
    )
    return mescal.Problem(f, {"c": E(twice) == 0})


@pytest.mark.parametrize("stream", [False, True])
def test_where_constraints_are_dependent_mescal_goes_on(stream):
    result = mescal.minimize(doubled(stream), np.array([0.3, 0.6], np.float32), solver="null-space", seed=0)
    assert result.converged and result.reason == REASONS[2], result
    np.testing.assert_allclose(result.x, 0.5, atol=0.02)


def test_a_run_that_mescal_took_over_is_resumed_bit_for_bit(tmp_path):
    x0 = np.array([0.3, 0.6], np.float32)
    whole = mescal.minimize(doubled(False), x0, solver="null-space")
    assert whole.outer_iterations > 2
    cut = mescal.minimize(
        doubled(False),
        x0,
        solver="null-space",
        checkpoint=mescal.Checkpoint(tmp_path, seconds=0),
        callback=lambda row: row.outer == 1,
    )
    assert not cut.converged
    again = mescal.resume(tmp_path, doubled(False))
    assert np.array_equal(again.x, whole.x) and again.work.total == whole.work.total and again.reason == whole.reason


def test_a_run_on_a_stream_is_resumed_bit_for_bit(tmp_path):
    named = problems.get("hock-schittkowski/6")
    whole = mescal.minimize(named.problem, named.x0, solver="null-space", seed=1)
    cut = mescal.minimize(
        named.problem, named.x0, solver="null-space", seed=1, max_work=0.3 * whole.work.total, checkpoint=tmp_path
    )
    assert not cut.converged
    again = mescal.resume(tmp_path, named.problem, max_work=1e12)
    assert np.array_equal(again.x, whole.x) and again.work.total == whole.work.total


def test_a_step_is_the_minimiser_of_its_model():
    """Random models against SLSQP, and the closed form where there are equalities alone."""
    rng = np.random.default_rng(0)
    for trial in range(20):
        d, m = 6, 4
        x, g, rows, b = rng.normal(size=d), rng.normal(size=d), rng.normal(size=(m, d)), rng.normal(size=m)
        equal, smoothness = np.arange(m) < trial % 3, 2.0
        step = linear_step(WHOLE, x, g, rows, b, equal, smoothness)
        found = by_slsqp(
            lambda v, g=g: g @ v + v @ v,
            np.zeros(d),
            constraints=[
                {"type": "eq", "fun": lambda v, rows=rows, b=b, equal=equal: (rows @ v - b)[equal]},
                {"type": "ineq", "fun": lambda v, rows=rows, b=b, equal=equal: (b - rows @ v)[~equal]},
            ],
            tol=1e-12,
        )
        np.testing.assert_allclose(step.d, found.x, atol=1e-5)
        assert step.regular and (step.multipliers[~equal] >= 0).all()
        both = linear_step(WHOLE, x, g, rows, b, np.ones(m, bool), smoothness)
        np.testing.assert_allclose(both.multipliers, np.linalg.solve(rows @ rows.T, -rows @ g - smoothness * b))


def test_a_step_in_a_box():
    """The same with bounds, by semismooth Newton on the dual."""
    rng, low, high = np.random.default_rng(1), -0.3, 0.4
    face = Face(lambda y: np.clip(y, low, high), lambda y, columns: columns * ((y > low) & (y < high))[:, None])
    for _ in range(10):
        x, g, rows = rng.uniform(low, high, 6), rng.normal(size=6), rng.normal(size=(2, 6))
        b = rows @ (rng.uniform(low, high, 6) - x)
        step = linear_step(face, x, g, rows, b, np.array([True, False]), 3.0)
        found = by_slsqp(
            lambda v, g=g: g @ v + 1.5 * v @ v,
            np.zeros(6),
            bounds=[(low - xi, high - xi) for xi in x],
            constraints=[
                {"type": "eq", "fun": lambda v, rows=rows, b=b: rows[0] @ v - b[0]},
                {"type": "ineq", "fun": lambda v, rows=rows, b=b: b[1] - rows[1] @ v},
            ],
            tol=1e-12,
        )
        np.testing.assert_allclose(step.d, found.x, atol=1e-5)


def test_dependent_rows_are_seen():
    rows = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 0.0]])
    assert not is_regular(WHOLE, np.zeros(3), rows[:2]) and is_regular(WHOLE, np.zeros(3), rows[1:])
    assert not is_regular(WHOLE, np.zeros(3), np.zeros((1, 3)))

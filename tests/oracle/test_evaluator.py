"""Looks at draws: blocks of them, and what is left over, make the means and sums of all; wherever the rows are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.certificate import confidence
from mescal.certificate.scalars import Frame
from mescal.oracle import evaluator
from mescal.oracle.evaluator import Evaluator, evaluator_of
from mescal.problem import Population
from mescal.problem.stored import Selected

D = 2
RNG = np.random.default_rng(3)
ROWS, OTHERS = RNG.normal(size=(50, D)), RNG.normal(size=(20, D))
X, WEIGHT, DIRECTIONS = np.array([0.4, -0.3]), np.array([0.7]), RNG.normal(size=(D, 3))


def square(x, row):
    return 0.5 * jnp.sum((x - row) ** 2)


def wave(x, row):
    return jnp.sin(row @ x)


def problem_over(first, second) -> mescal.Problem:
    """A stream in the objective, one in the constraint beside rows, and a part without samples."""
    body = E(wave, over=second) - 2 * E(wave, over=OTHERS) + E(lambda x: x @ x) == 0.3
    return mescal.Problem(E(square, over=first) + 1.0, {"c": body})


def expected(rows: np.ndarray, others: np.ndarray) -> tuple:
    """f, c, gradient, Jacobian, and the Hessian of f + WEIGHT c, in numpy."""

    def parts(taken):
        u = taken @ X
        return (
            np.mean(np.sin(u)),
            np.mean(np.cos(u)[:, None] * taken, 0),
            -(taken * np.sin(u)[:, None]).T @ taken / len(u),
        )

    (c, j, h), (c2, j2, h2) = parts(others), parts(OTHERS)
    hessian = np.eye(D) + WEIGHT[0] * (h - 2 * h2 + 2 * np.eye(D))
    f = 1 + 0.5 * np.mean(np.sum((X - rows) ** 2, axis=1))
    return f, c - 2 * c2 + X @ X - 0.3, X - rows.mean(0), j - 2 * j2 + 2 * X, hessian


def of_rows(rows, indices, folder):
    """Draws of rows in memory."""
    return Population(rows[indices])


def of_files(rows, indices, folder):
    """Draws of rows on disk."""
    path = folder / f"{len(indices)}.npy"
    np.save(path, rows)
    return Selected(mescal.on_disk(path), indices)


@pytest.mark.parametrize("draws", [of_rows, of_files])
def test_blocks_of_draws_make_the_mean_of_all(draws, monkeypatch, tmp_path):
    """Blocks of 16: 40 draws are 16 + 16 + 8, and 11 are one smaller block."""
    monkeypatch.setattr(evaluator, "BLOCK_ROWS", 16)
    problem = problem_over(mescal.stream(ROWS), mescal.stream(ROWS + 1))
    program, x = problem.bind(X)
    first, second = RNG.integers(50, size=40), RNG.integers(50, size=11)
    drawn = {0: draws(ROWS, first, tmp_path), 1: draws(ROWS + 1, second, tmp_path), 2: Population(OTHERS)}
    populations = [drawn[problem.index(source)] for source in problem.sources]
    looks = Evaluator.of(program, populations)
    f, c, gradient, jacobian, hessian = expected(ROWS[first], ROWS[second] + 1)
    at = looks.at(x)
    np.testing.assert_allclose(at.objective, f, rtol=1e-13)
    np.testing.assert_allclose(at.constraint, [c], rtol=1e-12)
    np.testing.assert_allclose(at.gradient, gradient, rtol=1e-12)
    np.testing.assert_allclose(at.jacobian, [jacobian], rtol=1e-12)
    np.testing.assert_allclose(looks.hessian(x, WEIGHT), hessian, rtol=1e-12)
    np.testing.assert_allclose(looks.hessian_times(x, WEIGHT, DIRECTIONS), hessian @ DIRECTIONS, rtol=1e-12)
    assert looks.full_pass == 40
    # sums over all draws: the variance of the mean objective
    found = confidence.moments(looks, populations, (True, False, False), x, WEIGHT, Frame.none(x.size))
    values = 0.5 * np.sum((X - ROWS[first]) ** 2, axis=1)
    assert found.objective == pytest.approx(np.var(values) / 39, rel=1e-12)


def test_certificates_of_samples_that_fill_no_block_are_of_all_of_them(monkeypatch):
    """At 16 draws a block, 40 of them give what one block of 40 gives."""
    problem = problem_over(mescal.stream(ROWS), mescal.stream(ROWS + 1))
    whole = mescal.certify(problem, X, WEIGHT, samples=40, seed=4)
    monkeypatch.setattr(evaluator, "BLOCK_ROWS", 16)
    cut = mescal.certify(problem, X, WEIGHT, samples=40, seed=4)
    for name in ("objective", "stationarity", "feasibility", "curvature"):
        one, other = getattr(cut, name), getattr(whole, name)
        assert one.value == pytest.approx(other.value, rel=1e-9)
        # what is taken off before fourth powers are summed, the mean of the first block, is another one
        np.testing.assert_allclose([one.lower, one.upper], [other.lower, other.upper], rtol=0.05)


def test_an_evaluator_counts_what_it_was_asked():
    """Gradients, products and values of the largest population; rows of c without samples cost nothing."""
    problem = mescal.Problem(
        E(square, over=ROWS), {"c": E(wave, over=OTHERS) <= 0.5, "fixed": E(lambda x: x @ x) <= 1.0}
    )
    program, x = problem.bind(X)
    looks = evaluator_of(problem, program)
    looks.at(x)
    looks.hessian(x, np.ones(2))
    looks.values(x)
    counts = looks.tally.counts
    assert (counts["gradient_samples"], counts["hvp_samples"], counts["value_samples"]) == (50, 50 * D, 50)
    assert (counts["objective_gradients"], counts["objective_hvps"]) == (50, 50 * D)
    assert (counts["constraint_values"], counts["constraint_hvps"]) == (20 * (2 + D), 20 * D)


def test_float32_rows_are_looked_at_in_float64():
    rows = ROWS.astype(np.float32)
    problem = mescal.Problem(E(square, over=rows))
    program, x = problem.bind(X)
    with jax.enable_x64(False):
        at = evaluator_of(problem, program).at(x)
    assert at.objective == pytest.approx(0.5 * np.mean(np.sum((X - rows.astype(np.float64)) ** 2, axis=1)), rel=1e-14)

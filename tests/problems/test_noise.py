"""The noise of the streams: mean zero, of the stated size, on values and on gradients.

Thresholds are 5 standard errors of 20,000 draws: a false failure has probability 6e-7 per number compared.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal import problems
from mescal.problem import Rows
from mescal.problems.noise import gaussian

DRAWS = 20_000


def samples_of(sampler, key, draws=DRAWS):
    return jax.jit(jax.vmap(sampler.draw))(jax.random.split(key, draws))


def evaluate(program, x, rows):
    """F and C at samples of every source, each of which is a family of its own."""
    families = jax.tree.map(lambda leaf: leaf[None], rows)
    return jax.jit(lambda x, rows: program.evaluate(x, rows, DRAWS))(jnp.asarray(x), families)


@pytest.mark.parametrize("name", ["hock-schittkowski/40", "saddles/active-bounds", "saddles/circle"])
def test_noise_is_unbiased(name, key, exact):
    noisy, quiet = problems.get(name), problems.get(name, sigma=0)
    x = noisy.x0 + np.float32(0.1)
    program, _ = noisy.problem.bind(x, dtype=np.float32)
    functions = exact(quiet.problem, x)
    drawn = [
        Rows(samples_of(source, k)) for source, k in zip(noisy.problem.sources, jax.random.split(key), strict=True)
    ]
    objective, constraints = (np.asarray(part, float) for part in evaluate(program, x, tuple(drawn)))
    for values, expected in ((objective, functions.objective(x)), (constraints, functions.constraints(x))):
        error = values.std(axis=0) / DRAWS**0.5
        assert (error > 0).all()
        assert (np.abs(values.mean(axis=0) - expected) < 5 * error + 1e-5).all()


def test_classics_have_noise_of_the_stated_form(key):
    """F = f + sigma xi'x and C = c + sigma (zeta + Z x): variances sigma^2 |x|^2 and sigma^2 (1 + |x|^2)."""
    named = problems.get("hock-schittkowski/39", sigma=0.3)
    program, _ = named.problem.bind(named.x0, dtype=np.float32)
    rows = tuple(Rows(samples_of(source, jax.random.fold_in(key, i))) for i, source in enumerate(named.problem.sources))
    objective, constraints = evaluate(program, named.x0, rows)
    length = float(named.x0 @ named.x0)
    spread = 5 * (2 / DRAWS) ** 0.5  # 5 relative standard errors of a Gaussian's variance
    assert float(objective.var()) == pytest.approx(0.09 * length, rel=spread)
    np.testing.assert_allclose(constraints.var(axis=0), 0.09 * (1 + length), rtol=spread)
    correlation = np.corrcoef(np.column_stack([objective, constraints]).T)
    assert np.abs(correlation - np.eye(3)).max() < 5 / DRAWS**0.5


def test_without_noise_nothing_is_sampled():
    for name in problems.names():
        if "sigma" in problems.about(name).parameters and not name.startswith(("saddles/sphere", "saddles/orth")):
            assert problems.get(name, sigma=0).problem.sources == ()


def test_streams_of_different_roles_are_independent():
    one, other = gaussian(0.1, (), role="objective"), gaussian(0.1, (), role="constraint")
    assert one is not other
    assert gaussian(0.1, (), role="objective") is one
    assert len(problems.get("saddles/circle").problem.sources) == 2

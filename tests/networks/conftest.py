"""One small classification problem under three constraints, for networks of every kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E

BOUNDS = np.array([0.05, 0.05, 0.3])


class Task:
    """Rows of 6 features with labels and two overlapping groups; a problem for any function (parameters, x) -> log-odds."""

    def __init__(self, rows: int = 200, seed: int = 0):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=(rows, 6)).astype(np.float32)
        one, two = a[:, 0] + 0.5 * rng.normal(size=rows) > 0, a[:, 1] + 0.5 * rng.normal(size=rows) > 0.3
        label = rng.random(rows) < 1 / (1 + np.exp(-2 * np.tanh(a[:, 2] * a[:, 3]) - 1.5 * a[:, 0] - a[:, 1]))
        parity = lambda group: group / group.mean() - ~group / (1 - group.mean())
        shares = np.stack([parity(one), parity(two), ~label / (~label).mean()], axis=1).astype(np.float32)
        self.rows = {"features": a, "label": label.astype(np.float32), "shares": shares}

    def problem(self, network, arrays=lambda parameters: parameters) -> mescal.Problem:
        """Log-loss and weight decay, two parities and a false-positive rate; `arrays` finds what decays."""

        def loss(parameters, row):
            z = network(parameters, row["features"])
            return jax.nn.softplus(z) - row["label"] * z

        def rates(parameters, row):
            return row["shares"] * jax.nn.sigmoid(network(parameters, row["features"]))

        def decay(parameters):
            return 0.01 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(arrays(parameters)))

        objective = E(loss, over=self.rows) + E(decay)
        return mescal.Problem(objective, {"rates": E(rates, over=self.rows) <= BOUNDS})


@pytest.fixture(scope="session")
def task() -> Task:
    return Task()


def plain(key, sizes) -> list[dict]:
    """A list of dicts of weights, as equinox and flax initialise them up to a factor."""
    keys = jax.random.split(key, len(sizes) - 1)
    layers = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [{"w": jax.random.normal(k, (m, n)) / np.sqrt(m), "b": jnp.zeros(n)} for k, m, n in layers]


def plain_network(layers, x):
    """tanh between layers, one number at the end."""
    for layer in layers[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return (x @ layers[-1]["w"] + layers[-1]["b"])[0]


@pytest.fixture(scope="session")
def make_plain():
    return plain


@pytest.fixture(scope="session")
def network():
    return plain_network

"""What is known to be smooth from equations alone, and what has to be tried."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.certificate import quotients
from mescal.certificate.smooth import surely_smooth

ROWS = np.random.default_rng(0).normal(size=(20, 3))


@jax.custom_jvp
def logaddexp(a, b):
    return jnp.log(jnp.exp(a) + jnp.exp(b))


@logaddexp.defjvp
def _(primals, tangents):
    return logaddexp(*primals), 2 * tangents[0]


SMOOTH = {
    "score": lambda x, a: jax.nn.sigmoid(a @ x),
    "logistic loss": lambda x, a: jax.nn.softplus(-(a @ x)),
    "log of a loss": lambda x, a: 2 * jnp.log1p(jax.nn.softplus(-(a @ x)) / 2),
    "network": lambda x, a: jnp.tanh(jnp.outer(x, a) @ x).sum() ** 2,
    "quartic": lambda x, a: jnp.sum((x - a) ** 4) / (1 + jnp.exp(x[0])),
    "absolute row": lambda x, a: jnp.abs(a) @ x**2,
    "choice by row": lambda x, a: jnp.where(a[0] > 0, x[0] ** 2, x[1] ** 3),
    "a fixed power": lambda x, a: (1 + x @ x) ** 1.5,
}
TRIED = {
    "abs": lambda x, a: jnp.abs(a @ x),
    "relu": lambda x, a: jax.nn.relu(a @ x),
    "where": lambda x, a: jnp.where(x[0] > 0, x[0], x[0] ** 2),
    "max": lambda x, a: jnp.max(x * a),
    "floor": lambda x, a: jnp.floor(x[0]) + x @ x,
    "stop_gradient": lambda x, a: jax.lax.stop_gradient(x[0]) + x @ x,
    "a rule by hand, under a name of JAX's": lambda x, a: logaddexp(a @ x, 0.0),
    "through integers": lambda x, a: x[1] * x[0].astype(int),
    "a jump": lambda x, a: jnp.arctan2(x[0], x[1]),
    "a power that moves": lambda x, a: (x @ x) ** x[0],
    "inside a loop": lambda x, a: jax.lax.fori_loop(0, 3, lambda i, y: jnp.abs(y), x[0]),
}


def known(fn) -> bool:
    problem = mescal.Problem(E(fn, over=ROWS), {"c": E(lambda x: x[0]) <= 1.0})
    return surely_smooth(problem.bind(np.full(3, 0.3))[0])


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_are_known(name):
    assert known(SMOOTH[name])


@pytest.mark.parametrize("name", TRIED)
def test_all_others_are_tried(name):
    assert not known(TRIED[name])


def test_one_term_that_is_not_known_is_enough():
    problem = mescal.Problem(E(SMOOTH["score"], over=ROWS) + E(lambda x: jnp.abs(x[0])))
    assert not surely_smooth(problem.bind(np.zeros(3))[0])


@pytest.mark.parametrize("name", SMOOTH)
def test_quotients_agree(name, monkeypatch):
    """What is skipped would not have been doubted."""
    monkeypatch.setattr(quotients, "surely_smooth", lambda program: False)
    problem = mescal.Problem(E(SMOOTH[name], over=ROWS))
    assert not any("do not change" in sentence for sentence in mescal.certify(problem, np.full(3, 0.3)).warnings)


@pytest.mark.parametrize(
    ("fn", "at"),
    [
        (lambda x: jnp.sqrt(x[0] ** 2), 0.0),
        (lambda x: (x[0] ** 2) ** 0.5, 0.0),
        (lambda x: jnp.cbrt(x[0] ** 3), 0.0),
        (lambda x: x[0] ** 1.5, 0.0),
        (lambda x: jnp.exp(-1 / x[0] ** 2), 0.0),
        (lambda x: x[0] ** 2 / x[0], 0.0),
    ],
)
def test_at_the_end_of_a_domain_nothing_passes(fn, at):
    """Derivatives are not finite there, and no quotient is needed to refuse them."""
    problem = mescal.Problem(E(fn))
    assert surely_smooth(problem.bind(np.full(1, at))[0])
    try:
        found = mescal.certify(problem, np.full(1, at), tol=0.01)
    except mescal.InputError:
        return
    assert not found.passes(0.01)

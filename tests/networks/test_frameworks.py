"""Parameters as plain dicts, equinox modules and flax nnx states: the same network is the same problem."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal

SIZES = (6, 5, 5, 1)


@pytest.fixture(scope="module")
def weights(make_plain):
    return make_plain(jax.random.key(1), SIZES)


@pytest.fixture(scope="module")
def in_plain(task, weights, network):
    return task.problem(network), weights


@pytest.fixture(scope="module")
def in_equinox(task, weights):
    model = eqx.nn.MLP(6, "scalar", 5, 2, activation=jnp.tanh, key=jax.random.key(0))
    given = [leaf for layer in weights for leaf in (layer["w"].T, layer["b"])]
    model = eqx.tree_at(lambda m: [leaf for layer in m.layers for leaf in (layer.weight, layer.bias)], model, given)
    return task.problem(lambda m, x: m(x), lambda m: eqx.filter(m, eqx.is_inexact_array)), model


@pytest.fixture(scope="module")
def in_nnx(task, weights):
    nnx = pytest.importorskip("flax.nnx", reason="flax, of the extra dev, is not installed")

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(6, 5, rngs=rngs)
            self.second = nnx.Linear(5, 5, rngs=rngs)
            self.last = nnx.Linear(5, 1, rngs=rngs)

        def __call__(self, x):
            return self.last(jnp.tanh(self.second(jnp.tanh(self.first(x)))))[0]

    model = Network(nnx.Rngs(0))
    for layer, given in zip((model.first, model.second, model.last), weights, strict=True):
        layer.kernel[...], layer.bias[...] = given["w"], given["b"]
    graph, state = nnx.split(model)
    return task.problem(lambda s, x: nnx.merge(graph, s)(x)), state


@pytest.mark.parametrize("kind", ["in_equinox", "in_nnx"])
def test_the_judge_measures_the_same_in_every_framework(kind, in_plain, request):
    """All measures of one set of weights agree to rounding in float64; the parameters differ in structure alone."""
    problem, x = request.getfixturevalue(kind)
    expected = mescal.certify(*in_plain, tol=0.01)
    found = mescal.certify(problem, x, tol=0.01)
    for name in ("stationarity", "feasibility", "objective", "curvature"):
        np.testing.assert_allclose(getattr(found, name).value, getattr(expected, name).value, rtol=1e-8, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["in_plain", "in_equinox", "in_nnx"])
def test_every_kind_is_trained_to_a_certificate(kind, request):
    """The answer has the structure of the start, ready for its framework, and the judge confirms it anew."""
    problem, x = request.getfixturevalue(kind)
    result = mescal.minimize(problem, x, solver="auto", tol=0.02)
    assert result.converged, str(result)
    assert jax.tree.structure(result.x) == jax.tree.structure(x)
    assert mescal.certify(problem, result.x, result.multipliers, slack=result.slack).passes(0.02)

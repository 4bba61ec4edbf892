"""Parameters of any structure and precision: the certificate of a pytree is that of its flat vector, in float64."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.sets import Ball, Box, Product, Reals, Simplex

RNG = np.random.default_rng(5)
POSITIVES = (RNG.normal(size=(40, 3)) + 0.5).astype(np.float32)
NEGATIVES = (RNG.normal(size=(30, 3)) - 0.5).astype(np.float32)


def from_dict(parameters, row):
    return jax.nn.sigmoid(row @ parameters["w"] + parameters["b"])


def from_nested(parameters, row):
    first, (second, offset) = parameters["layers"]
    return jax.nn.sigmoid(jnp.tanh(row @ first["w"]) @ second + offset)


def from_mlp(network, row):
    return jax.nn.sigmoid(network(row)[0])


def structures(dtype):
    rng = np.random.default_rng(3)
    draw = lambda *shape: rng.normal(size=shape).astype(dtype)
    mlp = eqx.nn.MLP(3, 1, width_size=2, depth=1, activation=jax.nn.tanh, key=jax.random.key(1))
    mlp = jax.tree.map(lambda leaf: np.asarray(leaf, dtype) if eqx.is_array(leaf) else leaf, mlp)
    return {
        "dict": (from_dict, {"w": draw(3), "b": draw()}),
        "nested": (from_nested, {"layers": [{"w": draw(3, 2)}, (draw(2), draw())]}),
        "mlp": (from_mlp, mlp),
    }


def problem_of(score, domain):
    constraints = {"false positives": E(score, over=NEGATIVES) <= 0.3}
    return mescal.Problem(E(lambda x, row: 1 - score(x, row), over=POSITIVES), constraints, domain)


def contents(certificate):
    read = json.loads(certificate.to_json())
    read.pop("seconds")
    return read


def assert_same(one, two, precision):
    """Equal up to rounding; sentences and structure exactly."""
    assert type(one) is type(two) or {type(one), type(two)} <= {int, float}
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for name in one:
            assert_same(one[name], two[name], precision)
    elif isinstance(one, list):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            assert_same(a, b, precision)
    elif isinstance(one, (int, float)):
        assert one == pytest.approx(two, rel=precision, abs=precision)
    else:
        assert one == two


@pytest.mark.parametrize(
    ("name", "dtype"), [("dict", np.float32), ("dict", np.float64), ("nested", np.float64), ("mlp", np.float32)]
)
def test_pytrees_and_flat_vectors_have_the_same_certificate(name, dtype):
    score, parameters = structures(dtype)[name]
    arrays, static = eqx.partition(parameters, eqx.is_array)
    clipped = jax.tree.map(lambda leaf: np.clip(leaf, dtype(-0.3), dtype(0.3)), arrays)  # some bounds are active
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(clipped)])

    def flat_score(x, row):
        """Slices by itself: what ravel_pytree returns would round x to its own precision."""
        leaves, start = [], 0
        for leaf in jax.tree.leaves(clipped):
            leaves.append(x[start : start + leaf.size].reshape(leaf.shape))
            start += leaf.size
        return score(eqx.combine(jax.tree.unflatten(jax.tree.structure(clipped), leaves), static), row)

    domain = Box(-0.3, 0.3)
    tree = mescal.certify(problem_of(score, domain), eqx.combine(clipped, static), seed=1)
    vector = mescal.certify(problem_of(flat_score, domain), flat, seed=1)
    assert tree.active_bounds > 0
    assert_same(contents(tree), contents(vector), 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_measures_are_float64_and_the_global_flag_is_left_alone(dtype):
    score, parameters = structures(dtype)["dict"]
    before = jax.config.jax_enable_x64
    certificate = mescal.certify(problem_of(score, Reals()), parameters)
    assert jax.config.jax_enable_x64 == before
    assert jnp.zeros(1).dtype == (jnp.float64 if before else jnp.float32)
    for measured in (certificate.stationarity, certificate.feasibility, certificate.curvature, certificate.objective):
        assert all(type(number) is float for number in (measured.value, measured.lower, measured.upper))
    for by_name in (certificate.multipliers, certificate.slack, certificate.constraints):
        assert all(rows.dtype == np.float64 for rows in by_name.values())
    w, b = np.asarray(parameters["w"], np.float64), float(parameters["b"])
    expected = np.mean(1 / (1 + np.exp(POSITIVES.astype(np.float64) @ w + b)))
    assert certificate.objective.value == pytest.approx(expected, rel=1e-13)


def test_bounds_that_float32_cannot_hold_are_active():
    """0.1 in float32 is above 0.1: activity is decided in the precision of x."""
    problem = mescal.Problem(E(lambda x: jnp.sum(x)), {}, Box(0.1, 1.0))
    for dtype in (np.float32, np.float64):
        certificate = mescal.certify(problem, np.full(3, 0.1, dtype), cone="critical")
        assert certificate.active_bounds == 3
        assert certificate.passes(1e-6)


def test_leaves_of_different_precision_keep_their_own():
    problem = mescal.Problem(E(lambda x: jnp.sum(x["a"]) + jnp.sum(x["b"])), {}, Box(0.1, 1.0))
    x = {"a": np.full(2, 0.1, np.float32), "b": np.full(2, 0.1, np.float64)}
    certificate = mescal.certify(problem, x, cone="critical")
    assert certificate.active_bounds == 4
    assert certificate.passes(1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_curved_and_summed_boundaries_are_active_in_both_precisions(dtype):
    rng = np.random.default_rng(0)
    n = rng.normal(size=4)
    n /= np.linalg.norm(n)
    ball = mescal.Problem(E(lambda x: -jnp.asarray(n) @ x), {}, Ball(0.3, center=0.1))
    x = np.asarray(0.1 + 0.3 * n, dtype)
    certificate = mescal.certify(ball, x, cone="critical", tol=1e-5)
    assert certificate.active_bounds == 1 and certificate.passes(1e-5)
    # Along the boundary the curvature is that of the sphere, 1/R times the multiplier 1.
    assert certificate.curvatures["critical"].value == pytest.approx(1 / 0.3, rel=1e-5)
    simplex = mescal.Problem(E(lambda x: x @ jnp.array([0.0, 0.0, 1.0, 2.0])), {}, Simplex(0.7))
    certificate = mescal.certify(simplex, np.asarray([0.1, 0.6, 0.0, 0.0], dtype), cone="critical", tol=1e-5)
    assert certificate.active_bounds == 2 and certificate.passes(1e-5)


def test_product_domains_follow_the_structure():
    """A box for the weights, a ball for the rest; the same as flat coordinates with the same active bounds."""
    problem = mescal.Problem(E(lambda x: jnp.sum(x["w"]) - x["v"][0]), {}, Product(w=Box(-1.0, 1.0), v=Ball(2.0)))
    certificate = mescal.certify(problem, {"w": -np.ones((2, 2)), "v": np.array([2.0, 0.0])}, cone="critical")
    assert certificate.active_bounds == 5
    assert certificate.passes(1e-6)
    assert not mescal.certify(problem, {"w": np.ones((2, 2)), "v": np.array([2.0, 0.0])}, cone="critical").passes(0.5)

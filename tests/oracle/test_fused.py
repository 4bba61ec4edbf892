"""The kernel for scores equals the ordinary pass, in the interpreter; what is no function of a score goes the ordinary way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle import Lagrangian, fused, surrogate
from mescal.problem import equality_form

RNG = np.random.default_rng(0)
TABLE = np.array([1.0, 2.0, 3.0], np.float32)


def score(w, a):
    return jax.nn.sigmoid(a @ w)


def loss(w, a):
    return jnp.logaddexp(0.0, -3.0 * jnp.dot(w, a) + 0.5)


def hinge(w, a):
    return jnp.maximum(0.0, 1.0 - w @ a) ** 2


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(fused, "INTERPRET", True)
    fused._compiles.cache_clear()
    yield
    fused._compiles.cache_clear()


def made(objective, constraint, rows, others) -> tuple[Lagrangian, jax.Array]:
    problem = mescal.Problem(
        2 * E(objective, over=rows) - E(score, over=others),
        {"rate": E(constraint, over=rows) - 0.4 * E(score, over=others) <= 0.2, "unit": E(lambda w: w @ w) == 1.0},
    )
    x = RNG.normal(size=rows.shape[1]).astype(np.float32) / np.float32(np.sqrt(rows.shape[1]))
    program, _ = problem.bind(x, dtype=x.dtype)
    form, data = equality_form(program, problem.domain), problem.device_data(program, x.dtype)
    multipliers = jnp.asarray([0.3, -0.2], jnp.float32)
    return Lagrangian(form, data, multipliers, jnp.float32(1.1), surrogate("ustat")), form.join(
        jnp.asarray(x), jnp.ones(1)
    )


@pytest.mark.parametrize(("size", "width"), [(300, 57), (3, 5)])
@pytest.mark.parametrize("objective", [loss, hinge])
def test_the_kernel_equals_the_ordinary_pass(size, width, objective, monkeypatch):
    monkeypatch.setattr(fused, "PROGRAMS", 4)
    rows = RNG.normal(size=(size, width)).astype(np.float32)
    oracle, z = made(objective, score, rows, rows[: size // 2 + 1] + np.float32(1))
    assert fused.score_sums(oracle.form.program, 0, oracle.data[0], z[:width]) is not None
    kernel, _ = jax.jit(lambda oracle, z: oracle.linearise(z))(oracle, z)
    monkeypatch.setattr(fused, "INTERPRET", False)
    ordinary, _ = jax.jit(lambda oracle, z: oracle.linearise(z))(oracle, z)
    for one, other in zip(kernel, ordinary, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda w, a: score(w, a) * a[0],  # of the row as well
        lambda w, a: score(w, a) + w @ w,  # of the parameters as well
        lambda w, a: jnp.sum((w - a) ** 2),  # of no product
        lambda w, a: jax.nn.sigmoid(jnp.sum(a * w)),  # of one that is written down otherwise
        lambda w, a: score(w, a) * jnp.asarray(TABLE)[1],  # with a table in it
    ],
)
def test_other_functions_go_the_ordinary_way(function):
    rows = RNG.normal(size=(20, 4)).astype(np.float32)
    oracle, z = made(function, score, rows, rows + 1)
    assert fused.score_sums(oracle.form.program, 0, oracle.data[0], z[:4]) is None
    assert fused.score_sums(oracle.form.program, 1, oracle.data[1], z[:4]) is not None


def test_weights_vectors_and_other_types_go_the_ordinary_way():
    rows = RNG.normal(size=(20, 4)).astype(np.float32)
    weighted = mescal.Problem(E(loss, over=rows, weights=np.arange(1.0, 21.0)))
    vector = mescal.Problem(E(loss, over=rows), {"both": E(lambda w, a: score(w, a) * jnp.ones(2), over=rows) <= 1.0})
    split = mescal.Problem(E(lambda p, a: loss(p["w"], a), over=rows))
    for problem, x in (
        (weighted, np.ones(4, np.float32)),
        (vector, np.ones(4, np.float32)),
        (split, {"w": np.ones(4, np.float32)}),
    ):
        program, flat = problem.bind(x, dtype=np.float32)
        rows = problem.device_data(program, np.float32)[0]
        assert fused.score_sums(program, 0, rows, jnp.asarray(flat)) is None


def test_without_a_gpu_nothing_changes(monkeypatch):
    monkeypatch.setattr(fused, "INTERPRET", False)
    rows = RNG.normal(size=(20, 4)).astype(np.float32)
    oracle, z = made(loss, score, rows, rows + 1)
    assert jax.default_backend() == "gpu" or fused.score_sums(oracle.form.program, 0, oracle.data[0], z[:4]) is None

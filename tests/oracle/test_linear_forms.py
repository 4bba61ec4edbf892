"""Hessians as one Gram product: equal to the dense ones, and declined wherever x enters in another way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.oracle.access import sum_over_rows
from mescal.oracle.evaluator import evaluator_of
from mescal.oracle.linear_forms import hessian_sum

D, N = 7, 5
SHARE = np.array([0.2, 1.0, 0.7, 0.0, 0.4])  # of each row in the sum


def score(w, r):
    return jax.nn.sigmoid(r["a"] @ w)


SUITED = {
    "score": score,
    "inside jit": jax.jit(score),
    "logistic loss": lambda w, r: jax.nn.softplus(-r["y"] * (r["a"] @ w)),
    "logistic loss with a linear part": lambda w, r: jnp.logaddexp(0, r["a"] @ w) - r["y"] * (r["a"] @ w),
    "with a bias": lambda w, r: jnp.tanh(r["a"][:-1] @ w[:-1] + w[-1]) ** 2,
    "written as a sum": lambda w, r: jnp.sin(jnp.sum(r["a"] * w) / 3),
    "two forms": lambda w, r: jnp.sin(r["a"] @ w) * jnp.cos(r["b"] @ w),
    "one form written four times": lambda w, r: (
        score(w, r) + score(w, r) ** 2 + jnp.where(r["a"] @ w > 0, r["a"] @ w, 0) ** 3
    ),
    "two forms in one product": lambda w, r: jnp.prod(jnp.stack([r["a"], r["b"]]) @ w),
    "custom derivatives": lambda w, r: jax.nn.relu(r["a"] @ w) ** 2,
    "branches": lambda w, r: jax.lax.cond(r["y"] > 0, jnp.sin, lambda u: u**2, r["a"] @ w),
    "stopped gradient": lambda w, r: jax.lax.stop_gradient(r["a"] @ w) * (r["a"] @ w) ** 2,
    "a single coordinate": lambda w, r: r["y"] * jnp.exp(w[3]),
    "linear": lambda w, r: r["a"] @ w,
}
DECLINED = {
    "a norm": lambda w, r: (w - r["a"]) @ (w - r["a"]),
    "coordinate by coordinate": lambda w, r: jnp.sum(jnp.sin(r["a"] * w)),
    "two layers": lambda w, r: jnp.tanh(w[:3] * r["y"]) @ w[3:6],
    "a linear part that is bent later": lambda w, r: jnp.exp(r["b"] @ w + jnp.sin(r["a"] @ w)),
    "three forms": lambda w, r: jnp.sin(r["a"] @ w) * jnp.cos(r["b"] @ w) + jnp.sin((r["a"] - r["b"] ** 2) @ w),
    "a product of x with x": lambda w, r: (r["a"] @ w) * (w @ w),
    "side effects": lambda w, r: (jax.debug.callback(lambda: None), score(w, r))[1],
}


@pytest.fixture(scope="module")
def at():
    rng = np.random.default_rng(11)
    return rng.normal(size=D), {"a": rng.normal(size=(N, D)), "b": rng.normal(size=(N, D)), "y": rng.normal(size=N)}


@pytest.mark.parametrize("name", SUITED)
def test_the_gram_product_equals_the_sum_of_hessians(at, name):
    fn = SUITED[name]
    with jax.enable_x64(True):
        x, rows = jax.tree.map(jnp.asarray, at)
        found = jax.jit(lambda x, rows, share: hessian_sum(fn, x, rows, share))(x, rows, jnp.asarray(SHARE))
        each = np.asarray(jax.vmap(jax.hessian(fn), in_axes=(None, 0))(x, rows))
    assert found is not None
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found, np.tensordot(SHARE, each, 1), rtol=1e-12, atol=1e-13)
    assert name == "linear" or np.abs(found).max() > 1e-3


@pytest.mark.parametrize("name", DECLINED)
def test_other_functions_are_declined(at, name):
    with jax.enable_x64(True):
        x, rows = jax.tree.map(jnp.asarray, at)
        assert hessian_sum(DECLINED[name], x, rows, jnp.asarray(SHARE)) is None


def test_the_judge_gives_the_same_matrix_either_way():
    """One source is suited, one is not, rows are weighted, parameters are a dict: matrix, products and numpy agree."""
    rng = np.random.default_rng(12)
    rows, others = rng.normal(size=(40, 4)), rng.normal(size=(30, 4))
    weights = rng.uniform(size=40)
    problem = mescal.Problem(
        E(lambda p, a: jax.nn.sigmoid(a @ p["w"] + p["b"]), over=rows, weights=weights),
        {
            "suited": E(lambda p, a: jnp.tanh(a @ p["w"]), over=rows) <= 0.1,
            "not": E(lambda p, a: jnp.sum((a * p["w"]) ** 4), over=others) <= 1,
        },
    )
    program, x = problem.bind({"w": rng.normal(size=4), "b": np.array(0.3)})
    multipliers = np.array([0.7, -0.4])
    judge = evaluator_of(problem, program)
    matrix = judge.hessian(x, multipliers)
    one_by_one = [judge.hessian_times(x, multipliers, e[:, None])[:, 0] for e in np.eye(5)]
    b, w = x[0], x[1:]
    s, t = 1 / (1 + np.exp(-(rows @ w + b))), np.tanh(rows @ w)
    padded = np.concatenate([np.ones((40, 1)), rows], axis=1)
    wanted = (padded * (weights / weights.sum() * s * (1 - s) * (1 - 2 * s))[:, None]).T @ padded
    wanted[1:, 1:] += 0.7 * (rows * (-2 * t * (1 - t**2) / 40)[:, None]).T @ rows
    wanted[1:, 1:] += -0.4 * np.diag(12 * w**2 * np.mean(others**4, axis=0))
    np.testing.assert_allclose(matrix, wanted, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(matrix, np.stack(one_by_one), rtol=1e-11, atol=1e-12)
    directions = rng.normal(size=(5, 8))
    np.testing.assert_allclose(
        judge.hessian_times(x, multipliers, directions), wanted @ directions, rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("chunk", [1, 4, 5, 6, 7, 20, 30])
@pytest.mark.parametrize("skip", [0, 3, 13, 19])
def test_sums_over_rows_count_each_row_once(chunk, skip):
    """20 rows in chunks of any size, the first `skip` of them disregarded."""
    values, positions = jnp.arange(20) ** 2, jnp.arange(20)

    def body(taken, mask):
        value, position = taken
        keep = position >= skip
        return jnp.sum(jnp.where(keep if mask is None else keep & mask, value, 0))

    total = jax.jit(lambda s: sum_over_rows(body, (values, positions), 20, chunk, s))(skip)
    assert int(total) == sum(i**2 for i in range(skip, 20))

"""What JAX traces is refused, wherever it comes in; starts in float64 stay so, or a warning says that they do not."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, InputError, Tolerance
from mescal.errors import InputTypeError

ROWS = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
X0 = np.array([0.5, 0.25], np.float32)


def problem(rows: Any = ROWS, factor: Any = 1.0) -> mescal.Problem:
    return mescal.Problem(E(lambda x, row: factor * jnp.sum((x - row) ** 2), over=rows), {"c": E(lambda x: x @ x) == 1})


BUILT = problem()
TRACED: dict[str, Callable[[], Any]] = {
    "a start in jit": lambda: jax.jit(lambda x: mescal.minimize(BUILT, x).x)(X0),
    "minimize itself": lambda: jax.jit(mescal.minimize, static_argnums=0)(BUILT, X0),
    "a start in vmap": lambda: jax.vmap(lambda x: mescal.minimize(BUILT, x).x)(np.stack([X0, X0])),
    "a start in grad": lambda: jax.grad(lambda x: mescal.minimize(BUILT, x).objective)(X0),
    "a start in scan": lambda: jax.lax.scan(lambda x, _: (mescal.minimize(BUILT, x).x, None), X0, length=2),
    "rows in jit": lambda: jax.jit(lambda rows: mescal.minimize(problem(rows), X0).x)(ROWS),
    "rows in vmap": lambda: jax.vmap(lambda rows: mescal.minimize(problem(rows), X0).x)(np.stack([ROWS, ROWS])),
    "a closure in vmap": lambda: jax.vmap(lambda a: mescal.minimize(problem(factor=a), X0).x)(np.ones(2)),
    "a closure in grad": lambda: jax.grad(lambda a: mescal.minimize(problem(factor=a), X0).objective)(2.0),
    "a tolerance": lambda: jax.jit(lambda tol: mescal.minimize(BUILT, X0, tol=tol).x)(0.1),
    "nothing": lambda: jax.jit(lambda a: mescal.minimize(BUILT, X0).x + a)(1.0),
    "a point to certify": lambda: jax.vmap(lambda x: mescal.certify(BUILT, x).objective.value)(np.stack([X0, X0])),
    "multipliers": lambda: jax.jit(lambda m: mescal.certify(BUILT, X0, m).objective.value)(np.zeros(1)),
}


@pytest.mark.parametrize("call", TRACED.values(), ids=TRACED)
def test_what_is_traced_is_refused(call):
    with pytest.raises(InputError) as caught:
        call()
    assert isinstance(caught.value, InputTypeError)
    assert "Expected: " in str(caught.value) and "What to do: " in str(caught.value)


def test_functions_of_the_user_may_transform():
    """Inside of what is stated, all of JAX works."""
    own = mescal.Problem(E(jax.jit(lambda x, row: jax.vmap(lambda r: (x - r) @ (x - r))(row[None])[0]), over=ROWS))
    assert mescal.minimize(own, X0, tol=0.01).converged


def wide(tol: float, start: Any, solver: str) -> mescal.Result:
    return mescal.minimize(BUILT, start, solver=solver, tol=Tolerance(tol, 0.1), max_outer=30)


@pytest.fixture(scope="module")
def precisely() -> mescal.Result:
    """To a tolerance that numbers of float32 near 1 cannot meet: they are 6e-8 apart, and curvature is 2."""
    return wide(1e-9, np.array([0.1, 0.7]), "newton-cg")


def test_a_start_in_float64_stays_so_where_solvers_compute_in_it(precisely):
    assert precisely.converged and precisely.x.dtype == np.float64 and precisely.warnings == ()
    assert mescal.certify(BUILT, precisely.x, precisely.multipliers, tol=1e-9).passes(Tolerance(1e-9, 0.1))
    assert not np.array_equal(precisely.x, precisely.x.astype(np.float32))


def test_it_stays_so_where_a_run_goes_on(precisely, tmp_path):
    again = mescal.minimize(BUILT, start=precisely, solver="newton-cg", tol=Tolerance(1e-9, 0.1))
    assert again.converged and again.x.dtype == np.float64
    start, asked = np.array([0.1, 0.7]), {"solver": "newton-cg", "tol": Tolerance(1e-9, 0.1)}
    mescal.minimize(BUILT, start, checkpoint=tmp_path, max_outer=1, **asked)
    resumed = mescal.resume(tmp_path, BUILT, max_outer=100)
    assert resumed.x.dtype == np.float64 and np.array_equal(resumed.x, mescal.minimize(BUILT, start, **asked).x)


def test_a_start_that_is_rounded_is_a_warning():
    result = wide(0.01, np.array([0.1, 0.7]), "spider")
    (warning,) = result.warnings
    assert "spider computes in float32" in warning and "jax_enable_x64" in warning and warning in str(result)
    assert result.x.dtype == np.float32


@pytest.mark.parametrize(
    "start",
    [X0, [0.1, 0.7], np.array([0.5, 0.25]), jnp.array([0.1, 0.7]), np.zeros(2)],
    ids=["float32", "Python's numbers", "float64 without more digits", "JAX's", "zeros"],
)
def test_no_noise_where_nothing_is_lost(start):
    made = mescal.Problem(E(lambda x, row: sum((x[i] - row[i]) ** 2 for i in range(2)), over=ROWS))
    assert mescal.minimize(made, start, solver="spider", tol=0.1).warnings == ()


def test_wide_types_are_kept_where_jax_has_them():
    with jax.enable_x64(True):
        result = wide(0.01, np.array([0.1, 0.7]), "spider")
    assert result.x.dtype == np.float64 and result.warnings == ()

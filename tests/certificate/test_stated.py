"""Statements against the functions that they state, differentiated as they are: slope and curvature in any unit.

A ratio, a function of two expectations, and a ratio under a bound that is active: scalars come in units of 1e-3 to 1e6, points and
data at random. The programs are shared, what differs is data.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.certificate.request import Request

ROWS, SIZE = 4, 2
CASES = 3


def above(x, r):
    """A quadratic, and what stays positive below it; r = (unit, c, q, b) in blocks of 1, 2, 2, 2."""
    return r[0] * (1 + r[1:3] @ x + r[3:5] @ x**2 + x[0] * x[1])


def below(x, r):
    return r[0] * (2 + jnp.tanh(r[5:7] @ x))


def unit_of(x, r):
    return r[0]


def ratio(rows):
    return E(above, over=rows) / E(below, over=rows)


def product(a, b, u):
    return jnp.sin(a / u) * b / u


def stated(rows):
    """Of two expectations, and of their unit as a third."""
    return mescal.of(product, *(E(fn, over=rows) for fn in (above, below, unit_of)))


def drawn(seed):
    """Rows in a unit, the mean unit, and a point."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(ROWS, 7))
    rows[:, 0] = unit = 10.0 ** rng.integers(-2, 7)
    return rows, unit, rng.normal(size=SIZE)


def exact(fn, x):
    """Gradient and Hessian of a function of x alone."""
    with jax.enable_x64(True):
        return np.asarray(jax.grad(fn)(x)), np.asarray(jax.hessian(fn)(x))


def means(rows, x):
    return (jnp.mean(jax.vmap(fn, (None, 0))(x, rows)) for fn in (above, below))


def quotient(rows):
    def value(x):
        first, second = means(rows, x)
        return first / second

    return value


def check(found, slope, curvature):
    assert found.stationarity.lower <= np.linalg.norm(slope) * (1 + 1e-9) + 1e-12, found
    assert found.stationarity.value == pytest.approx(np.linalg.norm(slope), rel=1e-6, abs=1e-9)
    assert found.curvature.value == pytest.approx(curvature, rel=1e-6, abs=1e-6)
    assert found.curvature.lower <= curvature + 1e-9


@pytest.mark.parametrize("seed", range(CASES))
def test_a_ratio(seed):
    """At the point where its slope is made to be zero by a plane: there the multiplier is exact, and so is the curvature."""
    rows, _, x = drawn(seed)
    rows[:, 0] = np.maximum(rows[:, 0], 1.0)  # above the floor
    g, H = exact(quotient(rows), x)
    for left in (0.0, 1.0):
        plane = E(lambda x, p: p @ x, over=((left - 1) * g)[None])
        found = mescal.certify(mescal.Problem(ratio(rows) + plane), x, tol=0.01)
        assert found.stationarity.value == pytest.approx(left * np.linalg.norm(g), rel=1e-6, abs=1e-9)
        if left == 0:
            check(found, 0 * g, np.linalg.eigvalsh(H)[0])


@pytest.mark.parametrize("seed", range(CASES))
def test_a_function_of_two_expectations(seed):
    rows, unit, x = drawn(seed)

    def value(x):
        first, second = means(rows, x)
        return product(first, second, unit)

    g, H = exact(value, x)
    plane = E(lambda x, p: p @ x, over=-g[None])
    check(mescal.certify(mescal.Problem(stated(rows) + plane), x, tol=0.01), 0 * g, np.linalg.eigvalsh(H)[0])


@pytest.mark.parametrize("seed", range(CASES))
def test_a_function_of_two_expectations_that_is_bounded_and_active(seed):
    """min p.x + |x - x0|^2 with g(x) <= g(x0), p = -2 grad g: the multiplier is 2, and x moves along the boundary."""
    rows, unit, x = drawn(seed)

    def value(x):
        first, second = means(rows, x)
        return product(first, second, unit)

    with jax.enable_x64(True):
        level = float(value(x))
    g, H = exact(value, x)
    along = np.array([-g[1], g[0]]) / np.linalg.norm(g)
    fixed = np.concatenate([-2 * g, x])[None]
    objective = E(lambda x, r: r[:2] @ x + (x - r[2:]) @ (x - r[2:]), over=fixed)
    found = mescal.certify(mescal.Problem(objective, {"bound": stated(rows) <= level}), x, tol=0.01)
    assert float(found.multipliers["bound"]) == pytest.approx(2, rel=1e-6)
    check(found, 0 * g, along @ (2 * np.eye(2) + 2 * H) @ along)


def test_columns_of_the_hessian_at_scalars_are_formed_once_for_multipliers(monkeypatch):
    """Multipliers that need no completion are settled by one look at what determines the scalars."""
    rows, _, x = drawn(0)
    problem = mescal.Problem(ratio(rows))
    given = mescal.certify(problem, x).multipliers
    formed, columns = [], Request._columns
    monkeypatch.setattr(Request, "_columns", lambda self, *given: formed.append(given) or columns(self, *given))
    monkeypatch.setattr(
        Request, "lag", lambda self, judge, point, settled: np.zeros((self.x.size, len(self.inequality)))
    )
    mescal.certify(problem, x, given)
    assert len(formed) == 1

"""Values, weights, integers and samplers that are not what they seem pass no certificate, and are named."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("value", [jnp.log(-1.0), jnp.inf, -jnp.inf])
def test_an_objective_without_a_value_passes_nowhere(value):
    """log(-1) + x'x has the gradient 2x: a point where it vanishes is no minimiser of anything."""
    constant = float(value)
    problem = mescal.Problem(E(lambda x: constant + x @ x))
    found = mescal.certify(problem, np.zeros(2), tol=0.01)
    assert not found.passes(0.01) and not found.refuses(0.01)
    assert any(sentence.startswith("The objective is") for sentence in found.warnings)
    rows = mescal.Problem(E(lambda x, a: jnp.log(a) + x @ x, over=np.array([1.0, 2.0, -1.0])))
    assert not mescal.certify(rows, np.zeros(2), tol=0.01).passes(0.01)
    stream = mescal.Sampler(lambda key: jax.random.normal(key, ()))
    drawn = mescal.Problem(E(lambda x, a: jnp.log(a) + x @ x, over=stream))
    assert not mescal.certify(drawn, np.zeros(2), tol=0.5).passes(0.5)


@pytest.mark.parametrize("largest", [1e308, 1e-300, 5e-324])
def test_weights_may_be_of_any_size(largest):
    """Their sum overflows or nearly vanishes; the mean is what it is."""
    rows, weights = RNG.normal(size=40), RNG.integers(1, 4, size=40).astype(float)
    weights = weights if largest > 1 else 4 * weights  # the smallest number has no quarter
    scaled = (weights / 4) * largest if largest > 1 else weights * largest
    problem = mescal.Problem(E(lambda x, a: (x[0] - a) ** 2, over=rows, weights=scaled))
    mean = np.average(rows, weights=weights)
    assert mescal.certify(problem, np.array([mean]), tol=1e-8).passes(1e-8)
    assert not mescal.certify(problem, np.array([mean + 1]), tol=0.01).passes(0.01)


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_integers_that_wrap_are_refused(kind):
    wide = np.array([1, 2, 5_000_000_000], kind)
    with pytest.raises(mescal.InputError, match="first in row 2"):
        mescal.Problem(E(lambda x, a: (x[0] - a) ** 2, over=wide))
    with pytest.raises(mescal.InputError, match=r"does not hold, first in row 2 \(leaf \['n'\]\)"):
        mescal.Problem(E(lambda x, a: (x[0] - a["n"]) ** 2, over={"n": wide}))
    problem = mescal.Problem(E(lambda x, a: (x[0] - a) ** 2, over=np.array([1, 2, 3], kind)))
    assert mescal.certify(problem, np.array([2.0]), tol=1e-8).passes(1e-8)
    with jax.enable_x64(True):
        problem = mescal.Problem(E(lambda x, a: (x[0] - 1e-9 * a) ** 2, over=wide))
        assert mescal.certify(problem, np.array([1e-9 * wide.mean()]), tol=1e-6).passes(1e-6)


def test_solver_and_judge_draw_from_one_law():
    """Random bits have 32 or 64 digits, as JAX is set: a sampler keeps the precision in which it was made."""
    stream = mescal.Sampler(lambda key: jax.random.bits(key).astype(float) / 2.0**31)
    problem = mescal.Problem(E(lambda x, a: (x[0] - a) ** 2, over=stream))
    found = mescal.certify(problem, np.array([1.0]), samples=4096)
    assert found.objective.value == pytest.approx(1 / 3, abs=0.05)  # 11 standard errors of a uniform's square
    assert found.stationarity.value < 0.15  # 8 standard errors
    for dtype in (np.float32, np.float64):
        program, _ = problem.bind(np.ones(1, dtype), dtype=dtype)
        assert next(iter(program.draws.values())).function.out.dtype == np.float32


SHARP = {
    "|x|^1.5": lambda x: jnp.sum(jnp.abs(x) ** 1.5),
    "-|x|^1.9": lambda x: -jnp.sum(jnp.abs(x) ** 1.9),
}


@pytest.mark.parametrize("size", [2, 1600])
@pytest.mark.parametrize("name", SHARP)
def test_a_hessian_that_is_not_finite_decides_nothing(name, size):
    """Formed or not: the gradient vanishes at 0 and is fit to be measured, the curvature is infinite or none."""
    found = mescal.certify(mescal.Problem(E(SHARP[name])), np.zeros(size), tol=0.01)
    assert not found.passes(0.01) and not found.refuses(0.01)
    assert any(sentence.startswith("The Hessian is not finite at x") for sentence in found.warnings)


@pytest.mark.parametrize("solver", ["newton-cg", "spider", "null-space"])
def test_runs_from_points_without_derivatives_end_with_a_status(solver):
    for fn in (SHARP["|x|^1.5"], jnp.linalg.norm, lambda x: jnp.sum(jnp.log(x - 1) ** 2)):
        result = mescal.minimize(
            mescal.Problem(E(fn)), np.zeros(2), solver=solver, max_outer=2, outer=mescal.Outer(max_inner=20)
        )
        assert not result.converged and result.status in (mescal.Status.OUTER_LIMIT, mescal.Status.NOT_FINITE)


LARGE = {
    "gradient": (lambda x: jnp.sum(1e200 * x**2), lambda x: x[0], np.array([1e10, 0.0]), None),
    "Hessian": (lambda x: 1e200 * (x[0] ** 2 - x[1] ** 2), lambda x: x[0], np.zeros(2), None),
    "multiplier": (lambda x: x @ x, lambda x: x[0], np.zeros(2), [1e200]),
    "point": (lambda x: 1e-200 * x @ x, lambda x: x[0] - 1e200, np.array([1e200, 0.0]), None),
    "short row": (lambda x: x @ x, lambda x: 1e-300 * x[0], np.array([1.0, 0.0]), [2e300]),
}


@pytest.mark.parametrize("name", LARGE)
def test_numbers_whose_squares_overflow_pass_nothing_and_raise_nothing(name):
    fn, c, x, multipliers = LARGE[name]
    problem = mescal.Problem(E(fn), {"c": E(c) <= 0})
    assert not mescal.certify(problem, x, multipliers, tol=0.01).passes(0.01)

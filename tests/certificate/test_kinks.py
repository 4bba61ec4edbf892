"""Functions that are not twice differentiable at x, or whose derivatives are not their own, pass no certificate without a word."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.sets import Box, NonNegative

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(50, 3))


@jax.custom_jvp
def lying(u):
    return u**2 - u


@lying.defjvp
def _(primals, tangents):
    (u,), (du,) = primals, tangents
    return lying(u), 2 * u * du


@jax.custom_jvp
def turned(u):
    return -3 * u**2


@turned.defjvp
def _(primals, tangents):
    return turned(*primals), 6 * primals[0] * tangents[0]


WRONG = {
    "-relu": lambda x: -jax.nn.relu(x[0]) + x @ x,
    "-abs": lambda x: -jnp.abs(x[1]) + x @ x,
    "where": lambda x: jnp.where(x[0] > 0, -x[0], x[0] ** 2) + x[1:] @ x[1:],
    "bent where": lambda x: jnp.where(x[0] > 0, -(x[0] ** 2), x[0] ** 2) + x[1:] @ x[1:],
    "floor": lambda x: jnp.floor(x[0]) + x @ x,
    "round": lambda x: -jnp.round(x[0] + 0.5) + x @ x,
    "stop_gradient": lambda x: x @ x - jax.lax.stop_gradient(x[0]),
    "a rule that lies": lambda x: lying(x[0]) + x[1:] @ x[1:],
    "stop_gradient of a square": lambda x: x @ x - 3 * jax.lax.stop_gradient(x[0]) ** 2,
    "a rule with a wrong sign": lambda x: turned(x[0]) + x @ x,
    "a min of two": lambda x: jnp.minimum(x[0], -x[0]) + x @ x,
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_derivatives_pass_nowhere(name):
    """All have the gradient 0 and a Hessian >= 0 at the origin as JAX has it, and descend from there."""
    found = mescal.certify(mescal.Problem(E(WRONG[name])), np.zeros(3), tol=0.01, cone="critical")
    assert found.stationarity.value <= 1 + 1e-9
    assert not found.passes(0.01)
    assert any(NAMED[name] in sentence for sentence in found.warnings), found.warnings


NAMED = dict.fromkeys(WRONG, "There is a kink at x") | {
    "bent where": "Gradients have a kink at x: the functions are not twice differentiable there",
    "floor": "There is a jump at x",
    "round": "There is a jump at x",
    "stop_gradient": "it is not the function's own",
    "a rule that lies": "it is not the function's own",
    "stop_gradient of a square": "Derivatives are not the function's own",
    "a rule with a wrong sign": "Derivatives are not the function's own",
}


@pytest.mark.parametrize("name", WRONG)
def test_runs_do_not_converge_there(name):
    """From the origin, at which the gradient vanishes as JAX has it, wherever they go."""
    result = mescal.minimize(mescal.Problem(E(WRONG[name])), np.zeros(3), solver="newton-cg", tol=0.01, max_outer=3)
    truth = WRONG[name](np.asarray(result.x))
    worse = min(float(WRONG[name](np.asarray(result.x) + 0.05 * s * e)) for e in np.eye(3) for s in (1, -1))
    assert not result.converged or truth <= worse + 0.01, result


@pytest.mark.parametrize("solver", ["newton-cg", "spider"])
@pytest.mark.parametrize("name", ["abs", "lasso", "relu"])
def test_a_run_that_ends_beside_a_kink_says_so(name, solver):
    """The minimisers of |x| and of |x|^2/2 + 0.3|x|_1 are kinks, and those of a mean of hinges lie among them."""
    kinked = {
        "abs": E(lambda x: jnp.sum(jnp.abs(x))),
        "lasso": E(lambda x, a: 0.5 * jnp.sum((x - 0.1 * a) ** 2) + 0.3 * jnp.sum(jnp.abs(x)), over=ROWS),
        "relu": E(lambda x, a: jax.nn.relu(1 - a @ x) + 0.01 * x @ x, over=ROWS),
    }
    x0 = np.array([0.5, 0.3, -0.7])
    result = mescal.minimize(
        mescal.Problem(kinked[name]), x0, solver=solver, tol=1e-3, max_outer=8, outer=mescal.Outer(max_inner=300)
    )
    assert result.status is mescal.Status.KINK and not result.converged
    assert "there is a kink" in str(result) and "State the problem smoothly" in str(result)


def test_runs_that_stop_early_on_smooth_functions_are_beside_no_kink():
    for scale in (1e-2, 1.0, 1e6):
        problem = mescal.Problem(E(lambda x, a, s=scale: smooth(x / s, a), over=ROWS))
        x0 = scale * np.array([0.5, 0.3, -0.7])
        result = mescal.minimize(
            problem, x0, solver="spider", tol=1e-9 / scale, max_outer=1, outer=mescal.Outer(max_inner=2)
        )
        assert result.status is mescal.Status.OUTER_LIMIT


def test_a_kink_at_the_solution_is_named():
    """|x| is smallest at 0, but there is no gradient there."""
    found = mescal.certify(mescal.Problem(E(lambda x: jnp.sum(jnp.abs(x)))), np.zeros(3), tol=0.01)
    assert not found.passes(0.01)
    assert any("There is a kink" in sentence for sentence in found.warnings)


def test_a_constraint_whose_derivative_is_not_its_own_is_found():
    problem = mescal.Problem(
        E(lambda x, a: jnp.sum((x - a) ** 2), over=ROWS), {"c": E(lambda x: jax.lax.stop_gradient(x[0])) <= 1.0}
    )
    found = mescal.certify(problem, ROWS.mean(0), tol=0.01)
    assert not found.passes(0.01) and "derivatives" in found.warnings[0]


def smooth(x, a):
    u = a @ x
    return jnp.log1p(u**2) + jnp.sin(3 * u) + jnp.exp(0.3 * u) + 0.5 * jnp.sum((x - a) ** 2) * 3


def relu_net(x, a):
    return 0.5 * (jax.nn.relu(a[0] * x[0] + 0.3) * x[1] + x[2] - a[1]) ** 2 + 0.05 * x @ x


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("fn", [smooth, relu_net])
def test_functions_that_are_smooth_at_x_are_not_doubted(fn, scale):
    """Points and values of any scale, and networks whose kinks lie elsewhere."""
    problem = mescal.Problem(scale * E(fn, over=ROWS), {"c": E(lambda x, a: (a @ x) ** 2, over=ROWS) <= 100.0})
    for x in (np.zeros(3) + 0.01, RNG.normal(size=3), 30 * RNG.normal(size=3)):
        assert not any("do not change as" in s for s in mescal.certify(problem, x, tol=1e-3 * scale).warnings)
    stretched = mescal.Problem(E(lambda x, a: fn(x / scale, a), over=ROWS))
    for x in (np.zeros(3), scale * RNG.normal(size=3)):
        assert not any("do not change as" in s for s in mescal.certify(stretched, x, tol=1e-3 / scale).warnings)


@pytest.mark.parametrize("domain", [NonNegative(), Box(0.0, 1e-12), Box(0.0, 0.0)])
def test_steps_stay_inside_the_domain(domain):
    """sqrt(x) + x is smooth on x > 0 alone; on the bound of a thin box nothing is asked outside of it."""
    problem = mescal.Problem(E(lambda x: jnp.sum((x + 1e-3) ** 1.5 + 2 * x)), domain=domain)
    found = mescal.certify(problem, np.zeros(2), tol=0.01, cone="critical")
    assert found.passes(0.01) and not any("do not change as" in s for s in found.warnings)


@pytest.mark.parametrize("tol", [100.0, 1.0, None])
@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-5])
def test_a_kink_that_does_not_matter_at_one_tolerance_passes_at_no_tighter_one(tol, size):
    """A certificate may be asked with another tolerance than it was made for: what was not looked into is no evidence then."""
    kinks = {
        "bend": lambda x: size * (0.1 * x @ x - jnp.where(x[0] > 0, x[0] ** 2, 0.0)),
        "slope": lambda x: size * (x @ x - jax.nn.relu(x[0])),
    }
    for name, fn in kinks.items():
        found = mescal.certify(mescal.Problem(E(fn)), np.zeros(2), tol=tol)
        assert not found.passes(size / 100), (name, found)


def test_functions_that_only_look_rough_pass_at_tighter_tolerances():
    """A network whose kinks lie elsewhere is known to its quotients, which fall with the step."""
    problem = mescal.Problem(E(lambda x: x @ x + jax.nn.relu(x[0] - 1)))
    assert mescal.certify(problem, np.zeros(3), tol=1.0).passes(1e-6)


def test_a_function_without_values_beside_x_passes_nowhere():
    """And one whose domain merely ends near x passes, as shorter steps stay inside of it."""
    lonely = mescal.Problem(E(lambda x: x @ x + jnp.where(jnp.all(x == 0), 0.0, jnp.nan)))
    assert not mescal.certify(lonely, np.zeros(2), tol=0.01).passes(0.01)
    ending = mescal.Problem(E(lambda x: x @ x + jnp.where(x[0] > -1e-9, jax.nn.relu(x[0] + 1), jnp.nan) - x[0]))
    assert mescal.certify(ending, np.zeros(2), tol=0.01).passes(0.01)


@pytest.mark.parametrize("solver", ["newton-cg", "auto"])
def test_a_smooth_ratio_in_a_large_unit_has_no_kink(solver):
    """A run that is cut off early, in a box: its scalar is a million, and steps as long as that end at corners of the box."""
    below = E(lambda x, r: r[0] * (2 + jnp.tanh(x[0])), over=np.array([[1e6]]))
    above = E(lambda x, r: r[0] * (3 * jnp.sin(x[0]) + (x - 0.7) @ (x - 0.7)), over=np.array([[1e6]]))
    problem = mescal.Problem(above / below, domain=Box(-2.0, 2.0))
    result = mescal.minimize(problem, np.array([1.5, -1.0]), solver=solver, tol=1e-6, max_outer=1, seed=0)
    assert result.status is mescal.Status.OUTER_LIMIT, result

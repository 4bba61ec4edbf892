"""Problems without a minimum: told from those with one, from caps and from NaN, by a ray that anybody can check."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, Status, sets

PRACTICAL = tuple(name for name in mescal.solvers.names() if mescal.solvers.get(name).mode == "practical")
ENDLESS = {
    "x": (lambda x: x[0], [0.5], {}, sets.Reals()),
    "-x^2": (lambda x: -(x[0] ** 2), [0.0], {}, sets.Reals()),
    "-x^2 upwards": (lambda x: -(x[0] ** 2), [0.3], {}, sets.NonNegative()),
    "along an equality": (lambda x: x[0] + x[1], [0.0, 0.0], {"c": E(lambda x: x[0] - x[1]) == 1.0}, sets.Reals()),
    "along an inequality": (lambda x: x[0] + 2 * x[1], [0.0, 0.0], {"c": E(lambda x: x[0] - x[1]) <= 1}, sets.Reals()),
    "beside a valley": (lambda x: x[0] + x[1] ** 2, [0.3, 0.6], {"c": E(lambda x: x[0]) <= 0}, sets.Reals()),
    "in an orthant": (lambda x: -x[0] - x[1], [0.0, 0.0], {"c": E(lambda x: x[0]) <= 1.0}, sets.NonNegative()),
}
BOUNDED = {
    "flattening": (lambda x: jnp.log(1 + jnp.exp(-x[0])), [0.0], {}, sets.Reals()),
    "far away": (lambda x: (x[0] / 1e4 - 1) ** 2 * 1e4, [0.0], {}, sets.Reals()),
    "held by a bound": (lambda x: -x[0], [0.0], {}, sets.Box(-np.inf, 1e5)),
    "held by a constraint": (lambda x: -x[0], [0.0], {"c": E(lambda x: x[0] / 1e4) <= 1}, sets.Reals()),
    "held far out": (lambda x: -x[0] - x[1], [0.0, 0.0], {"c": E(lambda x: x[0] - x[1]) == 0}, sets.Box(-np.inf, 1e5)),
}


def stated(case, stream=False):
    f, x0, constraints, domain = case
    drawn = mescal.Sampler(lambda key: jax.random.normal(key, (len(x0),)))
    objective = E(lambda x, noise: f(x) + 0.1 * noise @ x, over=drawn) if stream else E(lambda x: f(x))
    return mescal.Problem(objective, constraints, domain), np.asarray(x0, np.float32)


def check_ray(case, result):
    """The ray itself: in X, feasible, and f falls along it by at least a constant rate, all evaluated here."""
    f, _, constraints, domain = case
    x, d = np.asarray(result.x, np.float64), result.ray.direction
    assert np.linalg.norm(d) == pytest.approx(1)
    values = []
    for t in (0.0, 1e3, 1e5, 1e7):
        y = x + t * d
        assert bool(domain.contains(y, 1e-6 * max(1, np.linalg.norm(y))))
        found = mescal.certify(mescal.Problem(E(f), constraints), y, tol=0.01)
        for constraint, value in found.constraints.items():
            violation = abs(value) if constraints[constraint].kind == "==" else max(float(value), 0.0)
            assert violation <= 0.06 + 1e-9 * t
        values.append(found.objective.value)
    rates = np.diff(values) / np.diff([0.0, 1e3, 1e5, 1e7])
    assert (rates < -0.05).all() and rates[-1] <= 0.5 * rates[0]


@pytest.mark.parametrize("name", ENDLESS)
def test_a_ray_shows_it(name):
    case = ENDLESS[name]
    for solver in PRACTICAL:
        result = mescal.minimize(*stated(case), solver=solver, max_seconds=60)
        assert result.status is Status.UNBOUNDED and not result.converged, f"{name} {solver}: {result}"
        check_ray(case, result)
    assert "falls without end" in str(result) and result.status.final
    for told in (str(result), result.explain(), result._repr_html_()):
        assert f"{result.ray.objective[-1]:.4g} at t = {result.ray.lengths[-1]:.4g}" in told


@pytest.mark.parametrize("name", ["x", "-x^2", "along an equality"])
def test_on_streams(name):
    result = mescal.minimize(*stated(ENDLESS[name], True), solver="spider", tol=0.05, max_seconds=60)
    assert result.status is Status.UNBOUNDED, result
    check_ray(ENDLESS[name], result)


@pytest.mark.parametrize("name", BOUNDED)
def test_not_where_there_is_a_minimum(name):
    for solver in ("spider", "newton-cg"):
        result = mescal.minimize(*stated(BOUNDED[name]), solver=solver, max_seconds=60)
        assert result.status is not Status.UNBOUNDED and result.ray is None, f"{name} {solver}: {result}"
        assert result.converged, f"{name} {solver}: {result}"


@pytest.mark.parametrize(
    ("name", "case"),
    [
        (name, case)
        for name in ("stoch-ialm", "penalty-storm", "stoch-sqp")
        for case in ("x", "along an equality")
        if (name, case) != ("penalty-storm", "along an equality")  # its penalty shortens the steps: its cap comes first
    ],
)
def test_baselines_say_so_too(name, case):
    """Where they get far at all: with a trust radius that grows with |x|, they do on a line."""
    problem, x0 = stated(ENDLESS[case])
    result = mescal.baselines.get(name).minimize(problem, x0, max_seconds=60)
    assert result.status is Status.UNBOUNDED, f"{name} {case}: {result}"
    check_ray(ENDLESS[case], result)


def test_theory_modes_say_so_too():
    """They count their steps wherever these lead, and hand the last point to the judge."""
    result = mescal.minimize(*stated(ENDLESS["x"]), solver="natasha2-theory", tol=0.1, max_seconds=60)
    assert result.status is Status.UNBOUNDED, result
    check_ray(ENDLESS["x"], result)


def test_overflow_is_told_from_functions_that_end():
    """min -exp(x) overflows before a run is far away; with log(1 - x) beside it, functions end at x = 1."""
    endless = mescal.minimize(mescal.Problem(E(lambda x: -jnp.exp(x[0]))), np.zeros(1, np.float32), solver="scr")
    assert endless.status is Status.UNBOUNDED, endless
    assert (np.diff(endless.ray.objective[:2]) < 0).all() and endless.ray.direction == [1.0]
    ends = mescal.Problem(E(lambda x: -jnp.exp(x[0]) + jnp.log(1 - x[0])))
    assert mescal.minimize(ends, np.zeros(1, np.float32), solver="scr").status is Status.NOT_FINITE


def test_a_cap_is_told_from_an_endless_descent():
    """One outer iteration goes no further than ten, and the ray is found all the same; a bounded problem keeps its cap."""
    assert mescal.minimize(*stated(ENDLESS["x"]), solver="sg-hv-nc", max_outer=1).status is Status.UNBOUNDED
    bounded = mescal.minimize(*stated(BOUNDED["held by a constraint"]), solver="spider", max_outer=1)
    assert bounded.status is Status.OUTER_LIMIT and bounded.ray is None

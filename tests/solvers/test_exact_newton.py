"""Newton's method around exact looks: closed forms, its model, what it looks at and what that costs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, problems, sets
from mescal.oracle.evaluator import Evaluator
from mescal.problems.hock_schittkowski import CLASSICS
from mescal.solvers import NewtonCG
from mescal.solvers.base import EXHAUSTED, RUNNING, STATIONARY, VERIFIED, Goal, Memory
from mescal.solvers.drive import advance, begin
from mescal.solvers.newton.exact_newton import PATIENCE, ExactNewton, boundary_curvature
from mescal.testing import count_calls
from tests.solvers.conftest import subproblem

TOL, D, ROWS = 1e-6, 3, 40
RNG = np.random.default_rng(11)
A = RNG.normal(size=(ROWS, D)) + np.array([1.0, 0.5, -0.5])
B = RNG.normal(size=(ROWS, D)) / 2 + np.array([1.0, 1.0, 0.5])
MEAN_A, MEAN_B = A.mean(axis=0), B.mean(axis=0)
SPREAD = float(np.mean(np.sum((A - MEAN_A) ** 2, axis=1)) / 2)


def newton(problem, x0, tol: Any = TOL, **options) -> mescal.Result:
    return mescal.minimize(problem, np.asarray(x0), solver="newton-cg", tol=tol, **options)


def distance(x, a):
    return (x - a) @ (x - a) / 2


def along(x, b):
    return b @ x


# ---- closed forms


@pytest.mark.parametrize(
    ("kind", "bound"), [("==", -0.5), ("==", 3.0), ("<=", -0.5), ("<=", 9.0), (">=", 3.0), (">=", -9.0)]
)
def test_a_quadratic_with_a_linear_constraint(kind, bound):
    """x = abar - lam bbar with lam = (abar.bbar - r) / |bbar|^2 where the constraint is active, else abar."""
    body = E(along, over=B)
    problem = mescal.Problem(
        E(distance, over=A), {"c": {"==": body == bound, "<=": body <= bound, ">=": body >= bound}[kind]}
    )
    result = newton(problem, np.zeros(D))
    lam = (MEAN_A @ MEAN_B - bound) / (MEAN_B @ MEAN_B)
    active = kind == "==" or (lam > 0 if kind == "<=" else lam < 0)
    lam = lam if active else 0.0
    assert result.converged and result.solver == "newton-cg" and active == (abs(bound) < 5)
    np.testing.assert_allclose(result.x, MEAN_A - lam * MEAN_B, atol=10 * TOL)
    sign = -1 if kind == ">=" else 1  # kept as c <= 0
    np.testing.assert_allclose(result.multipliers["c"], sign * lam, atol=10 * TOL)
    assert result.objective == pytest.approx(SPREAD + lam**2 * (MEAN_B @ MEAN_B) / 2, abs=10 * TOL)


@pytest.mark.parametrize("number", CLASSICS)
def test_classics_without_noise(number):
    """Values differ by at most |lam| times the violation, which TOL bounds; HS 26 is flat to the fourth order."""
    named = problems.get(f"hock-schittkowski/{number}", sigma=0.0)
    result = newton(named.problem, named.x0)
    assert result.converged and result.objective == pytest.approx(named.optimum, abs=1e-4 if number == 26 else 20 * TOL)


class Inequalities(NamedTuple):
    """A classic with c(x) <= 0, one output or several: objective, c, start, minimiser, optimum."""

    objective: Callable
    constraint: Callable
    x0: tuple[float, ...]
    solution: tuple[float, ...]
    optimum: float


def rosen_suzuki(x):
    return x[0] ** 2 + x[1] ** 2 + 2 * x[2] ** 2 + x[3] ** 2 - 5 * x[0] - 5 * x[1] - 21 * x[2] + 7 * x[3]


def three_outputs(x):
    a, b, c, d = x**2
    return jnp.stack(
        [
            a + b + c + d + x[0] - x[1] + x[2] - x[3] - 8,
            a + 2 * b + c + 2 * d - x[0] - x[3] - 10,
            2 * a + b + c + 2 * x[0] - x[1] - x[3] - 5,
        ]
    )


CURVED = {
    10: Inequalities(
        lambda x: x[0] - x[1], lambda x: 3 * x[0] ** 2 - 2 * x[0] * x[1] + x[1] ** 2 - 1, (-10, 10), (0, 1), -1.0
    ),
    43: Inequalities(rosen_suzuki, three_outputs, (0, 0, 0, 0), (0, 1, 2, -1), -44.0),
}


@pytest.mark.parametrize("number", CURVED)
def test_classics_with_inequalities(number):
    """HS 10, and HS 43, whose constraint has three outputs, of which one is inactive at the solution."""
    classic = CURVED[number]
    result = newton(
        mescal.Problem(E(classic.objective), {"c": E(classic.constraint) <= 0}), np.array(classic.x0, float)
    )
    assert result.converged and result.objective == pytest.approx(classic.optimum, abs=20 * TOL)
    np.testing.assert_allclose(result.x, classic.solution, atol=20 * TOL)
    assert np.shape(result.multipliers["c"]) == np.shape(result.slack["c"]) == ((3,) if number == 43 else ())
    assert np.all(result.multipliers["c"] >= 0)


def test_many_outputs_over_a_population():
    """E[(a - x)_j] = r_j for each of five outputs fixes x in five dimensions; the multipliers are those of |x|^2/2."""
    rows, target = RNG.normal(size=(30, 5)), np.linspace(-1, 1, 5)
    problem = mescal.Problem(E(lambda x: x @ x / 2), {"c": E(lambda x, a: x - a, over=rows) == target})
    result = newton(problem, np.zeros(5))
    expected = rows.mean(axis=0) + target
    assert result.converged
    np.testing.assert_allclose(result.x, expected, atol=2 * TOL)
    np.testing.assert_allclose(result.multipliers["c"], -expected, atol=10 * TOL)


FAR = np.array([3.0, -2.0, 0.25])
DOMAINS = {
    "box": (sets.Box(-1.0, 1.0), np.clip(FAR, -1, 1)),
    "half open": (
        sets.Box(np.array([-np.inf, -1, -np.inf]), np.array([0.5, np.inf, np.inf])),
        np.array([0.5, -1, 0.25]),
    ),
    "ball": (sets.Ball(1.5), 1.5 * FAR / np.linalg.norm(FAR)),
    "simplex": (sets.Simplex(), np.array([1.0, 0, 0])),
}


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("inside", [True, False], ids=["inside", "boundary"])
def test_the_nearest_point_of_a_set(name, inside):
    """min E|x - a|^2/2 over X is the projection of abar onto it, whether the start lies inside of X or on its boundary."""
    domain, expected = DOMAINS[name]
    rows = FAR + RNG.normal(size=(20, 3))
    rows += FAR - rows.mean(axis=0)
    start = np.full(3, 1 / 3) if inside else np.asarray(domain.project(np.array([-5.0, 5.0, 1.0])), np.float64)
    result = newton(mescal.Problem(E(distance, over=rows), {}, domain), start)
    assert result.converged
    np.testing.assert_allclose(result.x, expected, atol=5 * TOL)


def test_a_constraint_within_a_set():
    """|x - (0.6, 0.9, -1)|^2 on x >= 0 with sum(x) = 1: (0.35, 0.65, 0), and 0.25 for the sum."""
    problem = mescal.Problem(
        E(lambda x: jnp.sum((x - jnp.array([0.6, 0.9, -1.0])) ** 2) / 2),
        {"sum": E(lambda x: jnp.sum(x)) == 1},
        sets.Box(0.0, np.inf),
    )
    result = newton(problem, np.full(3, 0.5))
    assert result.converged
    np.testing.assert_allclose(result.x, [0.35, 0.65, 0], atol=5 * TOL)
    assert float(result.multipliers["sum"]) == pytest.approx(0.25, abs=10 * TOL)


# ---- saddles


def bent(x):
    return x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2 / 2


def quadratic(x):
    return x @ (jnp.array([3.0, 1.0, 2.0]) * x) / 2


class Saddle(NamedTuple):
    """A problem, a strict saddle of it, its optimum, and what else `minimize` is given."""

    problem: mescal.Problem
    x0: list[float]
    optimum: float
    penalty: float = 1.1
    cone: str = "paper"


SADDLES = {
    "free": Saddle(mescal.Problem(E(bent)), [0.0, 0.0], -0.25),
    "sphere": Saddle(  # with a small penalty, the first solve runs to the centre, where the violation is largest
        mescal.Problem(E(quadratic), {"c": E(lambda x: x @ x) == 1}), [1.0, 0.0, 0.0], 0.5, penalty=10.0
    ),
    "active": Saddle(
        mescal.Problem(E(lambda x: -(x[0] ** 2) / 2 - x[1] ** 2), {"c": E(lambda x: x @ x) <= 1}), [1.0, 0.0], -1.0
    ),
    "inactive": Saddle(mescal.Problem(E(bent), {"c": E(lambda x: x @ x) <= 4}), [0.0, 0.0], -0.25),
    "box": Saddle(  # ends in a corner, from which f falls to second order across both bounds
        mescal.Problem(E(lambda x: x[0] * x[1]), {}, sets.Box(-1.0, 1.0)), [0.0, 0.0], -1.0, cone="critical"
    ),
    "face": Saddle(mescal.Problem(E(lambda x: bent(x) - x[2]), {}, sets.Box(-2.0, 2.0)), [0.0, 0.0, 2.0], -2.25),
    "rows": Saddle(
        mescal.Problem(E(lambda x, a: a @ x**4 / 4 - a @ x**2 / 2, over=np.array([[1.0, 2.0], [3.0, 2.0]]))),
        [0.0, 0.0],
        -1.0,
    ),
}


@pytest.mark.parametrize("name", SADDLES)
def test_from_a_saddle_itself_to_a_minimiser(name):
    """The judge finds the negative curvature, and its direction leads away: the solver searches for none."""
    problem, x0, optimum, penalty, cone = SADDLES[name]
    start = mescal.certify(problem, np.asarray(x0), tol=1e-4)
    assert start.stationarity.value < 1e-6 and start.feasibility.value < 1e-6 and start.curvature.value < -0.5
    assert start.direction is not None
    result = newton(problem, x0, tol=1e-4, outer=mescal.Outer(penalty=penalty), cone=cone)
    assert result.converged and result.objective == pytest.approx(optimum, abs=1e-3)
    assert not np.allclose(result.x, x0, atol=0.1)
    assert result.work.searches.total == 0 and result.work.solver.hvps > 0


# ---- the model


def wavy(x, a):
    return jnp.cos(a @ x) + jnp.exp(a[0] * x[1] / 4) + (x @ x) ** 2 / 10


def outputs(x, b):
    return jnp.stack([jnp.sin(b @ x), b @ x**2, (b @ x) ** 3 / 5 - 1])


@pytest.fixture(scope="module")
def wavy_sub(make_subproblem):
    """At a point where one inequality is active, one is not, and one is an equality's: away from kinks."""
    problem = mescal.Problem(
        E(wavy, over=A), {"e": E(along, over=A) == 0.3, "c": E(outputs, over=B) <= np.array([0.2, 40.0, -0.5])}
    )
    sub = make_subproblem(problem, np.zeros(D), [0.4, 0.7, 0.1, 0.3], 2.0, np.float64)
    x = np.array([0.7, 0.4, 0.3])
    at, _ = sub.look(np.concatenate([x, np.zeros(3)]))
    assert list(at.z[D:] > 0.1) == [False, True, False] and np.all(np.abs(at.multipliers[[1, 3]]) > 0.1)
    return sub, at


def central(function, x, step):
    """Differences along every axis, of fourth order."""

    def difference(direction):
        near, far = (function(x + k * direction) - function(x - k * direction) for k in (1, 2))
        return (8 * near - far) / (12 * step)

    return np.array([difference(step * axis) for axis in np.eye(x.size)])


def test_the_gradient_is_that_of_the_values(wavy_sub):
    """Slacks are eliminated: what is differentiated is min over s >= 0 of L(x, s)."""
    sub, at = wavy_sub
    found = central(lambda x: sub.look(np.concatenate([x, at.z[D:]]))[0].value, at.z[:D], 1e-3)
    np.testing.assert_allclose(at.gradient[:D], found, rtol=1e-8, atol=1e-8)


def test_the_model_is_that_of_the_gradients(wavy_sub, monkeypatch):
    sub, at = wavy_sub
    expected = central(lambda x: sub.look(np.concatenate([x, at.z[D:]]))[0].gradient[:D], at.z[:D], 1e-3)
    model = ExactNewton()._model(sub, at, np.zeros(sub.parameters))
    dense = np.array([model.product(axis) for axis in np.eye(D)])
    rows = model.rows[model.active]
    np.testing.assert_allclose(dense + model.penalty * rows.T @ rows, expected, rtol=1e-7, atol=1e-7)
    monkeypatch.setattr("mescal.solvers.newton.exact_newton.DENSE", 0)
    model = ExactNewton()._model(sub, at, np.zeros(sub.parameters))
    np.testing.assert_allclose([model.product(axis) for axis in np.eye(D)], dense, rtol=1e-10, atol=1e-10)


WALLS = RNG.normal(size=(8, D))  # of which phi has three at the minimiser below, and others on the way


@pytest.fixture(scope="module")
def walled_sub(make_subproblem):
    """|x - abar|^2/2 between planes: phi is quadratic in pieces, and the model is phi."""
    problem = mescal.Problem(E(distance, over=A), {"c": E(lambda x: jnp.asarray(WALLS) @ x) <= -0.5})
    return make_subproblem(problem, np.zeros(D), np.linspace(0, 0.7, 8), 20.0, np.float64)


def test_the_model_goes_on_beyond_the_constraints_that_hold_here(walled_sub):
    x = np.full(D, -3.0)
    at, _ = walled_sub.look(np.concatenate([x, np.zeros(8)]))
    model = ExactNewton()._model(walled_sub, at, np.zeros(D))
    for step in RNG.normal(size=(5, D)) * 4:
        there, _ = walled_sub.look(np.concatenate([x + step, np.zeros(8)]))
        np.testing.assert_array_equal(model.counted(step), there.z[D:] <= 0)
        assert model.rise(step) == pytest.approx(there.value - at.value, rel=1e-9)


def test_steps_do_not_run_into_one_constraint_and_out_of_another(walled_sub):
    """At most two steps and a look that ends it; with the constraints that hold where a step starts, five or six from here."""
    for x in -3 * np.eye(D):
        states = solve(walled_sub, np.concatenate([x, np.zeros(8)]), a_goal(), PATIENCE)
        assert float(states[-1].progress.stationarity) <= 1e-8 and len(states) <= 4


# ---- looks, and what they cost


def solve(sub, z, goal, later: int = 0) -> Any:
    """A whole inner solve, step by step; with `later`, as if so many steps had been taken before it."""
    solver = NewtonCG().sized(ROWS)
    state = begin(solver, sub, np.asarray(z, np.float64), goal, Memory.fresh(1.0, np.float64), np.zeros(2, np.uint32))
    states = [eqx.tree_at(lambda s: s.progress.steps, state, np.asarray(later))]
    while int(states[-1].progress.status) == RUNNING:
        states.append(advance(solver, sub, states[-1], goal, goal, 1))
    return states


def a_goal(**changes) -> Goal:
    wanted = {"gradient": 1e-8, "curvature": 0.01, "steps": 200, "population": ROWS, "large_batch": ROWS}
    return Goal(**(wanted | {"curvature_batch": 128, "judged": True, "ready": np.inf} | changes))


@pytest.fixture
def looked_at(monkeypatch):
    """Points of looks, of Hessians, of passes for what these are off by, of looks with rounding bounds; how many a quotient has."""
    points, hessians, bounds, rounded, quotients = [], [], [], [], []
    at, hessian, bound, beside = Evaluator.at, Evaluator.hessian, Evaluator.hessian_rounding, Evaluator.beside

    def watched_at(self, x, rounded_too=True, **how):
        points.append(tuple(x))
        asked = how.pop("rounded", rounded_too)
        rounded.extend([tuple(x)] * asked)
        return at(self, x, rounded=asked)

    def watched_bound(self, x, weight, rough=False, units=None):
        bounds.extend([tuple(x)] * (1 if rough else 2))
        return bound(self, x, weight, rough, units)

    def watched_beside(self, at_points, weight):
        quotients.append(len(at_points))
        return beside(self, at_points, weight)

    def watched_hessian(self, x, weight, rough=False):
        assert np.any(weight != 0) or not weight.size  # functions that weigh nothing are not evaluated
        hessians.append(tuple(x))
        return hessian(self, x, weight, rough)

    monkeypatch.setattr(Evaluator, "at", watched_at)
    monkeypatch.setattr(Evaluator, "hessian", watched_hessian)
    monkeypatch.setattr(Evaluator, "hessian_rounding", watched_bound)
    monkeypatch.setattr(Evaluator, "beside", watched_beside)
    return points, hessians, bounds, rounded, quotients


@pytest.mark.parametrize("later", [0, PATIENCE], ids=["quasi-newton", "newton"])
def test_a_point_is_looked_at_once(wavy_sub, looked_at, later):
    """The look at the point that a step leads to is the next iteration's; with the true Hessian, one is formed per step."""
    sub, at = wavy_sub
    points, hessians, *_ = looked_at
    states = solve(sub, at.z, a_goal(), later)
    progress = states[-1].progress
    steps, counted = int(progress.steps) - later, progress.work.tally()
    assert int(progress.status) == VERIFIED and float(progress.stationarity) <= 1e-8 and steps > 1
    assert len(points) == len(set(points)) and len(hessians) == len(set(hessians)) <= steps
    assert len(hessians) == (steps - 1 if later else max(0, steps - 1 - PATIENCE))  # the last step sees that it is over
    assert counted.gradient_samples == ROWS * len(points) and counted.value_samples == 0
    assert counted.hvp_samples == ROWS * D * len(hessians)
    values = [float(state.at.value) for state in states]
    assert np.all(np.diff(values) <= 1e-12) and values[-1] < values[0]


def test_full_newton_steps_converge_quadratically(wavy_sub):
    """Close to the solution a step squares the error; each needs one look."""
    sub, at = wavy_sub
    solution = solve(sub, at.z, a_goal(gradient=1e-12), PATIENCE)[-1].at.z
    states = solve(sub, solution + np.concatenate([np.full(D, 0.03), np.zeros(3)]), a_goal(gradient=1e-11), PATIENCE)
    errors = [float(np.linalg.norm(state.at.z - solution)) for state in states]
    errors = [error for error in errors if error > 1e-12]
    ratios = np.array(errors[1:]) / np.square(errors[:-1])
    assert len(errors) >= 2 and np.all(ratios < 20), errors
    looks = np.diff([state.progress.work.tally().gradient_samples for state in states])
    assert set(looks[:-1]) == {ROWS}


@pytest.mark.parametrize("later", [0, PATIENCE], ids=["quasi-newton", "newton"])
def test_what_rounding_does_not_allow_ends_a_solve(wavy_sub, later):
    """Values to rounding no longer tell points apart: neither does a step that changes nothing count as one that leads down."""
    sub, at = wavy_sub
    states = solve(sub, at.z, a_goal(gradient=1e-30, steps=3000), later)
    assert int(states[-1].progress.status) == EXHAUSTED and len(states) < 150
    assert float(states[-1].at.stationarity) < 1e-7


@pytest.mark.parametrize("patience", [0, PATIENCE], ids=["newton", "quasi-newton"])
def test_counters_are_the_calls_of_the_running_programs(monkeypatch, looked_at, patience):
    """On the whole of a run, the survey and certificates included: values, gradients and products of both functions.

    A Hessian is D products of one linearisation, which is one evaluation of every row; what it may be off by is one product, or
    two. A look with rounding bounds evaluates the functions once more for these.
    """
    monkeypatch.setattr("mescal.solvers.newton.exact_newton.PATIENCE", patience)
    objective, of_objective = count_calls(lambda x, a: jnp.sum(x**4 - x**2) / 4 + a @ x / 50)
    constraint, of_constraint = count_calls(lambda x, b: jnp.stack([jnp.sin(b @ x), b[0] * x[1], x[2] + b[1]]))
    x, rows = np.array([0.3, -0.2, 0.4]), B[:30]
    bound = [np.sin(rows @ x).mean(), rows[:, 0].mean() * x[1], x[2] + rows[:, 1].mean()]
    problem = mescal.Problem(E(objective, over=A), {"c": E(constraint, over=rows) == np.array(bound)})
    result = newton(problem, np.zeros(D), tol=1e-3)
    points, hessians, bounds, rounded, _ = (len(found) for found in looked_at)
    priced = points + sum(looked_at[-1])
    twice = hessians + bounds
    once = priced + twice
    total = result.work.solver + result.work.judge
    assert result.converged and np.linalg.norm(result.x - x) < 0.01
    assert (hessians > 2) == (patience == 0)
    assert of_objective.counts == [ROWS * (once + rounded), ROWS * once, ROWS * twice]
    assert of_constraint.counts == [30 * (once + rounded), 30 * once, 30 * twice]
    assert total.gradient_samples == total.objective_gradients == ROWS * priced and total.value_samples == 0
    products = D * hessians + bounds
    assert total.hvp_samples == total.objective_hvps == ROWS * products
    each = 3 * 30  # outputs times samples
    assert total.constraint_values == total.constraint_gradients == each * (priced + products)
    assert total.constraint_hvps == each * products


def test_a_violation_is_handed_back_before_multipliers_have_moved(wavy_sub):
    """A stationary point of L that is far from feasible, and could be less so, is no candidate: STATIONARY, without a search."""
    sub, at = wavy_sub
    states = solve(sub, at.z, a_goal(gradient=1e-6, ready=1e-6))
    assert int(states[-1].progress.status) == STATIONARY
    assert sub.violation(states[-1].at.constraint) > 1e-3
    assert states[-1].progress.searches.tally().total == 0


# ---- types


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_x_has_the_type_of_the_start(dtype):
    """Whatever it is computed in, which is float64, and whatever JAX is set to have."""
    problem = mescal.Problem(E(distance, over=A), {"c": E(along, over=B) == 1.0})
    result = newton(problem, np.zeros(D, dtype))
    assert result.converged and result.x.dtype == dtype
    expected = MEAN_A - (MEAN_A @ MEAN_B - 1) / (MEAN_B @ MEAN_B) * MEAN_B
    np.testing.assert_allclose(result.x, expected, atol=10 * TOL)
    assert result.certificate.feasibility.upper <= TOL


def test_the_structure_of_the_start_is_kept():
    start = {"w": np.zeros(2, np.float32), "b": np.float32(0)}
    problem = mescal.Problem(E(lambda p, a: (p["w"] @ a[:2] + p["b"] - a[2]) ** 2, over=A))
    result = mescal.minimize(problem, start, solver="newton-cg", tol=1e-4)
    design = np.column_stack([A[:, :2], np.ones(ROWS)])
    expected, *_ = np.linalg.lstsq(design, A[:, 2], rcond=None)
    assert result.converged and result.x["w"].dtype == np.float32 and np.shape(result.x["b"]) == ()
    np.testing.assert_allclose([*result.x["w"], result.x["b"]], expected, atol=1e-3)


def test_the_model_has_the_curvature_of_the_boundary():
    """f(P(x + r d)) = f + r g.d + r^2 (d'Hd + bending |d|^2)/2 + O(r^3) on the boundary of a ball: half of r leaves an eighth.

    The rest is that of a smooth function with a third derivative of order 1; a wrong model would leave r^2, a factor of 4.
    """
    rng = np.random.default_rng(4)
    H = rng.standard_normal((4, 4))
    H, b = jnp.asarray((H + H.T) / 4), jnp.asarray([3.0, -1.0, 2.0, 0.5])
    problem = mescal.Problem(E(lambda x: x @ H @ x / 2 + b @ x), {}, sets.Ball(2.0))
    x = -2 * np.asarray(b, np.float64) / np.linalg.norm(np.asarray(b, np.float64))
    sub = subproblem(problem, x, np.zeros(0), 1.0, np.float64)
    at, _ = sub.look(x)
    bending = boundary_curvature(sub, x, at.gradient)
    assert bending.shape == (4,) and (bending > 0).all()
    d = sub.project_on_face_of(x, rng.standard_normal(4))
    rests = []
    for r in (0.02, 0.01, 0.005):
        there, _ = sub.look(sub.project(x + r * d))
        model = r * at.gradient @ d + r**2 / 2 * d @ (np.asarray(H) @ d + bending * d)
        rests.append(abs(there.value - at.value - model))
    assert rests[0] / rests[1] > 6 and rests[1] / rests[2] > 6
    assert not boundary_curvature(sub, x / 2, at.gradient).any()


def test_a_solve_begins_with_a_radius_that_can_move():
    """What an exhausted solve left of the trust radius belonged to another subproblem."""
    problem = mescal.Problem(E(lambda x: x @ x))
    sub = subproblem(problem, np.ones(2), np.zeros(0), 1.0, np.float64)
    solver = ExactNewton()
    left = Memory.of(1.0, 0.0, 1e-12, np.float64)
    state = solver.init(sub, np.ones(2), None, left, np.zeros(2, np.uint32))  # pyright: ignore[reportArgumentType]
    assert float(state.memory.trust) >= 2.0**-10

"""Newton-CG: what CG returns, what a sub-sample of the Hessian is, how it grows, and what all of it costs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.solvers import Auto, NewtonCG
from mescal.solvers.base import Goal, Memory
from mescal.solvers.drive import advance, begin
from mescal.solvers.newton.exact_newton import PATIENCE
from mescal.solvers.newton.growing_subsample import Step, sufficient_step
from mescal.solvers.newton.quadratic_model import make_model
from mescal.solvers.newton.truncated_cg import truncated_cg
from mescal.solvers.reset import sampled_reset

D = 6
RNG = np.random.default_rng(3)
B = RNG.normal(size=D)
BASIS = np.linalg.qr(RNG.normal(size=(D, D)))[0]
ROWS = RNG.normal(size=(300, D)).astype(np.float32)


def bowl(eigenvalues: np.ndarray) -> tuple[np.ndarray, mescal.Problem]:
    """x'Ax/2 + b.x, A of these eigenvalues."""
    matrix = (BASIS * eigenvalues) @ BASIS.T
    return matrix, mescal.Problem(E(lambda x: x @ jnp.asarray(matrix, x.dtype) @ x / 2 + jnp.asarray(B, x.dtype) @ x))


def reset_at(sub, z):
    """What a solver's recursion is given of an exact look."""
    return sub.look(np.asarray(z, np.float32))[0].arrays(np.float32)


def exact_model(make_subproblem, key, eigenvalues):
    matrix, problem = bowl(eigenvalues)
    sub = make_subproblem(problem, np.zeros(D), [], 1.0)
    return matrix, make_model(sub.lagrangian, reset_at(sub, np.zeros(D)), jnp.float32(1), jnp.float32(1), key, None)


def solve(model, radius, cap=D):
    whole, _ = model.whole()
    return truncated_cg(model, whole, jnp.int32(1), Step.none(model.gradient), radius, jnp.float32(1e-6), cap)[0]


def test_one_step_solves_a_quadratic(make_subproblem, key):
    matrix, model = exact_model(make_subproblem, key, np.linspace(1, 3, D))
    step = solve(model, jnp.float32(100))
    np.testing.assert_allclose(step.d, np.linalg.solve(matrix, -B), rtol=1e-4)
    np.testing.assert_allclose(step.product, -B, atol=1e-4)
    assert not step.boundary and not step.negative and int(step.steps) == D and 1 <= float(step.top) <= 3.001


def test_cg_follows_negative_curvature_to_the_boundary(make_subproblem, key):
    matrix, model = exact_model(make_subproblem, key, np.array([-0.5, 1, 1.5, 2, 2.5, 3]))
    step = solve(model, jnp.float32(5))
    d = np.asarray(step.d, np.float64)
    assert step.boundary and step.negative and np.linalg.norm(d) == pytest.approx(5, rel=1e-5)
    inside = -(np.linalg.norm(B) ** 3) / np.linalg.norm(
        matrix @ B
    )  # no step along -b with |A| as its curvature is better
    assert B @ d + d @ matrix @ d / 2 < inside


def test_a_short_radius_ends_cg(make_subproblem, key):
    _, model = exact_model(make_subproblem, key, np.linspace(1, 3, D))
    step = solve(model, jnp.float32(0.01))
    assert step.boundary and not step.negative and int(step.steps) == 1
    np.testing.assert_allclose(step.d, -0.01 * B / np.linalg.norm(B), rtol=1e-4)


def wave(x, a):
    return jnp.cos(a @ x) / 10 + (x - a) @ (x - a)


def row(x, a):
    return a @ x + (a @ x) ** 2 / 10


@pytest.fixture(scope="module")
def constrained(make_subproblem):
    """An inequality on a finite population, at a point where it is violated; for sub-sampled and for exact steps."""
    problem = mescal.Problem(E(wave, over=ROWS), {"c": E(row, over=ROWS[:200] + 0.5) <= 0})
    single, double = (make_subproblem(problem, np.zeros(D), [0.7], 2.0, dtype) for dtype in (np.float32, np.float64))
    return single, double, np.concatenate([np.full(D, 0.2), np.zeros(1)])


def test_products_on_all_rows_are_those_of_the_augmented_lagrangian(constrained, key):
    """On the face: the slack rests at its bound."""
    sub, _, z = constrained
    oracle, reset = sub.lagrangian, reset_at(sub, z)
    v = jnp.asarray(RNG.normal(size=D + 1), jnp.float32)

    @jax.jit
    def both():
        model = make_model(oracle, reset, jnp.float32(2), jnp.float32(1), key, None)
        product, _ = model.product(model.whole()[0], jnp.int32(0), jnp.int32(1), v)
        at, _ = oracle.exact(reset.z)
        return product, oracle.exact_hvp(reset.z, oracle.project_face(reset.z, v), at)[0]

    product, expected = both()
    assert float(reset.z[-1]) == 0 and float(product[-1]) == 0
    np.testing.assert_allclose(product[:-1], expected[:-1], rtol=1e-4, atol=1e-5)


def test_blocks_are_the_hessian_of_their_samples(constrained, key):
    """Three blocks of 50 with the exact weights and Jacobian: their mean is the same with any number of them filled."""
    sub, _, z = constrained
    oracle, reset = sub.lagrangian, reset_at(sub, z)
    v = jnp.asarray(RNG.normal(size=D + 1), jnp.float32).at[-1].set(0)
    held = eqx.tree_at(lambda o: (o.multipliers, o.penalty), oracle, (reset.multipliers, jnp.zeros(())))

    @jax.jit
    def both():
        model = make_model(oracle, reset, jnp.float32(2), jnp.float32(1), key, 50, 4)
        blocks, work = model.fill(model.empty(), jnp.int32(0), jnp.int32(3))
        product, spent = model.product(blocks, jnp.int32(0), jnp.int32(3), v)
        expected, _ = held.hvp(reset.z, v, key, 150)
        assert reset.jacobian is not None
        return product, expected + oracle.penalty * (reset.jacobian @ v) @ reset.jacobian, work, spent

    product, expected, work, spent = both()
    np.testing.assert_allclose(product[:-1], expected[:-1], rtol=1e-4, atol=1e-4)
    counted = (work + spent).tally()
    assert counted.gradient_samples == 150 and counted.hvp_samples == 150
    assert counted.constraint_hvps == 150 and counted.constraint_gradients == 150


def make_stream(noise: float):
    """|x|^2/2 - x_1 with a Hessian of this noise."""

    def fn(x, s):
        return jnp.sum((1 + noise * s) * x**2) / 2 - x[0]

    return mescal.Problem(E(fn, over=mescal.Sampler(lambda key: jax.random.normal(key, (D,)))))


@pytest.mark.parametrize(("noise", "blocks"), [(0.1, 1), (200.0, 4)])
def test_a_sub_sample_grows_where_fresh_samples_refute_the_step(make_subproblem, key, noise, blocks):
    """Blocks of 64: errors of a curvature are 0.0125 and 25 of it. The test asks for half of |g|: 40 errors away, or 1/50."""
    sub = make_subproblem(make_stream(noise), np.zeros(D), [], 1.0)
    solver = NewtonCG(batch=64, blocks=4)
    target = solver.plan(Goal(0.01, 0.01, 100, None, 4096, 128), np.float32)
    z = np.ones(D, np.float32)

    @jax.jit
    def step_of(reset, key):
        model = make_model(sub.lagrangian, reset, jnp.float32(1), jnp.float32(1), key, solver.batch, solver.blocks)

        def cg(of, size, start):
            return truncated_cg(model, of, size, start, jnp.float32(50), jnp.float32(0.1), D)

        return sufficient_step(model, cg)

    def once(key):
        reset, _, _ = sampled_reset(sub, z, None, target, tuple(map(int, jax.random.key_data(key))), 0)
        return step_of(reset.arrays(np.float32), key)

    step, size, work = once(key)
    counted = work.tally()
    assert int(size) == blocks
    assert counted.gradient_samples == 64 * (2 if blocks == 1 else 4)  # each block is linearised once
    if blocks == 1:  # CG on one block, and one product of the fresh one
        assert counted.hvp_samples == 64 * (int(step.steps) + 1)
    again, other = once(key)[0], once(jax.random.fold_in(key, 1))[0]
    assert np.array_equal(again.d, step.d) and not np.array_equal(other.d, step.d)


def exact_step(sub, z, goal):
    """A population that is looked at whole: before and after one step with the true Hessian."""
    solver = NewtonCG().sized(goal.population)
    first = begin(solver, sub, np.asarray(z), goal, Memory.fresh(2.0, np.float64), np.zeros(2, np.uint32))
    first = eqx.tree_at(lambda state: state.progress.steps, first, np.asarray(PATIENCE))
    return first, advance(solver, sub, first, goal, goal, 1)


def test_a_step_on_a_population_counts_passes(constrained):
    """A Hessian, which is D products, and one look where the full step leads down."""
    _, sub, z = constrained
    first, then = exact_step(sub, z, Goal(0.01, 0.01, 100, 300, 300, 128))
    counted = then.progress.work.tally() - first.progress.work.tally()
    assert first.progress.work.tally().gradient_samples == 300
    assert counted.gradient_samples == 300 and counted.value_samples == 0
    assert counted.hvp_samples == 300 * D
    assert float(then.at.value) < float(first.at.value) and int(then.progress.steps) == PATIENCE + 1


def test_bounds_are_met_and_left(make_subproblem):
    """(x - 2)^2 + (y + 2)^2 on [-1, 1]^2 from (-1, 0): one step leaves the bound of x and meets the other two."""
    rows = np.full((40, 2), [2, -2], np.float32)
    problem = mescal.Problem(E(lambda x, a: (x - a) @ (x - a), over=rows), {}, mescal.sets.Box(-1.0, 1.0))
    sub = make_subproblem(problem, np.zeros(2), [], 1.0, np.float64)
    _, then = exact_step(sub, [-1.0, 0.0], Goal(1e-3, 0.01, 100, 40, 40, 40))
    np.testing.assert_array_equal(then.progress.z, [1.0, -1.0])


def test_auto_says_what_it_chose_and_why():
    problem = mescal.Problem(E(lambda x, a: (x - a) @ (x - a), over=ROWS))
    result = mescal.minimize(problem, np.zeros(D, np.float32), solver="auto")
    assert result.converged and result.solver == "newton-cg"
    assert "newton-cg was chosen since a full pass has 300 evaluations" in result.reason and result.reason in str(
        result
    )
    assert [Auto().sized(n).name for n in (None, 8192, 8193)] == ["spider", "newton-cg", "spider"]
    assert Auto().reason(1).endswith("has 1 evaluation, at most 8192")
    assert "stream" in Auto().reason(None) and "more than 8192" in Auto().reason(9000)

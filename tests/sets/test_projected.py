"""Sets of which only the projection is known: points inside stay inside, whatever the scales of their coordinates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.sets import Box, Projected

SCALES = np.array([1e-6, 1.0, 1e6, 1e9])


def clip(x):
    return jnp.clip(x, 0.0, jnp.asarray([1e-5, 7.0, 1e7, 1e12], x.dtype))


def unit_box(x):
    return jnp.clip(x, 0.0, 0.5)


def square(x, a):
    return jnp.sum((x - a - 1) ** 2)


def form(x, a):
    return a @ x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tangent_projections_equal_those_of_the_box_at_all_scales(dtype):
    """Random points, each coordinate inside or on either bound, random directions: P_T is that of the box."""
    rng = np.random.default_rng(0)
    exact, guess = Box(np.zeros(4), np.array([1e-5, 7.0, 1e7, 1e12])), Projected(clip)
    with jax.enable_x64(True):
        both = jax.jit(lambda x, v: (exact.project_tangent(x, v), guess.project_tangent(x, v)))
        for _ in range(200):
            where = rng.integers(3, size=4)
            inside = SCALES * rng.uniform(0.2, 5, 4)
            x = np.choose(where, [np.zeros(4), inside, np.full(4, np.inf)]).astype(dtype)
            x = np.asarray(exact.project(jnp.asarray(x)))
            v = rng.normal(size=4)
            one, other = both(x, v)
            np.testing.assert_allclose(other, one, atol=1e-9)


def test_a_point_inside_is_not_taken_for_one_on_the_boundary():
    """min (x - 0.001)^2 + ... at x = 0.5, beside a coordinate of 10^6: nothing is active, the slope is 0.998."""
    problem = mescal.Problem(
        E(lambda x: (x[0] - 1e-3) ** 2 + (x[1] - 1e6) ** 2 / 1e6), domain=Projected(lambda x: jnp.clip(x, 0.0, 1e9))
    )
    found = mescal.certify(problem, np.array([0.5, 1e6]), tol=0.01)
    assert found.stationarity.value == pytest.approx(0.998, rel=1e-9)


@pytest.mark.parametrize("domain", [Box(0.0, 1e9), Projected(lambda x: jnp.clip(x, 0.0, 1e9))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_outside_are_refused_whatever_other_coordinates_are(domain, dtype):
    problem = mescal.Problem(E(lambda x: x[0] ** 2 + (x[1] - 1e6) ** 2), domain=domain)
    for wrong in (-0.5, -1e-3):
        with pytest.raises(mescal.InputError, match="outside"):
            mescal.certify(problem, np.array([wrong, 1e6], dtype))
    assert mescal.certify(problem, np.array([-1e-7, 1e6], dtype)).warnings[-1].startswith("x was 1e-07 outside")


def test_sets_that_couple_coordinates_may_round_small_ones():
    """On an affine set in float32 the rounding of a coordinate of 10^6 moves the others by more than a part in 10^6 of them."""
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(2, 5))
    domain = mescal.sets.Affine(matrix, matrix @ np.array([1e6, 1e-3, 1.0, 1e-2, 3.0]))
    problem = mescal.Problem(E(lambda x: 1e-9 * (x @ x)), domain=domain)
    for _ in range(20):
        x = domain.project(jnp.asarray(rng.normal(size=5) * [1e6, 1, 1, 1, 1], jnp.float32))
        assert mescal.certify(problem, x).stationarity.upper < 1


@pytest.mark.parametrize("solver", ["auto", "newton-cg", "spider"])
def test_minimize_works_over_a_projection(solver):
    rows = np.random.default_rng(0).normal(size=(100, 2))
    problem = mescal.Problem(E(square, over=rows), {"c": E(form, over=rows) <= 1.0}, domain=Projected(unit_box))
    result = mescal.minimize(problem, np.array([0.2, 0.3]), solver=solver, tol=0.05, max_outer=10)
    assert result.converged
    np.testing.assert_allclose(result.x, 0.5, atol=1e-6)


SADDLES = {  # objective, projection, start, minimiser
    "on a bound": (lambda x: -x[0] * x[1] + jnp.sum(x**4) / 4, lambda x: jnp.maximum(x, 0), [0.0, 0.0], [1.0, 1.0]),
    "inside": (lambda x: x[1] ** 2 - x[0] ** 2 + x[0] ** 4, lambda x: jnp.clip(x, -1, 1), [0.0, 0.0], [0.5**0.5, 0.0]),
}


@pytest.mark.parametrize(
    ("name", "solver"), [("on a bound", "spider"), ("on a bound", "null-space"), ("inside", "newton-cg")]
)
def test_saddles_are_left(name, solver):
    """Nothing is proved of their cones; the direction of the lowest curvature is tried all the same, and projected."""
    f, project, start, minimiser = SADDLES[name]
    problem = mescal.Problem(E(lambda x: f(x)), domain=Projected(project))
    result = mescal.minimize(problem, np.array(start, np.float32), solver=solver, tol=0.01, max_outer=10)
    assert result.converged, result
    np.testing.assert_allclose(np.abs(result.x), minimiser, atol=0.02)


def test_where_nothing_can_be_proved_it_is_said_what_would_help():
    """(1, 0) minimises x1^2 - x0^2 on the unit ball, and the judge, who knows no row there, sees all of space."""
    ball = Projected(lambda x: x / jnp.maximum(1, jnp.linalg.norm(x)))
    problem = mescal.Problem(E(lambda x: x[1] ** 2 - x[0] ** 2), domain=ball)
    result = mescal.minimize(problem, np.zeros(2, np.float32), tol=0.01)
    np.testing.assert_allclose(np.abs(result.x), [1, 0], atol=1e-3)
    assert result.status is mescal.Status.UNDECIDED and result.missing == (
        "curvature -2 (not >= -0.01), not known well enough",
    )
    assert "would tell more" in result.certificate.warnings[-1]


@pytest.mark.parametrize("project", [unit_box, Box(0.0, 0.5).project, functools.partial(jnp.clip, min=0.0, max=0.5)])
def test_a_projection_is_an_argument_of_compiled_programs(project):
    """As solvers of every kind pass it."""
    x = jnp.asarray([-1.0, 0.2, 3.0])
    np.testing.assert_allclose(jax.jit(lambda domain, x: domain.project(x))(Projected(project), x), [0, 0.2, 0.5])


@pytest.mark.parametrize(
    "project",
    [
        lambda x: x / jnp.linalg.norm(x),
        lambda x: jnp.where(jnp.abs(x) > 1, x, jnp.sign(x)),
        lambda x: 2 * jnp.clip(x, -1, 1),
    ],
    ids=["a sphere", "two rays", "no projection"],
)
def test_projections_onto_sets_that_are_not_convex_are_refused(project):
    """min x_0 over the unit sphere has a maximum at (1, 0), where the projected gradient vanishes as at a minimum."""
    problem = mescal.Problem(E(lambda x: x[0]), domain=Projected(project))
    x = np.asarray(project(jnp.asarray([1.0, 0.0])))
    with pytest.raises(mescal.InputError, match="times as far apart"):
        mescal.certify(problem, x, tol=1e-3)
    with pytest.raises(mescal.InputError, match="times as far apart"):
        mescal.minimize(problem, x)

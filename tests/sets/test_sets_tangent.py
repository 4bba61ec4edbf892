"""Tangent cones: activity, the exact cone of the simplex, the curvature of the ball, and the judge's description."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from jax.flatten_util import ravel_pytree

from mescal import sets
from mescal.sets.arrays import ROUNDINGS


def test_simplex_tangent_against_least_squares():
    """P_T(v) = v - P_N(v), and N is spanned by 1 (both ways) and by -e_i for active i: bounded least squares."""
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        project = jax.jit(lambda x, v: sets.Simplex().project_tangent(x, v))
        for trial in range(60):
            free = rng.random(6) < rng.random()
            free[rng.integers(6)] = True
            x = np.where(free, rng.dirichlet(np.ones(6)), 0)
            v = rng.integers(-2, 3, 6).astype(float) if trial % 3 else rng.normal(size=6) * 10
            generators = np.column_stack([np.ones(6), -np.eye(6)[:, ~free]])
            lower = np.concatenate([[-np.inf], np.zeros(int(np.sum(~free)))])
            part = scipy.optimize.lsq_linear(generators, v, (lower, np.inf), method="bvls", tol=1e-15).x
            np.testing.assert_allclose(project(x / x.sum(), v), v - generators @ part, atol=1e-11)


def test_activity_is_decided_in_the_precision_of_the_point():
    """0.1 is rounded up in float32: a point on that bound would be inside of it if it were compared in float64."""
    box = sets.Box(0.1, 1.0)
    x = box.project(jnp.array([-1.0, 0.5, 2.0], jnp.float32))
    assert float(x[0]) > 0.1
    cone = box.tangent_cone(x)
    np.testing.assert_array_equal(cone.lower, [True, False, False])
    np.testing.assert_array_equal(cone.upper, [False, False, True])
    with jax.enable_x64(True):
        v = box.project_tangent(x, jnp.array([-1.0, -1.0, 1.0]))
        assert v.dtype == jnp.float64
        np.testing.assert_array_equal(v, [0, -1, 0])


@pytest.mark.parametrize("n", [2, 100, 200_000])
def test_projected_points_are_on_the_boundary_to_rounding(n):
    """What ROUNDINGS promises: projecting misses norms and inner products by less than half of what is allowed."""
    rng = np.random.default_rng(n)
    eps, project = float(np.finfo(np.float32).eps), jax.jit(lambda set_, x: set_.project(x))
    normal = rng.normal(size=n)
    normal /= np.linalg.norm(normal)
    ball, half = sets.Ball(1.3, center=0.7 * normal), sets.HalfSpace(normal, -0.4)
    for length in (2.0, 50.0, 1e4):
        x = (length * (normal + rng.normal(size=n) / n**0.5)).astype(np.float32)
        on_ball, on_half = (np.asarray(project(set_, x)) for set_ in (ball, half))
        miss = abs(np.linalg.norm(on_ball - 0.7 * normal) - 1.3) / (1.3 + np.linalg.norm(on_ball))
        assert miss <= ROUNDINGS / 2 * eps
        miss = abs(normal @ on_half + 0.4) / (np.abs(normal) @ np.abs(on_half) + 0.4)
        assert miss <= ROUNDINGS / 2 * eps
        for set_, point in ((ball, on_ball), (half, on_half)):
            outward = np.asarray(point - 0.7 * normal if set_ is ball else normal, np.float32)
            assert np.linalg.norm(set_.project_tangent(point, outward)) <= 1e-5
            if n <= 100:
                assert len(set_.tangent_cone(point).inequalities) == 1


def test_inside_is_inside():
    for set_ in (sets.Ball(1.0), sets.HalfSpace([0.0, 1.0], 1.0)):
        x = jnp.array([0.0, 0.999], jnp.float32)
        v = jnp.array([1.0, 2.0], jnp.float32)
        np.testing.assert_array_equal(set_.project_tangent(x, v), v)
        np.testing.assert_array_equal(set_.project_face(x, v), v)
        assert len(set_.tangent_cone(x).inequalities) == 0


@pytest.mark.parametrize("radius", [0.25, 3.0])
def test_curvature_of_the_ball(radius):
    """P(x + t d) = x + t d - t^2 |d|^2 / (2R) n + O(t^3) for d along the boundary: the curvature is what bends it."""
    with jax.enable_x64(True):
        ball = sets.Ball(radius, center=[1.0, -2.0, 0.5])
        project = jax.jit(lambda x: ball.project(x))
        x = np.asarray(project(np.array([3.0, 1.0, -1.0])))
        cone = ball.tangent_cone(x)
        (normal,) = cone.inequalities
        d = np.array([1.0, 0.3, -2.0])
        d -= (d @ normal) * normal
        t = 1e-4 * radius
        bent = -2 * normal @ np.asarray(project(x + t * d) - x) / (t * t * d @ d)
        np.testing.assert_allclose(cone.curvature, [1 / radius])
        np.testing.assert_allclose(bent, cone.curvature[0], rtol=1e-5)


def test_bending_is_the_second_derivative_along_the_boundary():
    """In a product only the block of the ball bends: d'D d is the second derivative of -multiplier n'P(x + t d)."""
    with jax.enable_x64(True):
        product = sets.Product(free=sets.Reals(), round=sets.Ball(0.5))
        project, face = (jax.jit(lambda *args, do=do: do(*args)) for do in (product.project, product.project_face))
        x = project({"free": np.array([3.0, 1.0]), "round": np.array([3.0, 0.0, 4.0])})
        cone = product.tangent_cone(x)
        assert cone is not None
        d = face(x, {"free": np.array([1.0, -2.0]), "round": np.array([1.0, 2.0, 0.5])})
        multiplier, t = np.array([1.7]), 1e-4
        flat = np.asarray(ravel_pytree(d)[0])

        def value(t):
            moved = project(jax.tree.map(lambda a, b: a + t * b, x, d))
            return float(-multiplier @ cone.inequalities @ np.asarray(ravel_pytree(moved)[0]))

        measured = (value(t) - 2 * value(0.0) + value(-t)) / t**2
        np.testing.assert_allclose(flat @ (cone.bending(multiplier) * flat), measured, rtol=1e-4)


def test_cones_project_by_their_description():
    whole = sets.TangentCone.whole(3)
    v = np.array([1.0, -2.0, 3.0])
    np.testing.assert_array_equal(whole.project(v), v)
    assert whole.contains(v) and whole.size == 3
    fixed = sets.Box([0.0, 0.0, 0.0], [0.0, 1.0, 5.0]).tangent_cone(np.array([0.0, 0.0, 5.0]))
    np.testing.assert_allclose(fixed.project(v), [0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(fixed.project(-v), [0, 2, -3])
    np.testing.assert_array_equal(fixed.project_lineality(v), [0, 0, 0])
    assert fixed.contains(np.array([0.0, 1.0, -1.0])) and not fixed.contains(np.array([1e-3, 1.0, -1.0]))
    joined = sets.TangentCone.join([whole, fixed, sets.Ball(1.0).tangent_cone(np.array([0.6, 0.8]))])
    assert joined.size == 8 and joined.inequalities.shape == (1, 8)
    np.testing.assert_array_equal(joined.support, [[False] * 6 + [True] * 2])
    np.testing.assert_allclose(joined.inequalities[0, 6:], [0.6, 0.8])
    assert sets.TangentCone.join([]).size == 0


def test_an_unknown_cone_makes_the_product_unknown():
    product = sets.Product(sets.Reals(), sets.Projected(lambda x: x))
    assert product.tangent_cone((np.zeros(2), np.zeros(1))) is None


def test_a_projection_alone_gives_the_tangent_cone():
    """The difference quotient of Projected against the formula, in both precisions and along 0."""
    exact = sets.Ball(3.0)
    guess = sets.Projected(exact.project)
    v = np.array([1.0, 1.0, -0.5])
    for wide, dtype, tolerance in ((False, np.float32, 5e-3), (True, np.float64, 1e-5)):
        with jax.enable_x64(wide):
            x = jax.jit(lambda x: exact.project(x))(np.array([4.0, -1.0, 2.0], dtype))
            both = jax.jit(lambda x, v: (guess.project_tangent(x, v), exact.project_tangent(x, v)))
            for along in (v, -v, 0 * v):
                np.testing.assert_allclose(*both(x, along.astype(dtype)), atol=tolerance)
            np.testing.assert_array_equal(guess.project_face(x, v.astype(dtype)), v)

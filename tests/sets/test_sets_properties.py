"""Projections on points that hypothesis chooses (ties, zeros, bounds): identities, and agreement with optax."""

import equinox as eqx
import hypothesis
import hypothesis.extra.numpy as hnp
import jax
import jax.numpy as jnp
import numpy as np
import optax.projections
import pytest
from hypothesis import strategies as st

from mescal import sets

N = 5
CENTER, NORMAL = np.array([0.3, -1.0, 2.0, 0.0, 0.1]), np.array([1.0, -2.0, 0.0, 0.5, 3.0])
SETS = {
    "Reals": sets.Reals(),
    "NonNegative": sets.NonNegative(),
    "Box": sets.Box([-1.0, -np.inf, 0.1, 2.0, -3.0], [1.0, 0.0, 0.1, np.inf, -0.1]),
    "Ball": sets.Ball(1.7, CENTER),
    "Simplex": sets.Simplex(2.5),
    "HalfSpace": sets.HalfSpace(NORMAL, -0.7),
    "Affine": sets.Affine(np.stack([NORMAL, CENTER]), [1.0, -1.0]),
}
OPTAX = {
    "NonNegative": optax.projections.projection_non_negative,
    "Box": lambda x: optax.projections.projection_box(
        x, np.array([-1.0, -np.inf, 0.1, 2.0, -3.0]), np.array([1.0, 0.0, 0.1, np.inf, -0.1])
    ),
    "Ball": lambda x: CENTER + optax.projections.projection_l2_ball(x - CENTER, 1.7),
    "Simplex": lambda x: optax.projections.projection_simplex(x, 2.5),
    "HalfSpace": lambda x: optax.projections.projection_halfspace(x, NORMAL, -0.7),
}
VECTORS = hnp.arrays(np.float32, N, elements=st.floats(-100, 100, width=32))
TOLERANCE = 64 * np.finfo(np.float32).eps * N**0.5
few = hypothesis.settings(deadline=None, max_examples=40, derandomize=True, database=None)


@eqx.filter_jit
def look(set_, x, y, v):
    p, q = set_.project(x), set_.project(y)
    t = set_.project_tangent(p, v)
    again = set_.project(p), set_.project_tangent(p, t), set_.project_tangent(p, 2 * v)
    return p, q, t, *again, set_.project_face(p, v), set_.contains(p)


@pytest.mark.parametrize("name", SETS)
def test_identities(name):
    @few
    @hypothesis.given(VECTORS, VECTORS, VECTORS)
    def run(x, y, v):
        results = (np.asarray(result, np.float64) for result in look(SETS[name], x, y, v))
        p, q, t, pp, tt, t2, f, inside = results
        x, y, v = (np.asarray(point, np.float64) for point in (x, y, v))
        norm = np.linalg.norm
        scale = 1 + norm(x) + norm(y) + norm(p) + norm(q)
        assert inside
        assert norm(pp - p) <= TOLERANCE * (1 + norm(p))
        assert norm(p - q) <= norm(x - y) + TOLERANCE * scale
        assert (x - p) @ (q - p) <= TOLERANCE * scale * (norm(x - p) + norm(q - p))
        n, error = v - t, TOLERANCE * (1 + norm(v))
        assert norm(tt - t) <= error
        assert norm(t2 - 2 * t) <= 2 * error
        assert abs(t @ n) <= error * (1 + norm(v))
        assert n @ (q - p) <= error * scale
        # The face is a part of the cone: what is normal to the cone has no share in it.
        assert abs(f @ n) <= error * (1 + norm(v))
        assert norm(f) <= norm(t) + error

    run()


@pytest.mark.parametrize("name", OPTAX)
def test_agreement_with_optax(name):
    ours, theirs = eqx.filter_jit(lambda set_, x: set_.project(x)), jax.jit(OPTAX[name])

    @few
    @hypothesis.given(VECTORS)
    def run(x):
        with jax.enable_x64(True):
            x = np.asarray(x, np.float64)
            error = 1e-13 * (1 + float(np.linalg.norm(x)))
            np.testing.assert_allclose(ours(SETS[name], x), theirs(x), rtol=0, atol=error)

    run()


@few
@hypothesis.given(VECTORS)
def test_projecting_twice_changes_no_bit(x):
    """What keeps a point on the face that it was projected to: zeros stay zeros, boundaries stay active."""
    p = look_twice(x)
    for name, (once, twice) in p.items():
        np.testing.assert_array_equal(once, twice, err_msg=name)


@jax.jit
def look_twice(x):
    curved = {name: SETS[name] for name in ("NonNegative", "Box", "Ball", "Simplex", "HalfSpace")}
    return {name: (set_.project(x), set_.project(set_.project(x))) for name, set_ in curved.items()}


class Layer(eqx.Module):
    weight: jax.Array
    bias: jax.Array
    activation: None


def test_points_without_arrays_in_places_keep_their_structure():
    """An equinox module whose static leaves are None is a point like any other."""
    layer = Layer(jnp.array([[0.5, -0.3]]), jnp.array(0.2), None)
    size = sum(leaf.size for leaf in jax.tree.leaves(layer))
    for set_ in (
        sets.Box(-0.1, jax.tree.map(lambda leaf: np.full(leaf.shape, 0.1), layer)),
        sets.Ball(0.1, center=layer),
        sets.Simplex(),
        sets.HalfSpace(layer, -1.0),
        sets.Affine(np.ones((1, size)), 1.0),
        sets.Product((sets.Ball(0.1), {"head": sets.NonNegative(), "none": sets.Reals()})),
    ):
        x = (layer, {"head": layer, "none": None}) if isinstance(set_, sets.Product) else layer
        if not isinstance(set_, sets.Product):
            set_.check(x)
        p, t, inside = eqx.filter_jit(look_at_structure)(set_, x)
        assert jax.tree.structure(p) == jax.tree.structure(t) == jax.tree.structure(x)
        assert inside
        cone = set_.tangent_cone(p)
        assert cone is not None and cone.size == sum(leaf.size for leaf in jax.tree.leaves(x))


def look_at_structure(set_, x):
    p = set_.project(x)
    return p, set_.project_tangent(p, x), set_.contains(p)


def test_contains_is_not_fooled():
    box = sets.Box(-1.0, 1.0)
    x = jnp.zeros(3)
    assert box.contains(x) and box.contains(x + 1 + 1e-7)
    assert not box.contains(x + 1.001)
    assert box.contains(x + 1.001, tolerance=0.01)
    for wrong in (np.nan, np.inf, 1e30):
        assert not box.contains(x + wrong)


def test_huge_points_do_not_overflow():
    x = np.array([3e30, -4e30], np.float32)
    project = eqx.filter_jit(lambda set_, x: set_.project(x))
    np.testing.assert_allclose(project(sets.Ball(2.0), x), [1.2, -1.6], rtol=1e-6)
    np.testing.assert_allclose(project(sets.Ball(2e-30), np.array([3, -4], np.float32)), [1.2e-30, -1.6e-30], rtol=1e-6)
    np.testing.assert_allclose(project(sets.Simplex(), x), [1.0, 0.0])


def test_rounding_does_not_lift_zeros_of_the_simplex():
    """Where one coordinate falls below zero by rounding, the shift t is rounding too: zeros must stay on their face."""
    x = np.array([0.4, 0.35, 0.25, 0.0, -1e-9], np.float32)
    for change in (-6e-8, 0.0, 6e-8):
        moved = x + np.array([change, 0, 0, 0, 0], np.float32)
        assert np.array_equal(np.asarray(sets.Simplex().project(moved))[3:], np.zeros(2, np.float32)), change

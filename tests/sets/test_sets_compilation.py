"""Sets as arguments of compiled functions: other numbers do not recompile, and float64 stays float64."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mescal import sets

PAIRS = {
    "Box": (sets.Box(-1.0, 1.0), sets.Box(0, np.inf)),
    "Box of arrays": (sets.Box([0.0, 1, 2], 5.0), sets.Box(np.zeros(3, np.float32), np.float32(2))),
    "Ball": (sets.Ball(1.0), sets.Ball(2, center=3.0)),
    "Simplex": (sets.Simplex(), sets.Simplex(0.5)),
    "HalfSpace": (sets.HalfSpace([1.0, 2.0, 3.0], 1.0), sets.HalfSpace(jnp.ones(3), 0)),
    "Affine": (sets.Affine([[1.0, 2.0, 3.0]], 1.0), sets.Affine(jnp.ones((1, 3)), [0])),
    "Product": (sets.Product(sets.Ball(1.0)), sets.Product(sets.Ball(7))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_other_numbers_do_not_recompile(name):
    traces = []

    @eqx.filter_jit
    def step(set_, x):
        traces.append(name)
        x = set_.project(x)
        return set_.project_tangent(x, x)

    for set_ in PAIRS[name]:
        x = jnp.ones(3)
        step(set_, (x,) if name == "Product" else x)
    assert len(traces) == 1


EXACT = {
    "Box": (sets.Box(0.1, 0.1), 0.1 * np.ones(3)),
    "Box of arrays": (sets.Box([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3])),
    "Ball": (sets.Ball(1e-30, center=np.array([0.1, 0.2, 0.3])), np.array([0.1, 0.2, 0.3])),
    "Affine": (sets.Affine(np.eye(3), [0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3])),
    "Simplex": (sets.Simplex(0.3), 0.1 * np.ones(3)),
    "HalfSpace": (sets.HalfSpace([1.0, 1.0, 1.0], -0.3), -0.1 * np.ones(3)),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("as_argument", [False, True])
def test_numbers_keep_their_precision_after_float32(name, as_argument):
    """A float32 program that is still alive must not leave its constants to the float64 one."""
    set_, expected = EXACT[name]
    alive = []
    for wide, dtype in ((False, np.float32), (True, np.float64)):
        with jax.enable_x64(wide):
            x = jnp.ones(3, dtype) if name == "Simplex" or name == "HalfSpace" else jnp.zeros(3, dtype)
            step = (
                eqx.filter_jit(lambda set_, x: set_.project(x))
                if as_argument
                else jax.jit(lambda _, x: set_.project(x))
            )
            alive.append(step)
            p = step(set_ if as_argument else None, x)
            assert p.dtype == dtype
            np.testing.assert_allclose(p, expected, rtol=8 * float(np.finfo(dtype).eps))


def test_a_batch_of_sets():
    radii = eqx.tree_at(lambda ball: ball.radius, sets.Ball(1.0), jnp.array([1.0, 2.0, 3.0]))
    x = jnp.array([6.0, 8.0])
    in_axes = eqx.tree_at(lambda ball: (ball.radius, ball.center), sets.Ball(1.0), (0, None))
    many = jax.jit(jax.vmap(lambda ball: ball.project(x), in_axes=(in_axes,)))(radii)
    np.testing.assert_allclose(many, [[0.6, 0.8], [1.2, 1.6], [1.8, 2.4]], rtol=1e-6)

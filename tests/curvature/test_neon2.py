"""Neon2: lengths of differences between rounding and the change of the Hessian, and answers where both matter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.curvature import Neon2
from mescal.curvature.neon2 import probe

BEND, SIZE = 3.0, 4


def cubic(x, a):
    """L'' = diag(a + 3 x_i): its Lipschitz constant is 3."""
    return jnp.sum(a * x**2) / 2 + BEND * jnp.sum(x**3) / 6


@pytest.fixture(scope="module")
def oracles(make_lagrangian):
    rows = np.random.default_rng(0).normal(size=(500, SIZE))
    rows -= rows.mean(0)
    problem = mescal.Problem(E(cubic, over=rows))

    def make(dtype):
        return make_lagrangian(problem, np.zeros(SIZE), np.zeros(0), 1.0, micro=64, dtype=dtype)

    return make


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probes(oracles, key, dtype):
    """|D^3 f[u, u]| lies between 3/sqrt(d) and 3 for unit u: times 1.5, the estimate is between 2.2 and 4.5.

    The rounding of a gradient at |x| = 20: eps (|g_theta| + L_g |x|), within a factor of 30 either way.
    """
    with jax.enable_x64(dtype == np.float64):
        z = jnp.asarray([-10.0, 10.0, 10.0, -10.0], dtype)
        bend, rounding, work = jax.jit(lambda o, k: probe(o, z, jnp.linalg.norm(z), k, jnp.int32(64)))(
            oracles(dtype), key
        )
        assert 2.2 < float(bend) < 4.6
        size = np.finfo(dtype).eps * (BEND / 2 * 200 + 30 * 20)
        assert size / 30 < float(rounding) < 30 * size
        assert work.tally().gradients == 5 * 3 * 64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_from_the_origin(oracles, key, dtype):
    """x_i = -0.1 in one coordinate and 10 in the others: H = diag(-0.3, 30, 30, 30), t = 0.2.

    In float32 the rounding of a gradient is above what a difference of 1e-4 r = 1e-4 t/(10 L_H) is meant to show.
    """
    with jax.enable_x64(dtype == np.float64):
        run = jax.jit(Neon2().__call__)
        for lowest, negative in ((-0.1, True), (0.1, False)):
            z = jnp.asarray([10.0, lowest, 10.0, 10.0], dtype)
            found, _ = run(oracles(dtype), z, jnp.asarray(0.2, dtype), key, jnp.int32(500))
            assert bool(found.negative) == negative
            if negative:
                assert abs(float(found.direction[1])) > 0.99
                assert float(found.curvature) == pytest.approx(-0.3, rel=0.1)
        assert run._cache_size() == 1

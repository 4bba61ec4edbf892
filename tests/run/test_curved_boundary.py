"""A domain with a curved boundary: curvature that is negative on its tangent space, and not along the boundary."""

import jax.numpy as jnp
import numpy as np

import mescal
from mescal import E

DATA = np.array([-0.5, 0.5], np.float32)


def test_a_concave_function_on_a_ball_is_certified_soon():
    """min -x_1^2 - 2 x_2^2 + noise on |x| <= 1: at (0, +-1) the tangent curvature is -2, that of the boundary adds 4."""
    problem = mescal.Problem(
        E(lambda x, a: -(x[0] ** 2) - 2 * x[1] ** 2 + 0.01 * a * jnp.sum(x), over=DATA), {}, mescal.sets.Ball(1.0)
    )
    result = mescal.minimize(problem, np.array([0.1, 0.1], np.float32), tol=0.01, cone="critical")
    assert result.converged and result.outer_iterations <= 8
    np.testing.assert_allclose(np.abs(result.x), [0.0, 1.0], atol=0.01)
    again = mescal.certify(problem, result.x, tol=0.01, cone="critical", seed=5)
    assert again.passes(0.01) and again.curvature.value > 1.5

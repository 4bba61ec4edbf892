"""The dual update: bounded for any noise, plain without a bound, idle where the constraint is zero."""

import numpy as np

from mescal.run.dual import dual_step, summable_bound
from mescal.theory import dual_bound_total


def test_bounded_for_any_noise():
    rng = np.random.default_rng(0)
    multipliers, total = np.zeros(3), 0.0
    for k in range(500):
        noise = rng.standard_cauchy(3) * 10.0 ** rng.integers(-3, 6)
        bound = summable_bound(k, 2.0)
        multipliers, total = dual_step(multipliers, noise, 1.1**k, bound), total + bound
        assert np.linalg.norm(multipliers) <= total * (1 + 1e-12)
    assert total < dual_bound_total(2.0)


def test_without_a_bound_it_is_the_plain_update():
    multipliers, c = np.array([1.0, -2.0]), np.array([0.3, 0.4])
    np.testing.assert_allclose(dual_step(multipliers, c, 5.0, np.inf), multipliers + 5 * c)
    assert dual_step(multipliers, np.zeros(2), 5.0, np.inf) is multipliers

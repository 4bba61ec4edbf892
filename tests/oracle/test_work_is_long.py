"""Counters hold ten thousand million samples and more: they never wrap, however long a run is."""

import jax
import jax.numpy as jnp
import numpy as np

from mescal.oracle import Work

SOAK = 10**10


def test_a_soak_of_ten_thousand_million_samples():
    """Fast-forwarded: 10^10 samples in 4,096 additions inside of a compiled loop, counted exactly."""
    rows, gradients = 2_441_406, 2_441_407  # neither divides 2^32
    once = Work.of(gradient_samples=gradients, hvp_samples=rows, constraint_gradients=3 * rows)

    @jax.jit
    def soak(once):
        return jax.lax.fori_loop(0, 4096, lambda _, total: total + once, Work.zero())

    counts = soak(once).tally().counts
    assert counts["gradient_samples"] == 4096 * gradients > SOAK - 4096 * 8
    assert counts["hvp_samples"] == 4096 * rows and counts["constraint_gradients"] == 3 * 4096 * rows > 2**34


def test_counters_carry_at_the_edge():
    edge = Work(jnp.full(8, 2**32 - 1, jnp.uint32), jnp.zeros(8, jnp.uint32))
    assert (edge + Work.of(value_samples=1)).tally().counts["value_samples"] == 2**32
    assert (edge + edge).tally().counts["hvp_samples"] == 2 * (2**32 - 1)
    for count in (0, 1, 2, 3, 7, 1000, 4097):
        assert edge.times(count).tally().counts["hvp_samples"] == count * (2**32 - 1)


def test_tallies_have_no_limit():
    tally = Work.of(gradient_samples=np.uint32(2**32 - 1)).tally()
    total = tally
    for _ in range(40):
        total = total + total
    assert total.counts["gradient_samples"] == 2**40 * (2**32 - 1)

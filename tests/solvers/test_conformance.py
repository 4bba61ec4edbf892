"""Every practical solver of the folder keeps what `testing.check_solver` tries, without implicit promotion of types."""

import jax
import pytest

from mescal import solvers, testing

PRACTICAL = tuple(name for name in solvers.names() if solvers.get(name).mode == "practical")


@pytest.fixture(autouse=True)
def strict_promotion():
    """Numbers of two types meet nowhere by themselves, as under JAX_NUMPY_DTYPE_PROMOTION=strict."""
    with jax.numpy_dtype_promotion("strict"):
        yield


@pytest.mark.parametrize("check", testing.SOLVER_CHECKS)
@pytest.mark.parametrize("name", PRACTICAL)
def test_what_every_solver_promises(name, check):
    testing.SOLVER_CHECKS[check](solvers.get(name), 0)

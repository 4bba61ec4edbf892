"""Every practical solver of the folder keeps what `testing.check_solver` tries."""

import pytest

from mescal import solvers, testing

PRACTICAL = tuple(name for name in solvers.names() if solvers.get(name).mode == "practical")


@pytest.mark.parametrize("check", testing.SOLVER_CHECKS)
@pytest.mark.parametrize("name", PRACTICAL)
def test_what_every_solver_promises(name, check):
    testing.SOLVER_CHECKS[check](solvers.get(name), 0)

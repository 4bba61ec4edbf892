"""States of practical solvers on the host: a checkpoint stores their leaves, so these never change shape or type."""

import jax
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.run import mescal as method

PRACTICAL = tuple(name for name in mescal.solvers.names() if mescal.solvers.get(name).mode == "practical")


def leaves(state) -> list[tuple[str, str, str, tuple[int, ...]]]:
    found = jax.tree_util.tree_leaves_with_path(state)
    return [(jax.tree_util.keystr(path), str(leaf.dtype), type(leaf).__name__, leaf.shape) for path, leaf in found]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("solver", PRACTICAL)
def test_leaves_of_a_state_are_the_same_after_every_step(monkeypatch, solver, outputs, dtype):
    """Through steps, escapes and inner solves; with the Jacobian of the constraint, and without where that saves a pass."""
    seen = []
    begin, advance = method.begin, method.advance

    def watched_begin(*arguments):
        seen.append(leaves(begun := begin(*arguments)))
        return begun

    def watched_advance(solver, sub, state, plan, goal, chunk, *over):
        seen.append(leaves(after := advance(solver, sub, state, plan, goal, 1)))
        return after

    monkeypatch.setattr(method, "begin", watched_begin)
    monkeypatch.setattr(method, "advance", watched_advance)
    rows = np.linspace(-1, 1, 12, dtype=dtype).reshape(4, 3)
    problem = mescal.Problem(
        E(lambda x, a: (x[0] ** 4 - x[0] ** 2 + x[1] ** 2 + x[2] ** 2) / 2 + a @ x / 9, over=rows),
        {"c": E(lambda x, a: (x - a)[:outputs], over=rows) <= 0.5},
    )
    result = mescal.minimize(problem, np.zeros(3, dtype), solver=solver, tol=0.01, max_outer=3)
    assert (len(result.history) == 3 or result.converged) and len(seen) >= 3
    for now in seen[1:]:
        assert now == seen[0]


def test_resets_that_never_descend_leave_numbers_of_the_solvers_type(monkeypatch):
    """A smoothness that is doubled for ever would leave float32, where a step by its inverse has long changed nothing."""
    from mescal.solvers import epoch

    take = epoch.take_reset
    told = []

    def worse(*given):
        reset, noise, work = take(*given)
        told.append(reset)
        return reset._replace(value=float(len(told))), noise, work

    monkeypatch.setattr(epoch, "take_reset", worse)
    monkeypatch.setattr(epoch, "FAILURES", 10**6)
    rows = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    problem = mescal.Problem(E(lambda x, a: x @ x + a @ x, over=rows))
    result = mescal.minimize(problem, np.ones(3, np.float32), solver="spider", tol=0.01, max_outer=1)
    assert len(told) > 100 and result.history[-1].inner != "verified" and np.isfinite(result.x).all()

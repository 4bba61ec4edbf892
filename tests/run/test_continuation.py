"""Continuations and interruptions lose nothing: `x0` beside `start`, Ctrl-C inside of an inner solve, refused certificates."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, Measured, Status, Tolerance
from mescal.run import judging, mescal as method
from mescal.run.scaling import Scales
from mescal.solvers import Spider

DATA = np.linspace(-1, 1, 50, dtype=np.float32)


@pytest.fixture(scope="module")
def problem() -> mescal.Problem:
    """A quartic without constraints: one inner solve is the whole run."""
    return mescal.Problem(E(lambda x, a: jnp.sum(x**4) / 4 + a * x[0], over=DATA))


def test_x0_beside_start_is_where_the_run_starts(problem):
    first = mescal.minimize(problem, np.full(2, 0.5, np.float32), tol=0.01, solver="spider")
    x0 = np.full(2, 3.0, np.float32)
    moved = mescal.minimize(
        problem, x0, start=first, tol=1e-6, max_outer=1, outer=mescal.Outer(max_inner=1), solver="spider"
    )
    fresh = mescal.minimize(problem, x0, tol=1e-6, max_outer=1, outer=mescal.Outer(max_inner=1), solver="spider")
    assert moved.history[0].value_start == fresh.history[0].value_start == pytest.approx(2 * 81 / 4, rel=1e-5)


def test_ctrl_c_inside_an_inner_solve_keeps_what_it_did(problem, monkeypatch):
    advance, calls = method.advance, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return advance(*args)

    monkeypatch.setattr(Spider, "chunk", 1)
    monkeypatch.setattr(method, "advance", interrupted)
    x0 = np.full(2, 3.0, np.float32)
    result = mescal.minimize(problem, x0, tol=1e-7, solver="spider")
    assert result.status is Status.INTERRUPTED and len(calls) == 4
    assert result.objective < 0.5 * 2 * 81 / 4 and np.linalg.norm(result.x) < np.linalg.norm(x0)
    assert len(result.history) == 1 and result.history[0].inner == "stopped" and result.history[0].inner_steps > 0


def test_ctrl_c_before_anything_was_done_returns_the_start(problem, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(method, "advance", interrupted)
    result = mescal.minimize(problem, np.full(2, 3.0, np.float32), tol=1e-7, solver="spider")
    assert result.status is Status.INTERRUPTED and len(result.history) == 0
    np.testing.assert_array_equal(result.x, np.full(2, 3.0, np.float32))


@dataclass(frozen=True)
class Standing:
    work: int = 0
    tighter: float = 1.0
    curvature_factor: int = 1
    scales: Scales = field(default_factory=lambda: Scales.plain(0))


@pytest.mark.parametrize(("relative", "tightens"), [(None, False), (0.01, True), (1.0, False)])
def test_a_refusal_for_flatness_alone_asks_for_more(relative, tightens):
    """stationarity 0.005 <= 0.01, but times |x| = 100 it is 0.5."""
    good, flat = (Measured(upper, 0.0, upper, "by hand") for upper in (0.005, 0.5))
    measured = dict.fromkeys(("stationarity", "feasibility", "violation", "complementarity", "curvature"), good)
    at = mescal.certify(mescal.Problem(mescal.E(lambda x: x @ x)), np.zeros(1))
    certificate = replace(at, **measured, relative_stationarity=flat, work=0)
    settings = SimpleNamespace(tol=Tolerance(0.01, 0.01, relative=relative))
    state: Any = Standing()
    after = judging.refused(SimpleNamespace(settings=settings), state, certificate)  # pyright: ignore[reportArgumentType]
    assert (after.tighter < 1) == tightens and after.curvature_factor == 1

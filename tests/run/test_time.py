"""`max_seconds` bounds a run, its last certificate included; a signal ends the judge as it ends the solver."""

import os
import signal
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E
from mescal.run import judging

SIZE, ROWS = 5000, 300


@pytest.fixture(scope="module")
def large():
    """5,000 parameters, negative curvature of all sizes, and bounds of which fifty are active: slow to solve and to judge."""
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(ROWS, SIZE)) / np.sqrt(SIZE)).astype(np.float32), rng.normal(size=ROWS).astype(np.float32)

    def f(x, r):
        return 10 * r[1] * (r[0] @ x) ** 2 + 2.5 * jnp.mean(jnp.cos(x * jnp.arange(1, SIZE + 1) / SIZE))

    x = np.where(np.arange(SIZE) < 50, 0, 1e-3).astype(np.float32)
    constraint = {"c": E(lambda x, r: r[0] @ x, over=rows) == 0.0}
    return mescal.Problem(E(f, over=rows), constraint, mescal.sets.Box(0.0, 1.0)), x


@pytest.mark.parametrize(
    ("solver", "seconds"),
    # `auto` is certified after two seconds
    [("spider", 1.0), *(pytest.param(*case, marks=pytest.mark.slow) for case in (("spider", 5.0), ("auto", 0.5)))],
)
def test_a_limit_bounds_the_whole_run(large, solver, seconds):
    """At most twice the limit, compiling apart: a tenth for the judge, one chunk, and a look come after it."""
    problem, x = large
    began = time.perf_counter()
    result = mescal.minimize(problem, x, solver=solver, tol=1e-6, max_seconds=seconds)
    taken = time.perf_counter() - began
    assert result.status is mescal.Status.TIME_LIMIT and not result.converged
    assert taken - result.seconds.compile < 2 * seconds, (taken, result.seconds)
    assert result.missing and all(text in str(result) for text in result.missing)
    assert result.certificate.curvature.lower <= result.certificate.curvature.value


def test_a_judge_is_interrupted(large, monkeypatch):
    """Ctrl-C while the judge is at work: it comes to an end with what it has, and so does the run."""
    problem, x = large
    asked = []

    def interrupted(*arguments, **named):
        if not asked:
            os.kill(os.getpid(), signal.SIGINT)
        asked.append(named["max_seconds"])
        return mescal.certify(*arguments, **named)

    monkeypatch.setattr(judging, "certify", interrupted)
    monkeypatch.setattr(judging, "AT_MOST", 0.05)
    began = time.perf_counter()
    result = mescal.minimize(problem, x, solver="spider", tol=10.0, outer=mescal.Outer(watchdog=None))
    assert not asked[0].is_timed and time.perf_counter() - began < 30
    time.sleep(max(0.0, asked[0].least - time.perf_counter()))  # a judge may be done within its least time
    assert asked[0].over
    assert result.status in (mescal.Status.INTERRUPTED, mescal.Status.CERTIFIED)
    assert result.converged == result.certificate.passes(10.0)


def test_a_run_whose_point_is_proven_in_time_converges_all_the_same():
    """The limit is over when the judge is asked, and its least time is enough."""
    rows = np.linspace(-1, 1, 64)
    problem = mescal.Problem(E(lambda x, a: jnp.sum((x - a) ** 2) + jax.nn.softplus(x[0]), over=rows))
    solved = mescal.minimize(problem, np.zeros(2), tol=1e-4)
    late = mescal.minimize(problem, solved.x, tol=1e-4, max_seconds=1e-9)
    assert not late.converged and late.status is mescal.Status.TIME_LIMIT and late.missing
    assert any("time was up" in sentence for sentence in late.certificate.warnings)
    assert mescal.minimize(problem, solved.x, tol=1e-4, max_seconds=30).converged

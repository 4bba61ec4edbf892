"""Algorithm 1 draws the samples of its dual update afresh: on streams multipliers never move by what a stop test passed on."""

import numpy as np
import pytest

import mescal
from mescal.run import mescal as outer
from mescal.testing import exercises

LEAST = 1024  # thetas of a dual update, at least


@pytest.fixture
def moved(monkeypatch):
    """What multipliers were moved by."""
    seen, original = [], outer.dual_step

    def dual_step(multipliers, constraint, penalty, bound):
        seen.append(np.array(constraint))
        return original(multipliers, constraint, penalty, bound)

    monkeypatch.setattr(outer, "dual_step", dual_step)
    return seen


def run(at: exercises.Exercise, tol: float) -> mescal.Result:
    return mescal.minimize(at.problem, at.x0, solver="spider", tol=tol, max_outer=3, outer=mescal.Outer(scale=False))


def test_fresh_samples_on_a_stream(moved):
    """Not the constraint that the row shows, which the stop test saw, but another mean of as many samples or more.

    Both err by s/sqrt(n), n >= 1024 and s the deviation of b'x: six standard deviations of their difference are passed in 1
    of 10^8 runs. Where the constraint holds with room, both are zero.
    """
    at = exercises.nearest(streamed=True)
    rows = run(at, 0.01).history
    assert len(moved) >= 2
    deviation = max(float(np.std(exercises.B @ point)) for point in (at.solution, exercises.A.mean(axis=0)))
    differences = [abs(float(np.linalg.norm(c)) - row.feasibility) for row, c in zip(rows, moved, strict=False)]
    assert max(differences) > 0 and max(differences) <= 6 * deviation * np.sqrt(2 / LEAST)


def test_all_rows_of_a_population(moved):
    rows = run(exercises.nearest(), 1e-4).history
    assert len(moved) >= 2
    for row, constraint in zip(rows, moved, strict=False):
        assert float(np.linalg.norm(constraint)) == pytest.approx(row.feasibility, rel=1e-5)

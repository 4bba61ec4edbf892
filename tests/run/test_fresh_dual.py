"""Algorithm 1 draws the samples of its dual update afresh: on streams multipliers never move by what a stop test passed on."""

import numpy as np
import pytest

import mescal
from mescal.run import mescal as outer

NOISE = 0.05  # of the constraint


@pytest.fixture
def moved(monkeypatch):
    """What multipliers were moved by."""
    seen, original = [], outer.dual_step

    def dual_step(multipliers, constraint, penalty, bound):
        seen.append(np.array(constraint))
        return original(multipliers, constraint, penalty, bound)

    monkeypatch.setattr(outer, "dual_step", dual_step)
    return seen


def run(known, problem, **changes):
    return mescal.minimize(
        problem, known.start, solver="spider", tol=0.01, max_outer=3, outer=mescal.Outer(scale=False), **changes
    )


def test_fresh_samples_on_a_stream(known, moved):
    """Not the constraint that the row shows, which the stop test saw, but another mean of as many samples or more.

    Both err by 0.05/sqrt(n), n >= 1024: six standard deviations of their difference are passed in 1 of 10^8 runs.
    """
    result = run(known, known.stream)
    rows = [row for row in result.history if row.outer >= 0][: len(moved)]
    assert len(rows) >= 2
    for row, constraint in zip(rows, moved, strict=True):
        difference = abs(float(np.linalg.norm(constraint)) - row.feasibility)
        assert 0 < difference <= 6 * NOISE * np.sqrt(2 / 1024)


def test_all_rows_of_a_population(known, moved):
    result = run(known, known.problem)
    for row, constraint in zip(result.history, moved, strict=False):
        assert float(np.linalg.norm(constraint)) == pytest.approx(row.feasibility, rel=1e-6)

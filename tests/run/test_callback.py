"""The callback sees every row of the history, the last one too, and the point beside it where it asks for that."""

import numpy as np
import pytest

import mescal
from mescal import E, Status

X0 = {"a": np.array([1.0, -2.0], np.float32)}


def problem():
    return mescal.Problem(E(lambda x: ((x["a"] - 3.0) ** 2).sum()), {"cap": E(lambda x: x["a"].sum()) <= 1.0})


@pytest.mark.parametrize("record", [None, "exact"])
@pytest.mark.parametrize("solver", ["newton-cg", "spider"])
def test_every_row_is_seen_with_its_point(solver, record):
    seen = []
    result = mescal.minimize(
        problem(), X0, solver=solver, record=record, tol=1e-4, callback=lambda row, x: seen.append((row, x))
    )
    assert result.converged and [row for row, _ in seen] == list(result.history)
    assert seen[0][0].outer == (0 if record is None else -1)
    np.testing.assert_array_equal(seen[-1][1]["a"], result.x["a"])
    if record is not None:
        np.testing.assert_array_equal(seen[0][1]["a"], X0["a"])


def test_rows_alone_where_one_argument_is_needed():
    seen, kept = [], []
    mescal.minimize(problem(), X0, tol=1e-3, callback=seen.append)
    mescal.minimize(problem(), X0, tol=1e-3, callback=lambda row, kept=kept: kept.append(row))
    assert len(seen) == len(kept) > 0 and all(hasattr(row, "outer") for row in (*seen, *kept))


def test_the_start_may_be_called_off():
    result = mescal.minimize(problem(), X0, tol=1e-4, record="exact", callback=lambda row: True)
    assert result.status is Status.STOPPED and [row.outer for row in result.history] == [-1]


def test_a_certificate_is_worth_more_than_a_stop():
    last = mescal.minimize(problem(), X0, tol=1e-4)
    stop = mescal.minimize(problem(), X0, tol=1e-4, callback=lambda row: row.outer + 1 == last.outer_iterations)
    assert last.status is stop.status is Status.CERTIFIED

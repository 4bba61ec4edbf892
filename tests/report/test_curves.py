"""Steps over seeds: against a plain loop, before the first row, after the last, and thinned."""

import numpy as np
import pytest

from mescal.report.run_view import LARGEST, Curve, band, columns


def curve(work, values):
    return Curve(np.asarray(work, float), np.asarray(values, float))


def test_a_value_holds_until_the_next():
    steps = curve([10, 20, 40], [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(steps.at(np.array([5, 10, 19, 20, 39, 40, 1e9])), [np.nan, 3, 3, 2, 2, 1, 1])


def test_band_is_median_and_range_of_steps():
    rng = np.random.default_rng(0)
    curves = [curve(np.cumsum(rng.uniform(1, 9, n)), rng.normal(size=n)) for n in (5, 9, 7)]
    found = band(curves)

    def value(one, work):
        past = [v for w, v in zip(one.work, one.values, strict=True) if w <= work]
        return past[-1] if past else None

    every = sorted(w for one in curves for w in one.work)
    rows = [(w, [v for v in (value(one, w) for one in curves) if v is not None]) for w in every]
    rows = [(w, values) for w, values in rows if 2 * len(values) >= 3]
    np.testing.assert_array_equal(found.work, [w for w, _ in rows])
    np.testing.assert_array_equal(found.median, [np.median(values) for _, values in rows])
    np.testing.assert_array_equal(found.low, [min(values) for _, values in rows])
    np.testing.assert_array_equal(found.high, [max(values) for _, values in rows])
    assert found.seeds == 3


def test_band_waits_for_half_of_the_seeds():
    found = band([curve([1, 10], [5, 4]), curve([2], [6]), curve([3], [7])])
    np.testing.assert_array_equal(found.work, [2, 3, 10])
    np.testing.assert_array_equal(found.median, [5.5, 6, 6])


def test_what_was_not_measured_is_left_out():
    found = band([curve([0, 1, 2], [9.0, np.nan, 4.0])])
    np.testing.assert_array_equal(found.work, [2])
    assert band([curve([1], [np.nan])]).work.size == 0
    assert band([]).work.size == 0


def test_long_curves_are_thinned_and_keep_their_end():
    rng = np.random.default_rng(1)
    work = np.cumsum(rng.uniform(1, 2, 5000))
    kept = columns(work)
    assert len(kept) <= LARGEST and kept[-1] == 4999
    gaps = np.diff(np.log(work[kept]))
    assert gaps[-100:].max() <= 2.01 * np.log(work[-1] / work[0]) / (LARGEST - 1)
    np.testing.assert_array_equal(columns(work[:10]), np.arange(10))


@pytest.mark.parametrize("rows", [1, 2])
def test_short_histories(rows):
    found = band([curve(range(1, rows + 1), range(rows))])
    assert found.work.size == rows

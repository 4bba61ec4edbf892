"""Axes: positions that keep the order, inverses, ticks that are inside and neither too few nor too many."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mescal.report.numbers import tick_labels
from mescal.report.scales import MOST_TICKS, linear_scale, log_scale, signed_scale

SIZES = st.floats(1e-9, 1e9)


@given(st.lists(SIZES, min_size=1, max_size=20))
def test_log_axis_holds_its_values(values):
    scale = log_scale(values)
    position = scale.position(sorted(values))
    assert (np.diff(position) >= 0).all() and (position > 0).all() and (position < 1).all()
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= MOST_TICKS + 3
    assert all(scale.low <= tick <= scale.high * (1 + 1e-9) for tick in ticks)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(1e-6, 1.0))
def test_signed_axis_holds_its_values_and_the_limit_of_either_sign(values, limit):
    scale = signed_scale(values, limit, limit / 100)
    everything = sorted([*values, -limit, 0.0, limit])
    position = scale.position(everything)
    assert (np.diff(position) >= 0).all() and (position > 0).all() and (position < 1).all()
    ticks = scale.ticks()
    assert 0.0 in ticks and len(ticks) <= MOST_TICKS + 3
    assert all(scale.low <= tick <= scale.high for tick in ticks)
    assert any(np.isclose(tick, -limit) for tick in ticks)
    for value in everything:
        assert scale.inverse(float(scale.forward(value))) == pytest.approx(value, rel=1e-9, abs=1e-18)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_linear_axis_holds_its_values(values):
    scale = linear_scale(values)
    position = scale.position(values)
    assert (position > 0).all() and (position < 1).all()


def test_what_is_below_a_log_axis_is_drawn_at_its_end():
    scale = log_scale([1e-12, 0.0, 1.0], [0.01], floor=1e-6)
    assert 1e-7 < scale.low < 1e-6
    np.testing.assert_array_equal(scale.position([0.0, -1.0, 1e-12]), 0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1e-4, 1.0, [1e-4, 1e-3, 1e-2, 1e-1, 1.0]),
        (12e3, 150e3, [20e3, 50e3, 100e3]),
        (7e3, 12e3, [7e3, 8e3, 9e3, 10e3, 11e3, 12e3]),
    ],
)
def test_ticks_of_wide_and_narrow_log_axes(low, high, expected):
    np.testing.assert_allclose(log_scale([low, high]).ticks(), expected)


@given(st.floats(-1e6, 1e6), st.floats(0, 1))
def test_labels_of_an_axis_differ_and_stay_short(value, spread):
    """Values that agree in many digits too: the axis is never so short that four digits cannot tell its ticks apart."""
    values = tick_labels(linear_scale([value, value * (1 + spread)]).ticks(5))
    assert len(set(values)) == len(values)
    plain = [label for label in values if "10" not in label]
    assert all(sum(map(str.isdigit, label.lstrip("−0."))) <= 4 for label in plain)


def test_objectives_that_agree_are_level():
    scale = linear_scale([-0.25, -0.2499999, -0.2499995])
    assert np.ptp(scale.position([-0.25, -0.2499995])) < 0.01
    assert tick_labels(scale.ticks(5)) == ["−0.2505", "−0.25", "−0.2495"]

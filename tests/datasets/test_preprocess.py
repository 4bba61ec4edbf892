"""Preprocessing against small computations by hand and against scikit-learn."""

from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import OneHotEncoder, StandardScaler, normalize

from mescal.datasets.preprocess import (
    BLOCK,
    design,
    fill_missing,
    levels,
    numbers,
    one_hot,
    quantile_bins,
    read_columns,
    signs,
    standardise,
    unit_rows,
)


def test_standardise_uses_the_deviation_of_the_population():
    assert standardise(np.array([[1.0], [3.0], [5.0]])).ravel() == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])


def test_a_constant_column_becomes_zero():
    # The mean of 0.1, three times, is not 0.1 in floating point.
    assert (standardise(np.full((3, 1), 0.1)) == 0).all()


def test_standardise_and_unit_rows_agree_with_scikit_learn():
    values = np.random.default_rng(0).normal(3, [1, 10, 0.1], (50, 3))
    ours, theirs = standardise(values), StandardScaler().fit_transform(values)
    np.testing.assert_allclose(ours, theirs, atol=1e-13)
    np.testing.assert_allclose(unit_rows(ours), normalize(theirs), atol=1e-13)


def test_a_zero_row_stays_zero():
    assert unit_rows(np.array([[0.0, 0.0], [3.0, 4.0]])).tolist() == [[0, 0], [0.6, 0.8]]


def test_levels_are_sorted_as_strings_and_a_blank_is_one():
    indicators = one_hot("day", levels(["2", "", "10", "2"]))
    assert indicators.names == ("day=", "day=10", "day=2")
    assert indicators.codes.tolist() == [2, 0, 1, 2]
    kept = one_hot("day", levels(["2", "", "10", "2"]).at(np.array([3, 2])))  # no row is left that is blank
    assert kept.names == ("day=10", "day=2") and kept.codes.tolist() == [1, 0]


def test_missing_values_become_the_median():
    assert fill_missing(np.array([[1.0], [np.nan], [2.0], [9.0]])).ravel().tolist() == [1, 2, 2, 9]


def test_quantile_bins_merge_equal_edges_and_drop_empty_bins():
    values = np.array([0.0, 0, 0, 0, 0, 1, 2, 3])
    # Quantiles at 1/4, 1/2, 3/4: 0, 0, 1.25. The bin below 0 is empty.
    bins = quantile_bins("v", values, 4)
    assert bins.codes.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]
    assert bins.names == ("v in [0, 1.25)", "v in [1.25, inf)")


def test_a_value_on_an_edge_belongs_to_the_bin_above():
    assert quantile_bins("v", np.array([0.0, 1, 2]), 2).codes.tolist() == [0, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_design_agrees_with_scikit_learn(dtype):
    rng = np.random.default_rng(1)
    numeric, first, second = rng.normal(size=(40, 2)), rng.choice(["b", "a", ""], 40), rng.choice(["x", "y"], 40)
    ours = design(
        numeric,
        [one_hot("first", levels(list(map(str, first)))), one_hot("second", levels(list(map(str, second))))],
        np.dtype(dtype),
    )
    encoder = OneHotEncoder(sparse_output=False)
    theirs: Any = normalize(np.hstack([numeric, encoder.fit_transform(np.column_stack([first, second]))]))
    assert ours.dtype == dtype
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=np.finfo(dtype).eps)


def test_signs():
    assert signs(np.array([True, False]), np.dtype("float32")).tolist() == [1, -1]


def test_tables():
    table = read_columns(['a;"b"', '1;"x;y"', ';"z"'], ";")
    assert table == {"a": ["1", ""], "b": ["x;y", "z"]}
    np.testing.assert_array_equal(numbers(table["a"]), [1, np.nan])


def test_tables_of_many_rows_keep_their_order_and_have_no_row_of_another_length():
    lines = ["a,b", *(f"{i},{-i}" for i in range(2 * BLOCK + 1))]
    assert read_columns(lines) == {
        "a": [line.split(",")[0] for line in lines[1:]],
        "b": [line.split(",")[1] for line in lines[1:]],
    }
    with pytest.raises(ValueError, match="zip"):
        read_columns([*lines, "1,2,3"])


def test_levels_are_those_of_numpy():
    column = np.random.default_rng(2).choice(["b", "a", "", "ab"], 50)
    names, codes = np.unique(column, return_inverse=True)
    found = levels(list(map(str, column)))
    assert found.names.tolist() == names.tolist() and found.codes.tolist() == codes.tolist()
    assert found.texts.tolist() == column.tolist()

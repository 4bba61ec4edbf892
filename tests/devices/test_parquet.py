"""Parquet files become rows on disk, once."""

import numpy as np
import pytest

import mescal
from mescal.datasets import convert_parquet

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
COLUMNS = {"features": ["height", "weight"], "label": "label", "visits": "visits"}


@pytest.fixture
def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "height": rng.normal(size=1000),
        "weight": rng.normal(size=1000).astype(np.float32),
        "label": rng.uniform(size=1000) < 0.5,
        "visits": rng.integers(0, 9, 1000),
        "name": np.asarray(["a"] * 1000),
    }


def write(table, path):
    parquet.write_table(pyarrow.table(table), path, row_group_size=300)
    return path


def test_rows_are_those_of_the_file_and_are_converted_once(table, tmp_path):
    source = write(table, tmp_path / "t.parquet")
    rows = convert_parquet(source, tmp_path / "rows", COLUMNS)
    assert rows.size == 1000
    found = rows.block(250, 100).samples
    expected = np.stack([table["height"], table["weight"]], 1)[250:350].astype(np.float32)
    assert np.array_equal(found["features"], expected)
    assert found["label"].dtype == bool and np.array_equal(found["label"], table["label"][250:350])
    assert found["visits"].dtype == np.int64 and np.array_equal(found["visits"], table["visits"][250:350])
    before = (tmp_path / "rows" / "features.npy").stat().st_mtime_ns
    convert_parquet(source, tmp_path / "rows", COLUMNS)
    assert (tmp_path / "rows" / "features.npy").stat().st_mtime_ns == before
    assert (
        convert_parquet(source, tmp_path / "rows", COLUMNS, np.float64).block(0, 1).samples["features"].dtype
        == np.float64
    )


def test_what_cannot_be_converted_is_refused(table, tmp_path):
    source = write(table, tmp_path / "t.parquet")
    with pytest.raises(mescal.InputError, match="holds string"):
        convert_parquet(source, tmp_path / "rows", {"name": "name"})
    with pytest.raises(mescal.InputError, match="has no columns"):
        convert_parquet(source, tmp_path / "rows", {"a": ["height", "hair"]})
    with pytest.raises(mescal.InputError, match="no file"):
        convert_parquet(tmp_path / "other", tmp_path / "rows", COLUMNS)
    (tmp_path / "text").write_text("no table")
    with pytest.raises(mescal.InputError, match="cannot be read as Parquet"):
        convert_parquet(tmp_path / "text", tmp_path / "rows", COLUMNS)
    gap = write({"a": [1.0, None, 2.0]}, tmp_path / "gap.parquet")
    with pytest.raises(mescal.InputError, match="no value in row 1"):
        convert_parquet(gap, tmp_path / "rows", {"a": "a"})
    assert not (tmp_path / "rows" / "converted.json").exists()

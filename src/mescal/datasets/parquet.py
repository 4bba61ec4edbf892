"""Parquet files as rows on disk: converted once, a batch of rows at a time, into one `.npy` file per group of columns.

Parquet stores columns in compressed pages, so that a row at random costs a page; `.npy` files have rows of one width, and a
row is one short read. A file beside them says what was converted, and is written last: a conversion that was broken off is
done again, one that was finished is not.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..distribution import install
from ..errors import InputError
from ..files import write_json
from ..problem import OnDisk, on_disk

BATCH = 1 << 16  # rows in memory at a time
DONE = "converted.json"


def convert_parquet(
    source: "str | os.PathLike[str]",
    folder: "str | os.PathLike[str]",
    columns: Mapping[str, str | Sequence[str]],
    dtype: Any = np.float32,
) -> OnDisk:
    """A Parquet file as a population on disk, for `E(fn, over=...)`; needs the extra `parquet`.

    **Arguments:**

    - `source`: a Parquet file.
    - `folder`: where the converted rows go, in their full size; one that holds them already is used as it is.
    - `columns`: what a row holds: `{"features": ["age", "income"], "label": "default"}` makes rows with a vector `features`
      and a scalar `label`.
    - `dtype`: of floating columns; integers and booleans keep their type where a group has one type.

    **Returns:** the population; `mescal.on_disk(folder)` opens it again without pyarrow.
    """
    path, target = Path(source), Path(folder)
    groups = {name: [given] if isinstance(given, str) else list(given) for name, given in columns.items()}
    scalar = {name for name, given in columns.items() if isinstance(given, str)}
    facts = path.stat() if path.is_file() else None
    if facts is None:
        raise InputError(f"no file {path.name}", "a Parquet file", "check the path")
    told = {
        "source": path.name,
        "bytes": facts.st_size,
        "changed": facts.st_mtime_ns,
        "columns": groups,
        "scalar": sorted(scalar),
        "type": str(np.dtype(dtype)),
    }
    if (target / DONE).is_file() and json.loads((target / DONE).read_text()) == told:
        return on_disk(target)
    file = _open(path)
    missing = sorted({name for group in groups.values() for name in group} - set(file.schema_arrow.names))
    if missing or not groups:
        raise InputError(
            f"{path.name} has no columns {missing}" if missing else "no columns were named",
            f"some of {file.schema_arrow.names[:20]}",
            "name the columns as the file does",
        )
    _convert(file, target, groups, scalar, np.dtype(dtype))
    write_json(target / DONE, told)
    return on_disk(target)


def _open(path: Path):
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise InputError("pyarrow is not installed", "pyarrow, which reads Parquet", install("parquet")) from error
    try:
        return ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(
            f"{path.name} cannot be read as Parquet", "a Parquet file", "check how it was written"
        ) from error


def _convert(file, target: Path, groups: dict[str, list[str]], scalar: set[str], dtype: np.dtype):
    rows = file.metadata.num_rows
    if rows == 0:
        raise InputError("the Parquet file holds no rows", "at least one row", "check the filter that made it")
    target.mkdir(parents=True, exist_ok=True)
    (target / DONE).unlink(missing_ok=True)
    types = {name: _type(file, given, dtype) for name, given in groups.items()}
    arrays = {
        name: np.lib.format.open_memmap(
            target / f"{name}.npy", "w+", types[name], (rows,) if name in scalar else (rows, len(given))
        )
        for name, given in groups.items()
    }
    wanted, start = list(dict.fromkeys(name for given in groups.values() for name in given)), 0
    for batch in file.iter_batches(BATCH, columns=wanted):
        for name, given in groups.items():
            parts = [_numbers(batch.column(column), column, start) for column in given]
            block = parts[0] if name in scalar else np.stack(parts, axis=1)
            arrays[name][start : start + len(block)] = block.astype(types[name], copy=False)
        start += batch.num_rows
    for array in arrays.values():
        array.flush()


def _type(file, given: list[str], dtype: np.dtype) -> np.dtype:
    """The type of a group: its own where it is one of integers or booleans, `dtype` otherwise."""
    import pyarrow.types as kinds

    found = {file.schema_arrow.field(name).type for name in given}
    if len(found) == 1 and (kinds.is_integer(kind := found.pop()) or kinds.is_boolean(kind)):
        return np.dtype(bool) if kinds.is_boolean(kind) else np.dtype(kind.to_pandas_dtype())
    return dtype


def _numbers(column: Any, name: str, start: int) -> np.ndarray:
    if column.null_count:
        row = start + next(i for i, valid in enumerate(column.is_valid().to_pylist()) if not valid)
        raise InputError(
            f"column {name!r} has no value in row {row}", "a number in every row", "drop or fill those rows"
        )
    array = column.to_numpy(zero_copy_only=False)
    if array.dtype == object or not (np.issubdtype(array.dtype, np.number) or array.dtype == bool):
        raise InputError(f"column {name!r} holds {column.type}", "numbers or booleans", "encode it as numbers first")
    return array

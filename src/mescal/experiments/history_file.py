"""history.csv: one line per outer iteration; multipliers and the judge's measures in columns of their own.

The columns are the fields of `mescal.run.Row`, then `multiplier:NAME` for a scalar constraint and `multiplier:NAME[i]`
for row i of a vector constraint, then `exact:MEASURE` where a run recorded the judge's measures.
"""

import csv
import io
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..run import History, Row

TEXT = ("inner",)  # columns of words; all others hold numbers
PLAIN = tuple(field.name for field in fields(Row) if field.name not in ("multipliers", "exact"))


def multiplier_columns(multipliers: Mapping[str, Any]) -> list[str]:
    """The names of the multipliers' columns, in the order of the constraints and of their rows."""
    columns = []
    for name, rows in multipliers.items():
        shape = np.shape(rows)
        columns += [f"multiplier:{name}"] if shape == () else [f"multiplier:{name}[{i}]" for i in range(np.size(rows))]
    return columns


def history_text(history: History, multipliers: Mapping[str, Any]) -> str:
    """The history as CSV. Numbers are written so that they can be read back bit for bit."""
    measured = sorted({name for row in history for name in row.exact})
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*PLAIN, *multiplier_columns(multipliers), *(f"exact:{name}" for name in measured)])
    for row in history:
        exact = (row.exact.get(name, float("nan")) for name in measured)
        writer.writerow([*(getattr(row, name) for name in PLAIN), *row.multipliers, *exact])
    return out.getvalue()


def read_history(path: Path, content: bytes) -> dict[str, np.ndarray]:
    """The columns of a history by name: float64, and strings for words."""
    try:
        head, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
        columns = zip(*rows, strict=True) if rows else [()] * len(head)
        return {
            name: np.asarray(column, dtype=str if name in TEXT else np.float64)
            for name, column in zip(head, columns, strict=True)
        }
    except (ValueError, csv.Error):
        raise InputError(
            f"{path} is not a history: its lines do not hold the same number of columns, or no numbers",
            "a file that mescal wrote",
            "run it again with --force",
        ) from None

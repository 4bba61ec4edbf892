"""The history of a run: one row per outer iteration, plain numbers, bounded in size."""

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

KEPT = 4096  # rows kept; beyond, every second old row is dropped


@dataclass(frozen=True)
class Row:
    """One outer iteration, in the solver's own estimates (exact on finite populations), unscaled."""

    outer: int
    work: float  # total so far, in thetas: gradients + 2 hvps
    gradients: float
    hvps: float
    searches: float  # the part of the total that curvature searches took
    seconds: float
    objective: float
    stationarity: float
    feasibility: float
    curvature: float  # the last one that a search found; NaN if none has searched yet
    penalty: float
    multipliers: tuple[float, ...]
    step: float  # 1/L, the last step length factor
    batch: int  # thetas of a recursive step
    large_batch: int  # thetas of a reset
    inner_steps: int
    escapes: int
    inner: str  # how the inner solve ended
    value_start: float  # augmented Lagrangian at the start and end of the inner solve
    value_end: float
    copies: int = 1  # independent inner solves, where boosting asked for several
    exact: dict[str, float] = field(default_factory=dict)  # the judge's measures, if recorded


class History:
    """Rows of a run; `history[-1]`, `len(history)`, `history.column("work")`, `history.to_csv()`."""

    def __init__(self, rows: list[Row] | None = None):
        self.rows = list(rows or [])

    def followed_by(self, row: Row) -> "History":
        """With one row more; old rows thin out so that memory stays bounded."""
        rows = [*self.rows, row]
        return History(rows if len(rows) <= KEPT else rows[: KEPT // 2 : 2] + rows[KEPT // 2 :])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def column(self, name: str) -> np.ndarray:
        """One field of all rows."""
        return np.asarray([getattr(row, name) for row in self.rows])

    def to_csv(self) -> str:
        """The rows as CSV text; multipliers separated by spaces, exact measures as columns of their own."""
        measured = sorted({name for row in self.rows for name in row.exact})
        names = [f.name for f in fields(Row) if f.name != "exact"]
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow([*names, *(f"exact_{name}" for name in measured)])
        for row in self.rows:
            values: dict[str, Any] = asdict(row)
            values["multipliers"] = " ".join(f"{v:.9g}" for v in row.multipliers)
            writer.writerow([values[name] for name in names] + [row.exact.get(name, "") for name in measured])
        return out.getvalue()

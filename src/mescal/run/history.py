"""The history of a run: one row per outer iteration, plain numbers, bounded in size."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

import numpy as np

from ..certificate import Check, Measured, Tolerance, as_tolerance, compared
from ..errors import InputError
from ..importing import on_first_use
from ..problem.constraint import rows_by_name

ESTIMATES = ("stationarity", "feasibility", "curvature")
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

    def checks(self, tol: float | Tolerance) -> tuple[Check, ...]:
        """The estimates beside what the tolerance asks of the paper's three measures."""
        tolerance = as_tolerance(tol)
        estimates = {name: Measured.exact(getattr(self, name), "estimated by the solver") for name in ESTIMATES}
        return compared(estimates, Tolerance(tolerance.gradient, tolerance.curvature))


KINDS = {name: kind for name, kind in get_type_hints(Row).items() if kind in (int, float, str)}
MULTIPLIER, EXACT = "multiplier:", "exact:"


class History:
    """Rows of a run; `history[-1]`, `len(history)`, `history.column("work")`, `history.to_csv()`, `history.to_pandas()`.

    As a table it has the fields of a `Row`, then `multiplier:NAME` for a scalar constraint and `multiplier:NAME[i]` for row i of a
    vector constraint, then `exact:MEASURE` where a run recorded the judge's measures. `multipliers` are these NAMEs.
    """

    def __init__(self, rows: Iterable[Row] = (), multipliers: Iterable[str] = ()):
        self.rows, self.multipliers = list(rows), tuple(multipliers)

    def followed_by(self, row: Row) -> "History":
        """With one row more; old rows thin out so that memory stays bounded."""
        rows = [*self.rows, row]
        return History(rows if len(rows) <= KEPT else rows[: KEPT // 2 : 2] + rows[KEPT // 2 :], self.multipliers)

    def named(self, multipliers: Mapping[str, np.ndarray]) -> "History":
        """With names for the multipliers, in the order of the constraints and of their rows."""
        return History(self.rows, rows_by_name(multipliers))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def column(self, name: str) -> np.ndarray:
        """One field of all rows, or another column of the table, `exact:feasibility` for one."""
        fields = [getattr(row, name) for row in self.rows] if name in Row.__annotations__ else self.table()[name]
        return np.asarray(fields)

    def table(self) -> dict[str, list[Any]]:
        """The rows by column; None where a row has no such measure."""
        measured = dict.fromkeys(name for row in self.rows for name in row.exact)
        count = max((len(row.multipliers) for row in self.rows), default=0)
        names = self.multipliers or [f"[{i}]" for i in range(count)]
        columns = {name: [kind(getattr(row, name)) for row in self.rows] for name, kind in KINDS.items()}
        columns |= {f"{MULTIPLIER}{name}": [row.multipliers[i] for row in self.rows] for i, name in enumerate(names)}
        return columns | {f"{EXACT}{name}": [row.exact.get(name) for row in self.rows] for name in measured}

    def to_csv(self) -> str:
        """The table as CSV. Numbers are written so that they can be read back bit for bit."""
        out, table = io.StringIO(), self.table()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
        return out.getvalue()

    @classmethod
    def from_csv(cls, text: str) -> "History":
        """What `to_csv` wrote; `ValueError` for anything else."""
        try:
            head, *lines = csv.reader(io.StringIO(text, newline=""))
        except csv.Error as error:
            raise ValueError(f"no CSV: {error}") from error
        names = [name.removeprefix(MULTIPLIER) for name in head if name.startswith(MULTIPLIER)]
        measured = [name.removeprefix(EXACT) for name in head[len(KINDS) + len(names) :]]
        wanted = [*KINDS, *(MULTIPLIER + name for name in names), *(EXACT + name for name in measured)]
        if head != wanted or any(len(line) != len(head) for line in lines):
            raise ValueError("other columns")
        return cls([_row(line, len(names), measured) for line in lines], names)

    def __repr__(self) -> str:
        last = f", last={self.rows[-1]}" if self.rows else ""
        return f"History(rows={len(self.rows)}{last})"

    def _repr_html_(self) -> str:
        return on_first_use("report.cards").history_card(self)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise InputError(
                "pandas is not installed", "pandas, which mescal itself does not need", "pip install pandas"
            ) from None
        return pandas.DataFrame(self.table())


def _row(line: list[str], multipliers: int, measured: list[str]) -> Row:
    plain: dict[str, Any] = {name: kind(text) for (name, kind), text in zip(KINDS.items(), line, strict=False)}
    rest = line[len(KINDS) :]
    exact = zip(measured, rest[multipliers:], strict=True)
    return Row(
        **plain,
        multipliers=tuple(map(float, rest[:multipliers])),
        exact={name: float(text) for name, text in exact if text},
    )

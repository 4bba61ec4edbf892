"""Timing on a machine that others use, too: repetitions are interleaved and compared pair by pair.

With one thread the clock is the CPU time of this process, which does not run while others have the core; with several it
is the wall clock. A ratio is the larger of the median over pairs and the ratio of the minima, so that noise in
the reference does not flatter.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# For benchmarks that keep a store of runs and can be stopped, continued, and shared among processes.
seconds_left: float | None = None  # after which no new run is started; None: they end
part: tuple[int, int] = (1, 1)  # this process takes the k-th of so many shares

# For benchmarks that spread their work over processes.
workers: int = 1

# For benchmarks whose rows can be measured one by one.
only: tuple[str, ...] = ()  # those that were asked for; none: all


def time_left(started: float) -> bool:
    """Whether a new run may be started, of a benchmark that began at that reading of `time.monotonic`."""
    return seconds_left is None or time.monotonic() - started < seconds_left


def share(names: list[str]) -> list[str]:
    """What this process is to do of a list: every n-th, from the k-th on."""
    return names[part[0] - 1 :: part[1]]


def chosen(names: list[str]) -> list[str]:
    """Of the rows of a benchmark, those that `--only` names."""
    unknown = sorted(set(only) - set(names))
    if unknown:
        raise SystemExit(f"--only {unknown[0]}: there are {', '.join(names)}")
    return [name for name in names if name in only] if only else names


def clock() -> float:
    """Seconds, by the clock that the number of threads calls for."""
    return time.process_time() if os.environ.get("OMP_NUM_THREADS") == "1" else time.perf_counter()


@dataclass
class Report:
    """What a benchmark found: settings, tables of rows, targets, and sentences computed from the numbers."""

    settings: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    targets: list[dict[str, Any]] = field(default_factory=list)
    conclusions: list[str] = field(default_factory=list)

    def add(self, table: str, **row: Any):
        """One more row of a table."""
        self.tables.setdefault(table, []).append(row)

    def hold(self, what: str, value: float, at_most: float):
        """Compare a number with its target."""
        self.targets.append({"what": what, "value": value, "at_most": at_most, "met": bool(value <= at_most)})


def interleave(actions: Mapping[str, Callable[[], Any]], repetitions: int, inner: int = 1) -> dict[str, np.ndarray]:
    """Seconds per call of each action over rounds A, B, C, A, B, C, ...; each was called once before."""
    for action in actions.values():
        action()
    seconds = {name: np.zeros(repetitions) for name in actions}
    for repetition in range(repetitions):
        for name, action in actions.items():
            start = clock()
            for _ in range(inner):
                action()
            seconds[name][repetition] = (clock() - start) / inner
    return seconds


def ratio(seconds: np.ndarray, reference: np.ndarray) -> float:
    """How many times longer than the reference: the larger of two robust answers."""
    return float(max(np.median(seconds / reference), seconds.min() / reference.min()))


@contextmanager
def patched(module: Any, **values: Any):
    """Names of a module set to other values, for ablations and for sweeps over its constants."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)

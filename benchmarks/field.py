"""Physics-informed networks, a fairness case and several classes, on which the field compares now: everyone, under one judge.

Each method ends by its own stopping test, set to the tolerance, or spends its budget; methods without a test say nothing of
themselves, and are judged all the same. Ours compute in float32, deterministic peers in float64. Curvature is that on the critical
cone: wide networks have flat directions everywhere, so that it is near zero and decides. Runs are kept in results/field.jsonl: a
second call goes on where the first was stopped.
"""

import time
from pathlib import Path
from typing import Any

import jax

from mescal import problems

from . import _measure, peers
from ._measure import Report
from .harness import Budget, Method, Task
from .harness.attempt import attempt
from .harness.ours import ours
from .harness.store import Store

STORE = Path(__file__).parent / "results" / "field.jsonl"
KEYS = ("problem", "method")
PROBLEMS = ("physics/helmholtz", "physics/burgers", "fairness/bank-tight", "synthetic/neyman-pearson")
SMALL: dict[str, Any] = {"classes": 3, "rows": 50, "d": 3}
TOL = 1e-2
BUDGET = Budget(work=2e7, seconds=60.0)
TRAINING = Budget(work=2e6, seconds=20.0)  # of each learning rate of a PyTorch peer
SOLVERS = ("auto", "spider", "null-space")


def run(quick: bool) -> Report:
    """Whatever is missing in the store, then the summary; `--quick` is one small problem, without SPIDER, and keeps nothing."""
    store, started = Store(None if quick else STORE, KEYS), time.monotonic()
    everyone: tuple[Method, ...] = (*map(ours, SOLVERS), *peers.methods())
    wanted = _measure.chosen([method.name for method in everyone])
    everyone = tuple(method for method in everyone if method.name in wanted and (not quick or method.name != "spider"))
    for each in [problems.get(PROBLEMS[-1], **SMALL)] if quick else map(problems.get, PROBLEMS):
        memo: dict[Any, Any] = {}
        for method in everyone:
            if not store.has(each.name, method.name) and _measure.time_left(started):
                budget = BUDGET if method.stops else TRAINING
                store.add(
                    attempt(method, Task(each.name, each.problem, each.x0, TOL, 0, budget, each.problem, memo=memo))
                )
        jax.clear_caches()  # a process can hold only so many programs
    return report(list(store.all()))


def report(rows: list[dict[str, Any]]) -> Report:
    """A table of each problem; a method that declines or breaks has a row that says so."""
    found = Report({"tol": TOL, "work_at_most": BUDGET.work, "seconds_at_most": BUDGET.seconds, "seed": 0})
    found.settings |= {"peers": peers.versions(STORE.with_suffix(".json"))}
    for row in sorted(rows, key=lambda row: PROBLEMS.index(row["problem"])):
        found.add(f"{row['problem']}, certified at {TOL:g} by one judge", **_cells(row))
    return found


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    measured = ("objective", "stationarity", "feasibility", "curvature", "work", "seconds")
    verdict = "yes" if row["certified"] else row["why"] or "not known well enough"
    claims = {True: "yes", False: "no", None: ""}[row["claims"]]
    return {"method": row["method"], "certified": verdict, "claims": claims} | {
        name: row.get(name) for name in measured
    }

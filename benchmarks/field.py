"""Physics-informed networks, a fairness case and several classes, on which the field compares now: everyone, under one judge.

Each method ends by its own stopping test, set to the tolerance, or spends its budget; methods without a test say nothing of
themselves, and are judged all the same. Ours compute in float32, deterministic peers in float64. Curvature is that on the critical
cone: wide networks have flat directions everywhere, so that it is near zero and decides. Runs are kept in results/field.jsonl: a
second call goes on where the first was stopped.
"""

import time
from pathlib import Path
from statistics import median
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
BUDGET = Budget(work=5e6, seconds=300.0)
TRAINING = Budget(work=1e6, seconds=30.0)  # of each learning rate of a PyTorch peer
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
    """All problems, then a table of each; a method that declines or breaks has a row that says so."""
    rows = sorted(rows, key=lambda row: (PROBLEMS.index(row["problem"]), row["kind"] != "ours", row["method"].lower()))
    found = Report({"tol": TOL, "work_at_most": BUDGET.work, "seconds_at_most": BUDGET.seconds, "seed": 0})
    found.settings |= {"peers": peers.versions(STORE.with_suffix(".json"))}
    for method in dict.fromkeys(row["method"] for row in rows):
        found.add("all problems", method=method, **_summary([row for row in rows if row["method"] == method], rows))
    for row in rows:
        found.add(f"certified at {TOL:g} by one judge: {row['problem']}", **_cells(row))
    return found


def _summary(mine: list[dict[str, Any]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Successes of one method, claims that the judge refused, and what a success took over the least of anybody's."""
    certified = [row for row in mine if row["certified"]]

    def over_the_least(name: str) -> float | None:
        least = {
            problem: min(row[name] for row in rows if row["certified"] and row["problem"] == problem)
            for problem in done
        }
        return median(row[name] / least[row["problem"]] for row in certified) if certified else None

    done = {row["problem"] for row in certified}
    return {
        "certified": f"{len(certified)}/{len(mine)}",
        "claims refused": sum(row["claims"] is True and not row["certified"] for row in mine),
        "median work over the least": over_the_least("work"),
        "median seconds over the least": over_the_least("seconds"),
    }


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    measured = ("objective", "stationarity", "feasibility", "curvature", "work", "seconds")
    verdict = "yes" if row["certified"] else row["why"] or "not known well enough"
    claims = {True: "yes", False: "no", None: ""}[row["claims"]]
    return {"method": row["method"], "certified": verdict, "claims": claims} | {
        name: row.get(name) for name in measured
    }

"""Comparing runs: shares certified, what failed and why, data profiles and performance profiles.

Data profile of a method: the share of problems that it certified at a cost of at most t. Performance profile: at a cost of at
most r times that of the cheapest method on each problem (Dolan and More 2002; More and Wild 2009). Each is a step function,
kept as its sorted steps. A run that was not certified costs infinity, and so does a claim that the judge refused.
"""

import math
from collections import Counter
from typing import Any

Row = dict[str, Any]
KINDS = {"ours": 0, "baseline": 1, "peer": 2}


def methods(rows: list[Row]) -> dict[str, str]:
    """Methods with their kinds: ours first, then baselines, then peers."""
    found = {row["method"]: row["kind"] for row in rows}
    return dict(sorted(found.items(), key=lambda item: KINDS[item[1]]))


def shares(rows: list[Row]) -> list[Row]:
    """A line per method: problems tried, certified, its own claims and how many of them the judge refused."""
    lines = []
    for method, kind in methods(rows).items():
        mine = [row for row in rows if row["method"] == method]
        taken = [row for row in mine if not row["status"].startswith("declined")]
        certified = [row for row in mine if row["certified"]]
        claimed = [row for row in taken if row["claims"]]
        lines.append(
            {
                "method": method,
                "kind": kind,
                "problems": len(mine),
                "certified": len(certified),
                "share": len(certified) / len(mine),
                "declined": len(mine) - len(taken),
                "claimed by itself": len(claimed),
                "of these refused": sum(not row["certified"] for row in claimed),
                "median work when certified": _median([row["work"] for row in certified]),
                "median work of its certificate": _median([row.get("certificate_work", 0.0) for row in certified]),
                "median seconds when certified": _median([row["seconds"] for row in certified]),
            }
        )
    return lines


def failures(rows: list[Row]) -> list[Row]:
    """A line per method and way of failing, with the problems."""
    lines = []
    for method, kind in methods(rows).items():
        reasons: dict[str, list[str]] = {}
        for row in rows:
            if row["method"] == method and not row["certified"]:
                status = row["status"] if row["status"] == row["why"] else f"{row['status']}: {row['why']}"
                reasons.setdefault(status, []).append(row["problem"])
        for reason, problems in sorted(reasons.items(), key=lambda item: -len(item[1])):
            lines.append({"method": method, "kind": kind, "status": reason, "problems": ", ".join(sorted(problems))})
    return lines


def common_problems(rows: list[Row]) -> list[str]:
    """Problems on which every method was run."""
    everyone = len(methods(rows))
    counts = Counter(row["problem"] for row in rows)
    return sorted(name for name, count in counts.items() if count == everyone)


def data_profile(rows: list[Row], cost: str) -> dict[str, list[list[float]]]:
    """By method, the steps [t, share certified at a cost of at most t]."""
    return {method: _steps([costs[method] for costs in _table(rows, cost).values()]) for method in methods(rows)}


def performance_profile(rows: list[Row], cost: str) -> dict[str, list[list[float]]]:
    """By method, the steps [r, share certified at a cost of at most r times the least]."""
    ratios: dict[str, list[float]] = {method: [] for method in methods(rows)}
    for costs in _table(rows, cost).values():
        least = min(costs.values())
        for method, value in costs.items():
            ratios[method].append(value / least if math.isfinite(least) else math.inf)
    return {method: _steps(values) for method, values in ratios.items()}


def _table(rows: list[Row], cost: str) -> dict[str, dict[str, float]]:
    """By problem and method, the cost of certified runs; infinite otherwise."""
    names = methods(rows)
    table = {row["problem"]: dict.fromkeys(names, math.inf) for row in rows}
    for row in rows:
        if row["certified"]:
            table[row["problem"]][row["method"]] = max(float(row[cost]), TINY)
    return table


TINY = 1e-12  # a cost of zero (a start that is already certified) has no ratio


def _steps(values: list[float]) -> list[list[float]]:
    finite = sorted(value for value in values if math.isfinite(value))
    return [[value, (i + 1) / len(values)] for i, value in enumerate(finite)]


def _median(values: list[float]) -> float | None:
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return float(ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2)

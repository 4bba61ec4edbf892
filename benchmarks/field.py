"""Physics-informed networks, a fairness case and several classes, on which the field compares now: everyone, under one judge.

Each method ends by its own stopping test, set to the tolerance, or spends its budget; methods without a test say nothing of
themselves, and are judged all the same. Ours compute in float32, deterministic peers in float64. Curvature is that on the critical
cone: wide networks have flat directions everywhere, so that it is near zero and decides.
"""

import traceback
from typing import Any

from mescal import problems

from . import peers
from ._measure import Report, chosen
from .harness import Answer, Budget, Method, Task, Verdict, judge
from .harness.ours import ours

PROBLEMS = ("physics/helmholtz", "physics/burgers", "fairness/bank-tight", "synthetic/neyman-pearson")
SMALL: dict[str, Any] = {"classes": 3, "rows": 50, "d": 3}
TOL = 1e-2
BUDGET = Budget(work=2e7, seconds=120.0)
TRAINING = Budget(work=2e6, seconds=60.0)  # of each learning rate of a PyTorch peer
SOLVERS = ("auto", "spider", "null-space")


def run(quick: bool) -> Report:
    """All problems and methods; a method that declines or breaks has a row that says so."""
    everyone: tuple[Method, ...] = (*map(ours, SOLVERS), *peers.methods())
    wanted = chosen([method.name for method in everyone])
    named = [problems.get(PROBLEMS[-1], **SMALL)] if quick else [problems.get(name) for name in PROBLEMS]
    everyone = tuple(method for method in everyone if method.name in wanted and (not quick or method.name != "spider"))
    report = Report({"tol": TOL, "work_at_most": BUDGET.work, "seconds_at_most": BUDGET.seconds, "seed": 0})
    report.settings |= {"peers": peers.versions()}
    for each in named:
        memo: dict[Any, Any] = {}
        for method in everyone:
            budget = BUDGET if method.stops else TRAINING
            task = Task(each.name, each.problem, each.x0, TOL, 0, budget, each.problem, memo=memo)
            row = {"problem": each.name, "method": method.name, "whose": method.kind} | _outcome(method, task)
            print(f"{each.name} {method.name}: {row['certified']}", flush=True)
            report.add(f"certified at {TOL:g}, by one judge", **row)
    return report


def _outcome(method: Method, task: Task) -> dict[str, Any]:
    if (reason := method.declines(task)) is not None:
        return {"certified": f"declined: {reason}"}
    try:
        answer = method.solve(task)
        return _cells(answer, judge(task, answer))
    except Exception as error:  # one method's failure is a row of the table, not the end of the run
        traceback.print_exc()
        return {"certified": f"broke: {type(error).__name__}"}


def _cells(answer: Answer, verdict: Verdict) -> dict[str, Any]:
    return {
        "certified": verdict.why or ("yes" if verdict.certified else "not known well enough"),
        "claims": {True: "yes", False: "no", None: ""}[answer.claims],
        "objective": verdict.objective,
        "stationarity": verdict.stationarity,
        "feasibility": verdict.feasibility,
        "curvature": verdict.curvature,
        "evaluations": answer.work,
        "seconds": answer.seconds,
    }

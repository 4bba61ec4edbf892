"""How cost grows with the data: fairness on N = 10^4, 10^5, 10^6 synthetic rows (d = 100), ours beside deterministic peers.

Work is gradients + 2 Hessian products per sample; a pass over N rows counts N. Seconds are without compiling and without
our certificate. "From a sample" solves `mescal.subsample(problem, 8192)` first and starts from there; both parts count. The
last table fits cost ~ N^p between the smallest and the largest N.
"""

import dataclasses
import math
import time

import mescal
from mescal import problems

from . import peers
from ._measure import Report
from .harness import Budget, Task, judge
from .harness.ours import Minimizer, ours

ROWS = (10_000, 100_000, 1_000_000)
D = 100
TOL = 1e-3
SOLVERS = ("auto", "sg-hv-nc")
SAMPLE = 8192  # rows that are solved first
PEERS = ("AL + L-BFGS-B", "SLSQP", "Ipopt")
BUDGET = Budget(work=1e12, seconds=90.0)
TABLE = f"fairness on synthetic data, d = {D}, tolerance {TOL:g}"


def from_sample(task: Task) -> mescal.Result:
    """A solution on some rows, then on all of them; work and seconds of both."""
    settings = {"tol": task.tol, "cone": task.cone, "seed": task.seed, "max_seconds": task.budget.seconds}
    first = mescal.minimize(mescal.subsample(task.problem, SAMPLE, task.seed), task.x0, **settings)
    then = mescal.minimize(task.problem, start=first, **settings)
    work = dataclasses.replace(then.work, solver=first.work.solver + first.work.judge + then.work.solver)
    seconds = dataclasses.replace(then.seconds, compile=first.seconds.compile + then.seconds.compile)
    return dataclasses.replace(then, work=work, seconds=seconds)


def run(quick: bool) -> Report:
    """All sizes and methods."""
    sizes, d = ((1000, 4000), 10) if quick else (ROWS, D)
    report = Report({"rows": list(sizes), "d": d, "tol": TOL, "peers": peers.versions()})
    sampled = Minimizer("auto, from a sample", "ours", from_sample)
    methods = (*map(ours, SOLVERS), sampled, *(peer for peer in peers.methods() if peer.name in PEERS))
    costs: dict[str, list[tuple[int, float, float]]] = {}
    for rows in sizes:
        started = time.perf_counter()
        named = problems.get("synthetic/fairness", rows=rows, d=d)
        print(f"{rows} rows made in {time.perf_counter() - started:.0f} s", flush=True)
        memo: dict = {}
        for method in methods:
            task = Task(f"synthetic/{rows}", named.problem, named.x0, TOL, 0, BUDGET, named.problem, memo=memo)
            answer = method.solve(task)
            verdict = judge(task, answer)
            passes = answer.work / rows
            report.add(
                TABLE,
                rows=rows,
                method=method.name,
                kind=method.kind,
                certified="yes" if verdict.certified else f"no: {verdict.why}",
                work=answer.work,
                passes=passes,
                seconds=answer.seconds,
                objective=verdict.objective,
                relative_stationarity=verdict.relative_stationarity,
            )
            if verdict.certified:
                costs.setdefault(method.name, []).append((rows, answer.work, answer.seconds))
    for method in methods:
        if len(found := costs.get(method.name, [])) == len(sizes):
            (n0, work0, seconds0), (n1, work1, seconds1) = found[0], found[-1]
            span = math.log(n1 / n0)
            exponents = {"work": math.log(work1 / work0) / span, "seconds": math.log(seconds1 / seconds0) / span}
            report.add("p in cost ~ N^p", method=method.name, kind=method.kind, **exponents)
            report.conclusions.append(
                f"{method.name}: from {n0:,} to {n1:,} rows, work x {work1 / work0:.3g}, seconds x {seconds1 / seconds0:.3g}."
            )
    return report

"""How cost grows with the data: fairness on N = 10^4, 10^5, 10^6 synthetic rows (d = 100), ours beside deterministic peers.

Work is gradients + 2 Hessian products per sample; a pass over N rows counts N. Seconds are without compiling and without
our certificate. "A sixteenth first" is `Auto(large=1 << 19)`: from so many rows on, a sixteenth of them is solved first, which
counts. (`auto` itself does so from 2^24 rows on: compiling for another shape is not in these seconds.) The last table fits
cost ~ N^p between the smallest and the largest N.
"""

import math
import time

from mescal import problems
from mescal.solvers import Auto

from . import peers
from ._measure import Report
from .harness import Budget, Task, judge
from .harness.ours import ours

ROWS = (10_000, 100_000, 1_000_000)
D = 100
TOL = 1e-3
SOLVERS = ("auto", "sg-hv-nc")
PEERS = ("AL + L-BFGS-B", "SLSQP", "Ipopt")
BUDGET = Budget(work=1e12, seconds=90.0)
TABLE = f"fairness on synthetic data, d = {D}, tolerance {TOL:g}"


def run(quick: bool) -> Report:
    """All sizes and methods."""
    sizes, d = ((1000, 4000), 10) if quick else (ROWS, D)
    report = Report({"rows": list(sizes), "d": d, "tol": TOL, "peers": peers.versions()})
    first = ours(Auto(large=1 << 19), "a sixteenth first")
    methods = (*map(ours, SOLVERS), first, *(peer for peer in peers.methods() if peer.name in PEERS))
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

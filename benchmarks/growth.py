"""How cost grows with the data: fairness on N = 10^4, 10^5, 10^6 synthetic rows (d = 100), ours beside deterministic peers.

Work is gradients + 2 Hessian products per sample; a pass over N rows counts N. Seconds are without compiling and without
our certificate, whose work and seconds stand beside. "A sixteenth first" is `Auto(large=1 << 19)`: from so many rows on, a
sixteenth of them is solved first, which counts. (`auto` itself does so from 2^24 rows on: compiling for another shape is not in
these seconds.) "A stream" is `auto` on `mescal.stream(rows)`: its certificate is drawn from samples and holds with a
confidence; whether its answer is certified is asked of all rows, exactly, as for everybody. The last table fits cost ~ N^p
between the smallest and the largest N.
"""

import math
import time

from mescal import problems
from mescal.problem import Population, RowStream, Source
from mescal.solvers import Auto

from . import peers
from ._measure import Report
from .harness import Budget, Task, judge
from .harness.ours import ours

ROWS = (10_000, 100_000, 1_000_000)
D = 100
FINE, COARSE = 1e-3, 1e-2  # at the first, samples in the number of rows do not suffice; at the second they do
SOLVERS = ("auto", "sg-hv-nc")
PEERS = ("AL + L-BFGS-B", "SLSQP", "Ipopt")
BUDGET = Budget(work=1e12, seconds=90.0)
STREAM = "a stream"
SEEDS = range(5)  # of the stream, whose work is random; the run with the median of work is shown, all must be certified


def run(quick: bool) -> Report:
    """All sizes, tolerances and methods."""
    sizes, d = ((1000, 4000), 10) if quick else (ROWS, D)
    report = Report({"rows": list(sizes), "d": d, "tolerances": [FINE, COARSE], "peers": peers.versions()})
    first, stream = ours(Auto(large=1 << 19), "a sixteenth first"), ours("auto", STREAM)
    rivals = [peer for peer in peers.methods() if peer.name in PEERS]
    pairs = {FINE: (*map(ours, SOLVERS), first, *rivals), COARSE: (ours("auto"), stream, *rivals)}
    methods = [(tol, method) for tol, those in pairs.items() for method in those]
    costs: dict[tuple[float, str], list[tuple[int, float, float]]] = {}
    for rows in sizes:
        started = time.perf_counter()
        named = problems.get("synthetic/fairness", rows=rows, d=d)
        streamed = named.problem.with_sources(_streamed)
        print(f"{rows} rows made in {time.perf_counter() - started:.0f} s", flush=True)
        memo: dict = {}
        for tol, method in methods:
            problem = streamed if method is stream else named.problem
            tasks = [
                Task(f"synthetic/{rows}", problem, named.x0, tol, seed, BUDGET, named.problem, memo=memo)
                for seed in (SEEDS if method is stream else SEEDS[:1])
            ]
            answers = sorted(((method.solve(task), task) for task in tasks), key=lambda pair: pair[0].work)
            verdicts = [judge(task, answer) for answer, task in answers]
            certified = all(verdict.certified for verdict in verdicts)
            answer, verdict = answers[len(answers) // 2][0], verdicts[len(answers) // 2]
            report.add(
                f"fairness on synthetic data, d = {d}, tolerance {tol:g}",
                rows=rows,
                method=method.name,
                kind=method.kind,
                certified="yes" if certified else "no: " + "; ".join({v.why for v in verdicts} - {""}),
                work=answer.work,
                passes=answer.work / rows,
                seconds=answer.seconds,
                **{what: answer.details.get(what) for what in ("certificate_work", "certificate_seconds")},
                objective=verdict.objective,
                relative_stationarity=verdict.relative_stationarity,
            )
            if certified:
                costs.setdefault((tol, method.name), []).append((rows, answer.work, answer.seconds))
    for tol, method in methods:
        exponents = {"work": math.inf}
        if len(found := costs.get((tol, method.name), [])) == len(sizes):
            (n0, work0, seconds0), (n1, work1, seconds1) = found[0], found[-1]
            span = math.log(n1 / n0)
            exponents = {"work": math.log(work1 / work0) / span, "seconds": math.log(seconds1 / seconds0) / span}
            report.add("the exponent p of cost ~ N^p", tol=tol, method=method.name, kind=method.kind, **exponents)
            report.conclusions.append(
                f"{method.name} at {tol:g}: from {n0:,} to {n1:,} rows, work x {work1 / work0:.3g}, "
                f"seconds x {seconds1 / seconds0:.3g}."
            )
        if method is stream:
            report.hold(f"{STREAM} at {tol:g}: p in work ~ N^p", exponents["work"], 0.1)
    return report


def _streamed(source: Source) -> RowStream:
    assert isinstance(source, Population)
    return RowStream(source)

"""The paper's problems and their tight variants at three tolerances: everyone's work, seconds and answer, in one run.

Each method ends by its own stopping test; PyTorch peers, which have none, spend their budget. Every answer is judged by
`certify`. Seconds are without compiling, repetitions interleaved, medians; those of our last certificate, which says more than
any peer's stopping test, stand in a column beside. With compiling, cold and from the cache, they stand in a table of their
own. A method that failed at a tolerance is not tried at a tighter one.
"""

import json
import os
import subprocess
import sys
import tempfile
import traceback
from typing import Any

import numpy as np

import mescal
from mescal import problems

from . import peers
from ._measure import Report, chosen, ratio
from .harness import Answer, Budget, Method, Task, Verdict, judge
from .harness.ours import baselines, ours

PROBLEMS = (
    "neyman-pearson/spambase",
    "neyman-pearson/madelon",
    "fairness/bank",
    "fairness/bank-tight",
    "fairness/loan",
    "fairness/loan-tight",
)
TOLERANCES = (1e-2, 1e-3, 1e-4)
SOLVERS = ("auto", "spider", "sg-hv-nc", "natasha2", "newton-cg", "scr")
BUDGET = Budget(work=1e8, seconds=6.0)
TRAINING = Budget(work=1e6, seconds=20.0)  # of each learning rate of a PyTorch peer
REPETITIONS = 3
SLOW = 0.5  # seconds from which a method is run once
HELD = ("neyman-pearson/spambase", "neyman-pearson/madelon", "fairness/bank", "fairness/loan")
TABLE = "to the certificate"
COLD_TOL = 1e-3
LARGE = {"rows": 1_000_000, "d": 100}


def run(quick: bool) -> Report:
    """All problems, tolerances and methods."""
    names = ("neyman-pearson/breast-cancer",) if quick else PROBLEMS
    tolerances, repetitions = (TOLERANCES[:1], 1) if quick else (TOLERANCES, REPETITIONS)
    report = Report({"tolerances": list(tolerances), "repetitions": repetitions, "problems": list(names)})
    report.settings |= {"seconds_at_most": BUDGET.seconds, "peers": peers.versions()}
    everyone: tuple[Method, ...] = (*map(ours, SOLVERS), *baselines(), *peers.methods())
    everyone = everyone[:1] + everyone[-3:] if quick else everyone
    wanted = chosen([method.name for method in everyone])  # with `--only`, some of the methods
    everyone = tuple(method for method in everyone if method.name in wanted)
    for name in names:
        named, memo, beaten = problems.get(name), {}, {}
        for tol in tolerances:
            seconds = _tolerance(report, everyone, named, tol, memo, beaten, repetitions)
            _compare(report, name, tol, seconds)
        if not quick:
            _compiling(report, name)
    if not quick:
        _large(report)
    return report


def _large(report: Report):
    """A million rows of a hundred columns: the certificate beside the solve, smallest of two."""
    named = problems.get("synthetic/fairness", **LARGE)
    runs = [mescal.minimize(named.problem, named.x0, tol=COLD_TOL, cone=named.cone, seed=seed) for seed in (0, 0)]
    judged = min(run.seconds.certificate for run in runs)
    solved = min(run.seconds.total - run.seconds.compile - run.seconds.certificate for run in runs)
    report.add("auto on a million rows", tol=COLD_TOL, seconds=solved, certificate_seconds=judged, **LARGE)
    report.hold("10^6 x 100 at 0.001: seconds of the certificate to those of the solve", judged / solved, 1.0)


def _tolerance(report, everyone, named, tol, memo, beaten, repetitions) -> dict[str, tuple[str, np.ndarray]]:
    """Rows of one problem at one tolerance; kind and seconds of every method that was certified in all repetitions."""
    runs: dict[str, list[tuple[Answer, Verdict]]] = {method.name: [] for method in everyone}
    for repetition in range(repetitions):
        for method in everyone:
            mine = runs[method.name]
            slow = bool(mine) and mine[-1][0].seconds > SLOW
            if method.name in beaten or slow:
                continue
            budget = BUDGET if method.stops else TRAINING
            task = Task(named.name, named.problem, named.x0, tol, repetition, budget, named.problem, memo=memo)
            if (reason := method.declines(task)) is not None:
                beaten[method.name] = f"declined: {reason}"
                continue
            try:
                answer = method.solve(task)
                same = bool(mine) and np.array_equal(mine[-1][0].x, answer.x)
                mine.append((answer, mine[-1][1] if same else judge(task, answer)))
            except Exception as error:  # one method's failure is a row of the table, not the end of the run
                traceback.print_exc()
                beaten[method.name] = f"broke: {type(error).__name__}"
                mine.clear()
            else:
                print(
                    f"{named.name} {tol:g} {method.name}: {answer.seconds:.3f} s, {mine[-1][1].why or 'certified'}",
                    flush=True,
                )
    found = {}
    for method in everyone:
        mine = runs[method.name]
        row: dict[str, Any] = {"problem": named.name, "tol": tol, "method": method.name, "kind": method.kind}
        if not mine:
            report.add(TABLE, **row, certified="not tried", status=beaten[method.name])
            continue
        certified = sum(verdict.certified for _, verdict in mine)
        report.add(TABLE, **row, **_medians(mine, certified))
        if certified == len(mine):
            spent = [(answer.seconds, answer.details.get("certificate_seconds", 0.0)) for answer, _ in mine]
            found[method.name] = (method.kind, np.array(spent).T)
        if certified == 0:
            beaten[method.name] = f"not certified at {tol:g}"
    return found


def _medians(mine: list[tuple[Answer, Verdict]], certified: int) -> dict[str, Any]:
    middle = lambda values: float(np.median(list(values)))
    answers, verdicts = [answer for answer, _ in mine], [verdict for _, verdict in mine]
    claims = answers[-1].claims
    return {
        "certified": f"{certified}/{len(mine)}",
        "own test": "none" if claims is None else "met" if claims else "not met",
        "work": middle(answer.work for answer in answers),
        "seconds": middle(answer.seconds for answer in answers),
        "certificate_seconds": middle(answer.details.get("certificate_seconds", 0.0) for answer in answers),
        "objective": middle(verdict.objective for verdict in verdicts),
        "relative_stationarity": middle(verdict.relative_stationarity for verdict in verdicts),
        "status": answers[-1].status,
        "judge": verdicts[-1].why or "certified",
    }


def _compare(report: Report, name: str, tol: float, seconds: dict[str, tuple[str, np.ndarray]]):
    """`auto` beside the fastest peer that was certified; held to it where that is the aim."""
    others = {method: spent[0] for method, (kind, spent) in seconds.items() if kind == "peer"}
    if "auto" not in seconds or not others:
        return
    best = min(others, key=lambda method: float(np.median(others[method])))
    (mine, certificate), theirs = seconds["auto"][1], others[best]
    count = min(len(mine), len(theirs))
    factor, whole = (ratio(spent[:count], theirs[:count]) for spent in (mine, mine + certificate))
    row = {"problem": name, "tol": tol, "fastest certified peer": best, "its seconds": float(np.median(others[best]))}
    row |= {"auto_seconds": float(np.median(mine)), "ratio": factor}
    row |= {"certificate_seconds": float(np.median(certificate)), "ratio with certificate": whole}
    report.add("auto beside the fastest peer", **row)
    if tol == COLD_TOL and name in ("fairness/bank", "fairness/loan"):
        judged = float(np.median(certificate) / np.median(mine))
        report.hold(f"{name} at {tol:g}: seconds of the certificate to those of the solve", judged, 1.0)
    if name.startswith("neyman-pearson"):
        report.hold(f"{name} at {tol:g}: seconds of auto, certificate included, to those of {best}", whole, 2.0)
    if name in HELD and (tol < TOLERANCES[0] or name.startswith("neyman-pearson")):
        report.hold(f"{name} at {tol:g}: seconds of auto to those of {best}", factor, 1.0)
    if factor > 1:
        report.conclusions.append(f"On {name} at {tol:g} auto takes {factor:.2g} times the seconds of {best}.")
    elif whole > 1:
        report.conclusions.append(
            f"On {name} at {tol:g} auto is faster than {best}, but with its certificate takes {whole:.2g} times its seconds."
        )


def _compiling(report: Report, name: str):
    """Seconds of a first solve in a new process: nothing compiled before, and all of it in the cache on disk."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"MESCAL_CACHE": folder, "JAX_COMPILATION_CACHE_DIR": folder}
        row = {}
        for when in ("cold", "from cache"):
            command = [sys.executable, "-c", FIRST, name, str(COLD_TOL)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            for key, value in json.loads(done.stdout.splitlines()[-1]).items():
                row[f"{when}: {key}"] = value
    report.add(f"a first solve by auto at {COLD_TOL:g}, wall-clock seconds", problem=name, **row)


FIRST = """
import json, sys
import mescal
from mescal.kept_programs import keep_compilations
keep_compilations()
named = mescal.problems.get(sys.argv[1])
result = mescal.minimize(named.problem, named.x0, solver="auto", tol=float(sys.argv[2]))
print(json.dumps({"all": result.seconds.total, "compiling": result.seconds.compile}))
"""

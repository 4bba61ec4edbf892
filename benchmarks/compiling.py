"""CPU seconds to compile and to solve, as XLA compiles for CPUs by default and with the options that mescal sets.

Every figure is the better of two processes that took turns; seconds to compile are those of a first solve, beyond a later one
of the same problem. A later solve is the median of nine, with its certificate.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from mescal.compiling import OPTIONS

from ._measure import Report

PROBLEMS = ("neyman-pearson/spambase", "neyman-pearson/madelon", "fairness/bank", "fairness/loan")
SOLVERS = ("spider", "sg-hv-nc", "newton-cg")
TOL = 1e-3
DEFAULTS = "--xla_cpu_use_fusion_emitters=true --xla_backend_optimization_level=3"
SETTINGS = {"as XLA": {"XLA_FLAGS": DEFAULTS}, "as mescal": {}}
QUICK = ("neyman-pearson/breast-cancer",), ("spider",)

CHILD = """
import json, sys, time
import mescal
named = mescal.problems.get(sys.argv[1])
for solver in sys.argv[3].split(","):
    spent = []
    for _ in range(1 + int(sys.argv[4])):
        started = time.process_time()
        mescal.minimize(named.problem, named.x0, solver=solver, tol=float(sys.argv[2]))
        spent.append(time.process_time() - started)
    print(json.dumps([solver, spent]), flush=True)
"""


def run(quick: bool) -> Report:
    """All problems and solvers, both ways."""
    (problems, solvers), repetitions = (QUICK, 3) if quick else ((PROBLEMS, SOLVERS), 9)
    report = Report({"tol": TOL, "repetitions": repetitions, "options": dict(OPTIONS)})
    compiling, solving = [], []
    for problem in problems:
        taken: dict[str, dict[str, np.ndarray]] = {way: {} for way in SETTINGS}
        for way in (*SETTINGS, *reversed(SETTINGS)):
            for solver, spent in _child(problem, solvers, repetitions, SETTINGS[way]):
                later = float(np.median(spent[1:]))
                seconds = np.array([spent[0] - later, later])
                taken[way][solver] = np.minimum(seconds, taken[way].get(solver, seconds))
        for solver in solvers:
            slow, fast = taken["as XLA"][solver], taken["as mescal"][solver]
            row = {"problem": problem, "solver": solver}
            for k, what in enumerate(("compiling", "a later solve")):
                row |= {f"{what}, as XLA": slow[k], f"{what}, as mescal": fast[k], f"{what}, ratio": fast[k] / slow[k]}
            report.add("CPU seconds", **row)
            compiling.append(fast[0] / slow[0])
            solving.append(fast[1] / slow[1])
    report.conclusions.append(
        f"With these options compiling takes {_mean(compiling):.2f} of the time, a later solve {_mean(solving):.2f} of it "
        "(geometric means)."
    )
    report.hold("seconds to compile, with the options to without", _mean(compiling), 0.6)
    report.hold("seconds of a later solve, with the options to without", _mean(solving), 1.03)
    return report


def _mean(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def _child(problem: str, solvers: tuple[str, ...], repetitions: int, setting: dict[str, str]) -> list:
    command = [sys.executable, "-c", CHILD, problem, str(TOL), ",".join(solvers), str(repetitions)]
    dropped = ("XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR", "MESCAL_CACHE")  # nothing compiled before
    environment = {name: value for name, value in os.environ.items() if name not in dropped} | setting
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]

"""Certifying a point of 10^6 x 100 float32 rows: peak memory, and a full gradient pass against numpy.

Memory is that of a fresh process (interpreter, libraries, compiled programs and data together). The reference for time is
numpy's two matrix-vector products with the same rows in float64, converted beforehand.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import mescal
from mescal.compiling import compiled
from mescal.oracle import evaluator, look, memory

from ._measure import Report, interleave, patched, ratio
from ._problems import judge_of, neyman_pearson, normal_rows

CHUNKS = (256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 16 << 20)  # bytes of the float64 rows looked at together


def run(quick: bool) -> Report:
    """Peak memory in a child process, then times here."""
    size, d = (20_000, 20) if quick else (1_000_000, 100)
    report = Report({"rows": size, "columns": d, "type": "float32", "constraints": 1})
    for row in _child(size, d):
        report.add("memory of a fresh process, MB", **row)
    last = report.tables["memory of a fresh process, MB"][-1]
    report.hold("peak memory beyond the data, MB", last["peak"] - last["data"], 500)

    positives, negatives = normal_rows((size // 2, size - size // 2), d, np.float32)
    x = _point(d)
    judge = judge_of(neyman_pearson(positives, negatives), x)
    wide = [rows.astype(np.float64) for rows in (positives, negatives)]

    def reference():
        return [(rows @ x) @ rows for rows in wide]

    def with_chunks(size):
        # A function of its own, so that nothing compiled for another size is used.
        linearise = compiled(lambda program, data, x, _: look.linearise(program, data, x, jnp.zeros(())))

        def action():
            with patched(memory, CACHED_BYTES=size), patched(evaluator, _linearise=linearise):
                judge.at(x, rounded=False)

        return action

    seconds = interleave({"numpy": reference} | {str(size): with_chunks(size) for size in CHUNKS}, 3 if quick else 9)
    for chunk in CHUNKS:
        pair = seconds[str(chunk)], seconds["numpy"]
        report.add(
            "full gradient pass (f, c, gradient, Jacobian in float64)",
            chunk=f"{chunk >> 10:,} KiB",
            default=chunk == memory.CACHED_BYTES,
            milliseconds=1e3 * float(np.median(pair[0])),
            numpy=1e3 * float(np.median(pair[1])),
            ratio=ratio(*pair),
        )
    report.hold("full gradient pass / numpy", ratio(seconds[str(memory.CACHED_BYTES)], seconds["numpy"]), 3)
    return report


def _point(d: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=d) / np.sqrt(d)


def _child(size: int, d: int) -> list[dict]:
    command = [sys.executable, "-m", "benchmarks.certify_large", str(size), str(d)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _peak() -> float:
    """Peak resident memory in MB. getrusage would include what the parent held when it started this process."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def _stages(size: int, d: int) -> list[dict]:
    """Peak memory after each stage of a certification."""
    stages: list[dict] = []

    def note(stage: str, data: float):
        peak = _peak()
        stages.append({"after": stage, "data": data, "peak": peak, "beyond": peak - data})

    note("importing", 0.0)
    positives, negatives = normal_rows((size // 2, size - size // 2), d, np.float32)
    data = (positives.nbytes + negatives.nbytes) / 1e6
    note("making the data", data)
    problem = neyman_pearson(positives, negatives)
    note("building the problem", data)
    x = _point(d)
    judge_of(problem, x).at(x)
    note("one gradient pass", data)
    start = time.perf_counter()
    mescal.certify(problem, x, tol=0.01)
    note("certify", data)
    stages[-1]["seconds"] = time.perf_counter() - start
    return stages


if __name__ == "__main__":
    print(json.dumps(_stages(*map(int, sys.argv[1:]))))

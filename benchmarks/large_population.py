"""A population of 20 GB on disk, solved and certified within 4 GB of memory; and ways to read its rows.

The file is sparse: 64 segments, each of which begins with rows that were written; of the rest, which reads as zeros, no row
counts, by a flag that is a column. So the answer is known: the certificate of the result on the rows that count, in memory,
must say the same. Memory is the peak of a fresh process: interpreter, libraries, compiled programs and rows together.
"""

import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import numpy as np

import mescal
from mescal import E

from ._measure import Report
from .certify_large import _peak

COLUMNS = 80  # the last one is the flag, the one before it the label
SEGMENTS = 64
SHARE = 64  # one row in so many counts
SAMPLE = 8  # the solve begins where one of every so many of the rows that count, in memory, led it
LOOSE = 0.015  # the sample's tolerance; the whole is held to 0.01
GATHER = 1024  # rows of a micro-batch


def run(quick: bool) -> Report:
    """Make the file, solve and certify in a child process, and compare with the rows that count."""
    rows = 1 << (16 if quick else 26)
    report = Report({"rows": rows, "columns": COLUMNS, "type": "float32", "gigabytes": rows * COLUMNS * 4 / 1e9})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        counting = make(path, rows)
        sample = Path(folder) / "sample.npy"
        np.save(sample, counting[: len(counting) // SAMPLE])
        found = _child("solve", path, sample)
        for stage in found["stages"]:
            report.add("solve and certify: peak memory of a fresh process, MB", **stage)
        result = found["result"]
        report.add("the result", **result)
        known = _judge(problem(counting, 1.0), found["point"])
        for name, value in known.items():
            report.add("the certificate, and that of the rows that count, in memory", measure=name, **{
                "on disk": result[name], "in memory": value, "difference": abs(result[name] - value)})  # fmt: skip
        for way in ("pread", "map", "map and drop"):
            report.add(f"{GATHER} rows at random", way=way, **_child("gather", path, way))
    worst = max(abs(result[name] - value) for name, value in known.items())
    report.hold("peak memory of solve and certify, MB", found["stages"][-1]["peak"], 4000)
    report.hold("difference of the two certificates", worst, 1e-9)
    report.conclusions.append(
        f"{report.settings['gigabytes']:.1f} GB on disk: {'certified' if result['converged'] else 'NOT certified'} with a "
        f"peak of {found['stages'][-1]['peak'] / 1e3:.2f} GB."
    )
    return report


def make(path: Path, rows: int) -> np.ndarray:
    """The sparse file, and the rows of it that count."""
    stored = np.lib.format.open_memmap(path, "w+", np.float32, (rows, COLUMNS))
    rng = np.random.default_rng(0)
    normal = np.linspace(1.0, -1.0, COLUMNS - 2, dtype=np.float32)
    normal /= np.linalg.norm(normal)
    length, parts = rows // SEGMENTS, []
    for segment in range(SEGMENTS):
        part = rng.standard_normal((length // SHARE, COLUMNS), dtype=np.float32)
        noisy = part[:, :-2] @ normal + 0.5 * rng.standard_normal(len(part), dtype=np.float32)
        part[:, -2], part[:, -1] = noisy > 0.5, 1.0
        stored[segment * length : segment * length + len(part)] = part
        parts.append(part)
    stored.flush()
    return np.concatenate(parts)


def problem(rows, factor: float) -> mescal.Problem:
    """Few missed positives subject to a bound on the rate of false alarms, among the rows that count."""

    def score(w, row):
        return jax.nn.sigmoid(row[:-2] @ w["weights"] + w["bias"]) * row[-1]

    def missed(w, row):
        return row[-2] * (row[-1] - score(w, row))

    def alarm(w, row):
        return (1 - row[-2]) * score(w, row)

    over = rows if isinstance(rows, np.ndarray) else mescal.on_disk(rows)
    objective, rate = factor * E(missed, over=over), factor * E(alarm, over=over)
    return mescal.Problem(objective, {"false alarms": rate <= 0.05})


def _judge(stated: mescal.Problem, point: dict) -> dict[str, float]:
    x = {name: np.asarray(value, np.float32) for name, value in point["x"].items()}
    return _measures(mescal.certify(stated, x, point["multipliers"], slack=point["slack"], tol=0.01))


def _measures(certificate: mescal.Certificate) -> dict[str, float]:
    return {
        "stationarity": certificate.stationarity.value,
        "feasibility": certificate.feasibility.value,
        "curvature": certificate.curvature.value,
        "objective": certificate.objective.value,
    }


def _child(*arguments: object) -> dict:
    command = [sys.executable, "-m", "benchmarks.large_population", *map(str, arguments)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def solve(path: str, sample: str) -> dict:
    """Solve a sample in memory, then the whole from there; the peak memory after each stage."""
    stages, started = [], time.perf_counter()

    def note(stage: str):
        nonlocal started
        stages.append({"after": stage, "peak": _peak(), "seconds": time.perf_counter() - started})
        started = time.perf_counter()

    note("importing")
    stated = problem(path, float(SHARE))
    note("building the problem (one pass: are all numbers finite?)")
    x0 = {"weights": np.zeros(COLUMNS - 2, np.float32), "bias": np.zeros((), np.float32)}
    start = mescal.minimize(problem(np.load(sample), 1.0), x0, tol=LOOSE, seed=0)
    note("minimize a sample in memory")
    result = mescal.minimize(stated, start=start, tol=0.01, seed=0)
    note("minimize the whole, its certificate included")
    groups = {"x": result.x, "multipliers": result.multipliers, "slack": result.slack}
    point = jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), groups)
    size = stated.sources[0].size or 1
    found = {"converged": result.converged, "outer_iterations": result.outer_iterations}
    found |= {"full_passes": result.work.total / size} | _measures(result.certificate)
    return {"stages": stages, "result": found, "point": point}


def gather(path: str, way: str) -> dict:
    """Microseconds per row, and how much memory the process gained over a hundred micro-batches."""
    mapped = np.load(path, mmap_mode="r")
    rows, rng, taken = mescal.on_disk(path), np.random.default_rng(1), 0.0
    before = _resident()
    for _ in range(100):
        indices = rng.integers(0, len(mapped), GATHER)
        start = time.perf_counter()
        if way == "pread":
            rows.at(indices)
        else:
            mapped[indices]
            if way == "map and drop":
                mapped._mmap.madvise(mmap.MADV_DONTNEED)  # pyright: ignore[reportAttributeAccessIssue]
        taken += time.perf_counter() - start
    return {"microseconds_per_row": taken / (100 * GATHER) * 1e6, "gained_megabytes": _resident() - before}


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    print(json.dumps({"solve": solve, "gather": gather}[sys.argv[1]](*sys.argv[2:])))

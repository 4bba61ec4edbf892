"""The long fuzz of the judge: cases against the reference for a time, in several processes, with a corpus.

Whatever is false or crashes is stored as a file of `corpus/`, which `make test` replays; `python -m benchmarks fuzz` sums it up.
Statements on streams hold with their confidence: false ones are counted apart and compared with the share that is allowed.
"""

import gc
import hashlib
import multiprocessing
import os
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
DRAWS = 12  # of every shape: they share its programs
SHAPES = 8  # of a round, between two looks at the clock and at the memory
LARGE = 2 << 30  # bytes of a process, after which compiled programs are dropped
SAMPLES = 8192  # of a stream: one look at it, at its full confidence
NEXT_TO = 1e-9  # of a tolerance: how far beside it the reference must be to contradict


def judged(shape: Any, draw: Any) -> dict[str, Any]:
    """What the judge says of a case, and what the reference says of that."""
    import mescal

    from .cases import make, truth

    case = make(shape, draw)
    tolerance = case.tolerance
    asked = {
        "tol": tolerance,
        "cone": "critical",
        "seed": draw.seed % 2**32,
        "samples": SAMPLES if shape.stream else None,
    }
    found = mescal.certify(case.problem, case.x, case.multipliers, **asked)
    true = truth(case, found)
    limits = {"stationarity": tolerance.gradient, "feasibility": tolerance.gradient, "curvature": tolerance.curvature}
    met = {name: true[name] <= limits[name] * (1 + NEXT_TO) for name in ("stationarity", "feasibility")}
    met["curvature"] = true["curvature"] >= -limits["curvature"] * (1 + NEXT_TO)
    surely = {name: true[name] <= limits[name] * (1 - NEXT_TO) for name in ("stationarity", "feasibility")}
    surely["curvature"] = true["curvature"] >= -limits["curvature"] * (1 - NEXT_TO)
    checks = found.checks(tolerance)
    doubted = any("do not change as" in sentence for sentence in found.warnings)
    return {
        "certified": found.passes(tolerance),
        "refused": found.refuses(tolerance),
        "true": all(met.values()),
        "false": found.passes(tolerance) and not all(met.values()),
        "contradicted": [check.name for check in checks if check.refuted and surely[check.name]],
        "doubted": doubted,
        "said": {check.name: [check.measured.lower, check.measured.value, check.measured.upper] for check in checks},
        "measures": true,
        "limits": limits,
    }


def worker(number: int, seconds: float, seed: int, corpus: str) -> dict[str, Any]:
    """Rounds of cases until the time is up."""
    import hypothesis
    import jax
    import psutil
    from hypothesis import strategies as st

    from .cases import draws, shapes, stored

    ends, counts = time.monotonic() + seconds, Counter()
    failures: list[dict[str, Any]] = []

    def one(shape, draw):
        kind = "streams" if shape.stream else "finite"
        try:
            outcome = judged(shape, draw)
        except Exception as error:  # whatever it is, it is a finding
            counts[f"{kind} crashes"] += 1
            outcome = {"crash": "".join(traceback.format_exception(error))[-3000:]}
        counts[f"{kind} judged"] += 1
        for name in ("certified", "refused", "true", "false", "doubted"):
            counts[f"{kind} {name}"] += int(bool(outcome.get(name)))
        counts[f"{kind} contradicted"] += int(bool(outcome.get("contradicted")))
        if (
            "crash" in outcome
            or outcome["doubted"]
            or (not shape.stream and (outcome["false"] or outcome["contradicted"]))
        ):
            text = stored(shape, draw)
            name = hashlib.sha256(text.encode()).hexdigest()[:12]
            Path(corpus).mkdir(parents=True, exist_ok=True)
            (Path(corpus) / f"{name}.json").write_text(text + "\n", encoding="utf-8")
            failures.append({"file": f"{name}.json"} | outcome)

    turn = 0
    while time.monotonic() < ends:

        @hypothesis.seed(seed + 1_000_003 * number + turn)
        @hypothesis.settings(
            max_examples=SHAPES,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(shapes, st.lists(draws, min_size=DRAWS, max_size=DRAWS))
        def play(shape, several):
            for draw in several:
                if time.monotonic() < ends:
                    one(shape, draw)

        play()
        turn += 1
        if psutil.Process().memory_info().rss > LARGE:
            jax.clear_caches()
            gc.collect()
    return {"counts": dict(counts), "failures": failures}


def campaign(seconds: float, workers: int, seed: int, corpus: Path = CORPUS) -> dict[str, Any]:
    """Workers for a time: what they counted, and what failed."""
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    jobs = [(k, seconds, seed, str(corpus)) for k in range(workers)]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        parts = pool.starmap(worker, jobs, chunksize=1)
    return {
        "counts": dict(sum((Counter(part["counts"]) for part in parts), Counter())),
        "failures": [failure for part in parts for failure in part["failures"]],
    }

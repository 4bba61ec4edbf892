"""Runs of `minimize` in bulk: every certificate checked by a reference in 80 bits; how many are certified, how many falsely.

Small problems of eight shapes from the grammar of the fuzz (`tests/fuzz`), nonconvex and bounded below, with constraints and active
bounds; data, starts and seeds are drawn, shapes share their programs. The reference shares no code with the package.
"""

from collections import Counter
from functools import cache
from typing import Any

import jax
import numpy as np
import psutil

import mescal
from mescal import E, sets
from tests.fuzz.cases import Case, function, tilt, truth
from tests.fuzz.reference import LONG, looked, summed

from ._measure import Report
from ._spread import spread

RUNS, CHUNK = 10_000, 25  # in all, and of one shape and solver in a row
ROWS, TOLERANCE = 12, 1e-3
NEXT_TO = 1e-9  # of the tolerance: how far beside it the reference must be to contradict
LARGE = 2 << 30  # bytes of a process, after which compiled programs are dropped
SHAPES = (
    (2, ("sine", "square"), (), "reals"),
    (3, ("sine", "logarithm", "fourth"), (("<=", "square"),), "reals"),
    (2, ("tanh", "sine"), (("==", "linear"),), "box"),
    (3, ("cube", "sine"), (("<=", "softplus"), ("<=", "linear")), "box"),
    (4, ("sine", "sine", "tanh"), (("==", "sine"),), "reals"),
    (3, ("logarithm", "sine"), (), "nonnegative"),
    (2, ("exponential", "sine"), (("<=", "logarithm"), ("==", "linear")), "box"),
    (4, ("softplus", "sine", "fourth"), (("<=", "tanh"),), "nonnegative"),
)
GROWING = ("square", "fourth", "exponential", "softplus", "logarithm")
SOLVERS = tuple(name for name in mescal.solvers.names() if mescal.solvers.get(name).mode == "practical")


def run(quick: bool) -> Report:
    """All shapes and solvers in turn."""
    count = 2 * CHUNK if quick else RUNS
    pairs = [(shape, solver) for shape in range(len(SHAPES)) for solver in SOLVERS]
    jobs = [(*pairs[k % len(pairs)], k) for k in range(count // CHUNK)]
    report = Report({"runs": count, "tolerance": TOLERANCE, "solvers": list(SOLVERS), "shapes": len(SHAPES)})
    totals: dict[str, Counter] = {solver: Counter() for solver in SOLVERS}
    worst: list[str] = []
    for solver, counts, told in spread(judged_chunk, jobs):
        totals[solver] += Counter(counts)
        worst += told
    for solver, counts in totals.items():
        if counts["runs"]:
            report.add(
                "runs and what the reference says of their certificates",
                solver=solver,
                runs=counts["runs"],
                certified=counts["certified"],
                share_certified=counts["certified"] / counts["runs"],
                false=counts["false"],
                crashes=counts["crashes"],
            )
    every = sum(totals.values(), Counter())
    report.hold("false certificates", every["false"], 0)
    report.hold("crashes", every["crashes"], 0)
    share = every["certified"] / max(1, every["runs"])
    report.conclusions.append(
        f"{every['runs']:,} runs, {every['certified']:,} certified ({100 * share:.1f} %), {every['false']} falsely."
    )
    report.conclusions += worst[:20]
    return report


def judged_chunk(job: tuple[int, str, int]) -> tuple[str, dict[str, int], list[str]]:
    """Runs of one shape and solver, with data of their own each."""
    shape, solver, number = job
    counts, told = Counter(), []
    for k in range(CHUNK):
        seed = CHUNK * number + k
        try:
            certified, false, measures = judged_run(shape, solver, seed)
        except Exception as error:  # whatever it is, it is counted and named
            certified, false, measures = False, False, {}
            counts["crashes"] += 1
            told.append(f"shape {shape}, {solver}, seed {seed}: {type(error).__name__}: {error}"[:300])
        counts.update(runs=1, certified=int(certified), false=int(false))
        if false:
            told.append(f"shape {shape}, {solver}, seed {seed}: certified at {measures}")
    if psutil.Process().memory_info().rss > LARGE:
        jax.clear_caches()
    return solver, dict(counts), told


@cache
def _nothing(d: int) -> np.ndarray:
    return np.zeros((0, d), LONG)


def judged_run(shape: int, solver: str, seed: int) -> tuple[bool, bool, dict[str, float]]:
    """Whether a run is certified, whether falsely, and what the reference measures."""
    d, terms, constraints, kind = SHAPES[shape]
    rng = np.random.default_rng([shape, seed])
    data = [rng.normal(size=(ROWS, count, 2 + d)) for count in (len(terms), *(1 for _ in constraints))]
    grows = [k for k, name in enumerate(terms) if name in GROWING]
    data[0][:, grows, 0] = np.abs(data[0][:, grows, 0])  # so that f is bounded below
    tilted = np.concatenate([[rng.uniform(0.2, 2.0)], rng.normal(size=d)])
    x0 = np.abs(rng.normal(size=d)) if kind == "nonnegative" else rng.uniform(-1, 1, size=d)
    weights = np.full(ROWS, 1 / ROWS)
    levels = [
        float(looked((term,), rows, weights, x0)[0]) + (rng.uniform(-0.2, 0.3) if sign == "<=" else 0.0)
        for (sign, term), rows in zip(constraints, data[1:], strict=True)
    ]
    stated: dict[str, Any] = {}
    for j, ((sign, term), rows) in enumerate(zip(constraints, data[1:], strict=True)):
        body = E(function((term,)), over=rows)
        stated[f"c{j}"] = body == levels[j] if sign == "==" else body <= levels[j]
    low, high = np.full(d, -1.0), np.full(d, 1.5)
    domain = {"reals": sets.Reals(), "box": sets.Box(low, high), "nonnegative": sets.NonNegative()}[kind]
    problem = mescal.Problem(E(function(terms), over=data[0]) + E(tilt, over=tilted[None]), stated, domain)
    result = mescal.minimize(
        problem,
        x0,
        solver=solver,
        tol=TOLERANCE,
        seed=seed,
        max_outer=40,
        max_seconds=5,
        outer=mescal.Outer(max_inner=1000, watchdog=None),
    )
    if not result.converged:
        return False, False, {}
    x = np.asarray(result.x, np.float64)
    f, g, H = looked(terms, data[0], weights, x)
    exact, slope, q = x.astype(LONG), tilted[1:].astype(LONG), LONG(tilted[0])
    f = (
        f + slope @ exact + q * (exact @ exact) / 2,
        g + slope + q * exact,
        H + q * np.eye(d, dtype=LONG),
    )
    c = []
    for (_, term), rows, level in zip(constraints, data[1:], levels, strict=True):
        value, J, K = looked((term,), rows, weights, x)
        c.append((value - LONG(level), J, K))
    one = np.eye(d, dtype=LONG)
    floor = {"reals": np.full(d, -np.inf), "box": low, "nonnegative": np.zeros(d)}[kind]
    ceiling = high if kind == "box" else np.full(d, np.inf)
    sides = np.concatenate([-one[x <= floor], one[x >= ceiling]])
    tolerance = mescal.Tolerance(TOLERANCE, TOLERANCE)
    case = Case(
        problem, x, tolerance, None, tuple(sign for sign, _ in constraints), (f, c),
        (_nothing(d), sides, np.zeros(len(sides), LONG)),
        [summed((term,), rows, weights, x) for (_, term), rows in zip(constraints, data[1:], strict=True)],
    )  # fmt: skip
    true = truth(case, result.certificate)
    limit = TOLERANCE * (1 + NEXT_TO)
    good = true["stationarity"] <= limit and true["feasibility"] <= limit and true["curvature"] >= -limit
    return True, not good, true

"""What compiles, and what does not: ten groups beside one, problems built again, sweeps over batches, bounds and arrays.

Every figure comes from a fresh process with nothing kept: CPU seconds of a first solve, and programs compiled, as JAX counts them.
The problem is synthetic: 32,000 rows, 50 parameters, one rate per group.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from ._measure import Report, chosen

ROWS, PARAMETERS, GROUPS, TOL = 32_000, 50, 10, 1e-3
QUICK_ROWS = 2_000
SWEPT = (32, 48, 96, 128, 160)
TIMES = 3

CHILD = """
import json, sys, time
import jax, numpy as np, mescal
from mescal import E, solvers
from mescal.testing import count_compilations

what, rows, parameters, tol, swept = json.loads(sys.argv[1])


def build(groups, bound=0.6, tilt=None):
    rng = np.random.default_rng(0)
    features = (rng.normal(size=(rows, parameters)) / parameters**0.5).astype(np.float32)
    labels = (features @ rng.normal(size=parameters) + 0.1 * rng.normal(size=rows) > 0).astype(np.float32)
    group = rng.integers(0, 10, rows)
    shift = jax.numpy.zeros(()) if tilt is None else jax.numpy.asarray(tilt)
    loss = lambda w, row: jax.nn.softplus(-(2 * row[1] - 1) * (row[0] @ w))
    rate = lambda w, row: jax.nn.sigmoid(row[0] @ w + shift)
    rates = {f"group {g}": E(rate, over=(features[group == g], labels[group == g])) <= bound for g in range(groups)}
    return mescal.Problem(E(loss, over=(features, labels)), rates), np.zeros(parameters, np.float32)


def solved(problem, x0, solver):
    started, wall = time.process_time(), time.perf_counter()
    with count_compilations() as counted:
        result = mescal.minimize(problem, x0, solver=solver, tol=tol)
    assert result.converged, str(result)
    return {"cpu": time.process_time() - started, "wall": time.perf_counter() - wall, "programs": len(counted.programs)}


kind, *rest = what
if kind == "groups":
    found = [solved(*build(rest[0]), rest[1])]
elif kind == "rebuilt":
    found = [solved(*build(1), rest[0]), solved(*build(1), rest[0])]
    problem, x0 = build(1)
    found += [solved(problem, x0, rest[0]) for _ in range(3)]
elif kind == "batches":
    found = [solved(*build(1), "spider")] + [solved(*build(1), solvers.Spider(batch=batch)) for batch in swept]
elif kind == "bounds":
    found = [solved(*build(1, bound=0.5 + 0.02 * k), "spider") for k in range(10)]
else:
    found = [solved(*build(1, tilt=0.01 * k), "spider") for k in range(10)]
print(json.dumps(found))
"""


def run(quick: bool) -> Report:
    """Groups, rebuilding, and sweeps."""
    rows, times = (QUICK_ROWS, 1) if quick else (ROWS, TIMES)
    report = Report({"rows": rows, "parameters": PARAMETERS, "tol": TOL, "repetitions": times})
    names = chosen(["groups", "rebuilt", "batches", "bounds", "closed over"])
    if "groups" in names:
        for solver in ("spider", "newton-cg"):
            first = {}
            for groups in (1, GROUPS):
                taken = [_child(["groups", groups, solver], rows)[0] for _ in range(times)]
                first[groups] = min(taken, key=lambda row: row["cpu"])
                report.add("a first solve", solver=solver, groups=groups, **first[groups])
            ratio = first[GROUPS]["cpu"] / first[1]["cpu"]
            report.hold(f"{solver}: CPU seconds with ten groups to those with one", ratio, 1.5)
    if "rebuilt" in names:
        for solver in ("auto", "newton-cg", "sg-hv-nc", "natasha2"):
            found = _child(["rebuilt", solver], rows)
            again, warm = found[1], min(row["wall"] for row in found[2:])
            report.add("built again", solver=solver, programs=again["programs"], seconds=again["wall"], warm=warm)
            report.hold(f"{solver}: programs compiled for a problem built again", again["programs"], 0)
            report.hold(f"{solver}: seconds above a warm solve", again["wall"] - warm, 0.03)
    if "batches" in names:
        found = _child(["batches"], rows)
        more = sum(row["programs"] for row in found[1:])
        report.add("sweeps", over="five batches", programs=more, first=found[0]["programs"])
        report.hold("programs compiled by a sweep over five batches, beyond the first solve", more, 1)
    for name, what in (("bounds", "ten bounds"), ("closed over", "ten arrays closed over")):
        if name in names:
            found = _child([name.split()[0]], rows)
            more = sum(row["programs"] for row in found[1:])
            report.add("sweeps", over=what, programs=more, first=found[0]["programs"])
            report.hold(f"programs compiled by a sweep over {what}, beyond the first solve", more, 0)
    return report


def _child(what: list, rows: int) -> list[dict]:
    command = [sys.executable, "-c", CHILD, json.dumps([what, rows, PARAMETERS, TOL, SWEPT])]
    dropped = ("JAX_COMPILATION_CACHE_DIR", "MESCAL_CACHE")  # nothing compiled before
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])

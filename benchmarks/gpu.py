"""An accelerator: full passes as a share of its copy bandwidth, SPIDER steps by batch, compiling, beside two CPU cores.

Run by `make bench-gpu` on a machine with one. The copy bandwidth, bytes read and written, is measured in the same run on an
array of the data's size. A full pass has to read every row once; where rows leave the cache between the product with x and
the one with the residuals, they are read twice, so both shares are given.

Copies and passes are timed ten in a row, asked for without waiting, so that the device never idles: what it does. One pass, from
the call to its result, takes a launch more, which is the host's: given beside, it counts where passes are few or rows are.
"""

import os
import subprocess
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal.oracle import look, memory
from mescal.solvers import Spider
from mescal.solvers.base import Goal, Memory

from ._measure import Report, patched
from ._problems import lagrangian_of, neyman_pearson, seen_at

ROWS, D = 1 << 20, 512
CHUNKS = (8 << 20, 32 << 20, 128 << 20, 512 << 20, 1 << 40)
BATCHES = (256, 1024, 4096, 16_384, 65_536)
STEPS = 64
TOGETHER = 10
PASS = "full gradient pass, as it is by default: a kernel that reads rows once"
SOLVES = "whole runs at tolerance 0.01, 262,144 rows"
JUDGE = "the judge beside the solve"
SHARE, COMPILING = 0.8, 8.0  # targets: of the copy bandwidth by a full pass; seconds of compiling in a run


def run(quick: bool) -> Report:
    """Everything on this device, then the pass and the steps again on two cores of its host."""
    rows, repetitions = (1 << 14, 3) if quick else (ROWS, 30)
    device = jax.devices()[0]
    report = Report({"rows": rows, "d": D, "device": device.device_kind, "platform": device.platform, "steps": STEPS})
    problem, x = made(rows)
    oracle, z = lagrangian_of(problem, x)
    size = 4 * rows * D
    bandwidth = copy_bandwidth(size, repetitions)
    default = memory.chunk_bytes()
    for chunk in dict.fromkeys((*CHUNKS, default)):
        with patched(look, chunk_bytes=lambda chunk=chunk: chunk, score_sums=lambda *_: None):
            seconds = pass_seconds(oracle, z, repetitions)
        share = size / seconds / bandwidth
        report.add(
            "full gradient pass without that kernel, by bytes of the rows looked at together",
            chunk="all rows" if chunk > size else f"{chunk >> 20} MiB",
            ms=1e3 * seconds,
            gigabytes_per_s=size / seconds / 1e9,
            share_of_copy_bandwidth_rows_read_once=share,
            share_rows_read_twice=2 * share,
        )
    seconds = pass_seconds(oracle, z, repetitions)
    report.add(
        PASS,
        ms=1e3 * seconds,
        gigabytes_per_s=size / seconds / 1e9,
        share_of_copy_bandwidth=size / seconds / bandwidth,
        ms_of_one_that_is_waited_for=1e3 * pass_seconds(oracle, z, repetitions, together=1),
        largest_difference_to_the_ordinary_pass=difference(oracle, z),
    )
    report.settings["copy_bandwidth_gb_per_s"] = bandwidth / 1e9
    for batch in BATCHES:
        seconds = step_seconds(problem, x, batch, max(3, repetitions // 3))
        report.add(
            "SPIDER steps",
            batch=batch,
            microseconds_per_step=1e6 * seconds,
            nanoseconds_per_sample_gradient=1e9 * seconds / (2 * batch),
        )
    solves(report, quick)
    certificates(report, quick)
    if not quick and device.platform != "cpu":
        report.tables["two CPU cores of the same machine"] = on_two_cores()
    hold(report)
    return report


def hold(report: Report):
    """The targets, of what the tables say."""
    for row in report.tables[PASS]:
        over = "full pass: seconds over those of a copy's bandwidth, rows read once"
        report.hold(over, 1 / row["share_of_copy_bandwidth"], 1 / SHARE)
    for row in report.tables[SOLVES]:
        report.hold(f"seconds of compiling, {row['solver']}", row["seconds_compiling"], COMPILING)
    for row in (row for title, rows in report.tables.items() if title.startswith(JUDGE) for row in rows):
        report.hold(f"certificate over solve at {row['tolerance']}", row["ratio"], 1.0)


def difference(oracle: Any, z: jax.Array) -> float:
    """Between the gradients of both ways, over the size of one."""
    kernel = jax.jit(lambda oracle, z: oracle.exact(z)[0].gradient)(oracle, z)
    with patched(look, score_sums=lambda *_: None):
        ordinary = jax.jit(lambda oracle, z: oracle.exact(z)[0].gradient)(oracle, z)
    return float(jnp.max(jnp.abs(kernel - ordinary)) / jnp.max(jnp.abs(ordinary)))


def made(rows: int) -> tuple[mescal.Problem, np.ndarray]:
    """Half the rows positive, half negative, of means that differ a little."""
    key = jax.random.key(0)
    data = jax.random.normal(key, (rows, D), jnp.float32)
    shift = jnp.where(jnp.arange(D) < D // 8, 0.25, 0.0).astype(jnp.float32)
    half = rows // 2
    return neyman_pearson(data[:half] + shift, data[half:] - shift), np.full(D, 0.01, np.float32)  # pyright: ignore[reportArgumentType]


def copy_bandwidth(size: int, repetitions: int) -> float:
    """Bytes read and written per second."""
    source = jnp.ones(size // 4, jnp.float32)
    copy = jax.jit(lambda a: a + 1)
    return 2 * size / in_a_row(lambda: copy(source), repetitions)


def pass_seconds(oracle: Any, z: jax.Array, repetitions: int, together: int = TOGETHER) -> float:
    """Of the exact value and gradient of the augmented Lagrangian."""
    program = jax.jit(lambda oracle, z: oracle.exact(z)[0].gradient)
    return in_a_row(lambda: program(oracle, z), repetitions, together)


def step_seconds(problem: mescal.Problem, x: np.ndarray, batch: int, repetitions: int) -> float:
    """Of one SPIDER step: two gradients of one batch, and the move."""
    oracle, z = lagrangian_of(problem, x)
    oracle = type(oracle)(
        oracle.form, oracle.data, oracle.multipliers, oracle.penalty, oracle.surrogate, memory.micro_batch(12 * D)
    )
    solver = Spider(batch=batch, period=STEPS)
    target = solver.plan(Goal(0.0, 0.0, STEPS, oracle.population, 0, 1), z.dtype)
    high = jnp.asarray(1e3, z.dtype)
    kept = Memory(smoothness=high, floor=high, trust=jnp.ones((), z.dtype))

    @jax.jit
    def epoch(oracle, reset, key):
        inner = solver.recurse(oracle, reset, kept, target, key, jnp.int32(STEPS))
        return inner.z, inner.steps

    reset = seen_at(oracle, z)
    key = jax.random.key(0, impl="threefry2x32")
    return fastest(lambda: jax.block_until_ready(epoch(oracle, reset, key)), repetitions) / STEPS


def solves(report: Report, quick: bool):
    """Whole runs, unchanged, to a certificate."""
    for solver in ("spider",) if quick else ("spider", "newton-cg", "sg-hv-nc"):
        problem, x = made((1 << 12) if quick else (1 << 18))
        first = mescal.minimize(problem, 0 * x, solver=solver, tol=0.01, seed=0)
        second = mescal.minimize(problem, 0 * x, solver=solver, tol=0.01, seed=0)
        report.add(
            SOLVES,
            solver=solver,
            status=first.status.name.lower(),
            objective=first.objective,
            evaluations=first.work.total,
            seconds_compiling=first.seconds.compile,
            seconds_of_a_second_run=second.seconds.total,
            of_which_certificate=second.seconds.certificate,
            same_bits="yes" if np.array_equal(first.x, second.x) else "no",
        )


def certificates(report: Report, quick: bool):
    """What the judge takes beside the solve, on rows that stay where they are."""
    rows, width = (1 << 12, 16) if quick else (1 << 21, 256)
    keys = jax.random.split(jax.random.key(1), 2)
    shift = jnp.where(jnp.arange(width) < width // 8, 0.25, 0.0).astype(jnp.float32)
    positives, negatives = (
        jax.random.normal(key, (rows, width), jnp.float32) + way * shift for key, way in zip(keys, (1, -1), strict=True)
    )
    problem = neyman_pearson(positives, negatives)  # pyright: ignore[reportArgumentType]
    for tol in (0.01, 0.001):
        first, second = (mescal.minimize(problem, np.zeros(width, np.float32), tol=tol) for _ in range(2))
        judge = second.seconds.certificate
        solve = second.seconds.total - judge
        report.add(
            f"{JUDGE}, 2 x {rows:,} rows of {width}",
            tolerance=tol,
            status=second.status.name.lower(),
            solver=second.solver,
            seconds_compiling=first.seconds.compile,
            seconds_solving=solve,
            seconds_certificate=judge,
            ratio=judge / solve,
        )


def on_two_cores() -> list[dict[str, Any]]:
    """The pass and the steps on two cores, in a process that sees no accelerator."""
    command = ["taskset", "-c", "0,1", sys.executable, "-m", "benchmarks.gpu"]
    seen = subprocess.run(
        command, env=os.environ | {"JAX_PLATFORMS": "cpu"}, capture_output=True, text=True, check=True
    )
    rows = [line.split("\t") for line in seen.stdout.splitlines() if "\t" in line]
    return [{"what": what, "value": float(value)} for what, value in rows]


def in_a_row(action: Any, repetitions: int, together: int = TOGETHER) -> float:
    """Seconds of a call, of several that are asked for without waiting for any."""
    return fastest(lambda: jax.block_until_ready([action() for _ in range(together)]), repetitions) / together


def fastest(action: Any, repetitions: int) -> float:
    """Seconds of the fastest of several calls, after one that compiles: nothing else runs on the device."""
    action()
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    here, start = made(ROWS)
    print(f"full pass, ms\t{1e3 * pass_seconds(*lagrangian_of(here, start), 3)}")
    for size in BATCHES:
        print(
            f"SPIDER, batch {size}, nanoseconds per sample gradient\t{1e9 * step_seconds(here, start, size, 3) / (2 * size)}"
        )

"""Runs that are killed, at any moment and also while they write, and started again: the end is the same, bit for bit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import psutil
import pytest

import mescal
from mescal import E

KILLS = 50
SCRIPT = """
import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal import E
from mescal.run import checkpoint
from mescal.solvers import Spider

jax.config.update("jax_compilation_cache_dir", sys.argv[2])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
Spider.chunk = 1  # many boundaries
folder, pause = Path(sys.argv[1]), float(sys.argv[3])
flush = os.fsync


def slow_disk(descriptor):
    time.sleep(pause)
    flush(descriptor)


os.fsync = slow_disk
rows = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32) + np.float32(0.5)
loss = lambda x, row: jnp.logaddexp(0.0, -row @ x) + 0.01 * x @ x
problem = mescal.Problem(E(loss, over=rows), {"circle": E(lambda x: x @ x) == 1.0})
print("solving", flush=True)
if checkpoint.files(folder):
    result = mescal.resume(folder, problem)
else:
    x0 = np.array([2.0, -1.0, 0.5], np.float32)
    result = mescal.minimize(problem, x0, solver="spider", tol=1e-5, seed=3, checkpoint=mescal.Checkpoint(folder, seconds=0.0))
history = [[row.work, row.objective, row.penalty, *row.multipliers] for row in result.history]
print(result.status.name, np.asarray(result.x).tobytes().hex(), repr(history), sorted(result.work.solver.counts.items()))
"""


def started(folder: Path, cache: Path, pause: float = 0.0) -> subprocess.Popen:
    command = [sys.executable, "-c", SCRIPT, str(folder), str(cache), str(pause)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "solving\n"
    return process


def said(process: subprocess.Popen) -> str:
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    return out.splitlines()[-1]


def first_checkpoint(folder: Path, process: subprocess.Popen):
    """Wait for it, or for the end."""
    while process.poll() is None and not (folder.exists() and os.listdir(folder)):
        time.sleep(0.005)


@pytest.mark.slow
def test_fifty_runs_killed_at_random_times(tmp_path):
    """At times uniform from the start of a run, or from its first checkpoint, to its end; half of them on a slow disk, where
    most of the time is spent writing checkpoints.
    """
    cache = tmp_path / "compiled"
    whole = said(started(tmp_path / "whole", cache))
    assert whole.startswith("CERTIFIED")
    rng = np.random.default_rng(0)
    lengths, kept, in_writing = {}, 0, 0
    for number in range(KILLS):
        pause, late = (0.0, 0.05)[number % 2], number % 5 > 0
        if (pause, late) not in lengths:
            process = started(tmp_path / f"timed-{number}", cache, pause)
            if late:
                first_checkpoint(tmp_path / f"timed-{number}", process)
            begun = time.monotonic()
            assert said(process) == whole
            lengths[pause, late] = time.monotonic() - begun
        folder = tmp_path / str(number)
        process = started(folder, cache, pause)
        if late:
            first_checkpoint(folder, process)
        time.sleep(rng.uniform(0, lengths[pause, late]))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        names = os.listdir(folder) if folder.exists() else []
        kept += any(name.endswith(".checkpoint") for name in names)
        in_writing += any(name.endswith(".part") for name in names)
        assert said(started(folder, cache)) == whole, number
    print(f"{KILLS} killed, {kept} had checkpoints, {in_writing} were killed while writing one")
    assert kept >= KILLS // 2 and in_writing >= KILLS // 10, "killed too early or too late: little was tested"


ROWS = np.random.default_rng(1).normal(size=(64, 3)).astype(np.float32)


@pytest.mark.slow
def test_two_hundred_outer_iterations_without_growth():
    """Of compilations, and of memory: at most 16 MB between the 20th and the 200th."""
    problem = mescal.Problem(
        E(lambda x, a: jax.nn.softplus(a @ x) + 0.1 * x @ x, over=ROWS), {"sum": E(lambda x: jnp.sum(x)) == 1.0}
    )
    x0 = np.zeros(3, np.float32)
    settings = {"solver": "spider", "tol": 1e-12, "outer": mescal.Outer(max_inner=8, growth=1.0001)}
    mescal.minimize(problem, x0, max_outer=3, **settings)
    memory, process = {}, psutil.Process()

    def look(row):
        if row.outer in (20, 199):
            memory[row.outer] = process.memory_info().rss

    result = mescal.minimize(problem, x0, max_outer=200, progress=look, **settings)
    assert result.outer_iterations == 200 and result.seconds.compile == 0
    assert memory[199] - memory[20] < 16 << 20

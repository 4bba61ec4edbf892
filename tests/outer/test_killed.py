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
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mescal
from mescal import E
from mescal.outer import checkpoint
from mescal.solvers import Spider

jax.config.update("jax_compilation_cache_dir", sys.argv[2])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
Spider.chunk = 1  # many boundaries
folder = Path(sys.argv[1])
rows = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32) + np.float32(0.5)
loss = lambda x, row: jnp.logaddexp(0.0, -row @ x) + 0.01 * x @ x
problem = mescal.Problem(E(loss, over=rows), {"circle": E(lambda x: x @ x) == 1.0})
print("solving", flush=True)
if checkpoint.files(folder):
    result = mescal.resume(folder, problem)
else:
    x0 = np.array([2.0, -1.0, 0.5], np.float32)
    result = mescal.minimize(problem, x0, solver="spider", tol=1e-5, seed=3, checkpoint=folder, checkpoint_seconds=0.0)
history = [[row.work, row.objective, row.penalty, *row.multipliers] for row in result.history]
print(result.status.name, np.asarray(result.x).tobytes().hex(), repr(history), sorted(result.work.solver.counts.items()))
"""


def started(folder: Path, cache: Path) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder), str(cache)], stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen) -> str:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return out.splitlines()[-1]


@pytest.mark.slow
def test_fifty_runs_killed_at_random_times(tmp_path):
    """Times are uniform from the start of the solve to its end, of which checkpoints, one per epoch, take a large part."""
    cache = tmp_path / "compiled"
    whole = said(started(tmp_path / "whole", cache))
    assert whole.startswith("CERTIFIED")
    process = started(tmp_path / "timed", cache)
    process.stdout.readline()  # pyright: ignore[reportOptionalMemberAccess]
    begun = time.monotonic()
    assert said(process) == whole
    length = time.monotonic() - begun
    rng = np.random.default_rng(0)
    kept, in_writing = 0, 0
    for number in range(KILLS):
        folder = tmp_path / str(number)
        process = started(folder, cache)
        process.stdout.readline()  # pyright: ignore[reportOptionalMemberAccess]
        time.sleep(rng.uniform(0, length))
        process.send_signal(signal.SIGKILL)
        process.wait()
        names = os.listdir(folder) if folder.exists() else []
        kept += any(name.endswith(".checkpoint") for name in names)
        in_writing += any(name.endswith(".part") for name in names)
        assert said(started(folder, cache)) == whole, number
    print(f"{KILLS} killed, {kept} had checkpoints, {in_writing} were killed while writing one")
    assert kept >= KILLS // 5, "killed before they had begun: nothing was tested"


ROWS = np.random.default_rng(1).normal(size=(64, 3)).astype(np.float32)


@pytest.mark.slow
def test_two_hundred_outer_iterations_without_growth():
    """Of compilations, and of memory: at most 16 MB between the 20th and the 200th."""
    problem = mescal.Problem(
        E(lambda x, a: jax.nn.softplus(a @ x) + 0.1 * x @ x, over=ROWS), {"sum": E(lambda x: jnp.sum(x)) == 1.0}
    )
    x0 = np.zeros(3, np.float32)
    settings = {"solver": "spider", "tol": 1e-12, "max_inner": 8, "growth": 1.0001}
    mescal.minimize(problem, x0, max_outer=3, **settings)
    memory, process = {}, psutil.Process()

    def look(row):
        if row.outer in (20, 199):
            memory[row.outer] = process.memory_info().rss

    result = mescal.minimize(problem, x0, max_outer=200, progress=look, **settings)
    assert result.outer_iterations == 200 and result.seconds.compile == 0
    assert memory[199] - memory[20] < 16 << 20

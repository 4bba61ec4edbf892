"""Several processes over the loopback: the estimates and certificates of one, and a launcher that says who died and why."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from mescal.launch import HEARTBEAT

ROOT = Path(__file__).parents[2]
TOGETHER = str(ROOT / "tests" / "devices" / "several_processes.py")


def launched(processes: int, *script: str, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mescal.launch", "-n", str(processes), *script]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    surroundings = os.environ | {"PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"}
    return subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=timeout)


@pytest.mark.parametrize(
    ("ending", "code", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, "process 1 of 2 was killed by signal 9 (SIGKILL)"),
        ("raise ValueError('no rows')", 1, "process 1 of 2 ended with exit code 1: ValueError: no rows"),
    ],
)
def test_when_a_process_dies_the_others_are_stopped_and_the_launcher_says_why(tmp_path, ending, code, words):
    """The other process would sleep for an hour."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal, time, jax\n"
        "assert jax.process_count() == 2\n"
        f"if jax.process_index() == 1:\n    {ending}\n"
        "time.sleep(3600)\n"
    )
    begun = time.monotonic()
    done = launched(2, str(script), timeout=110)
    assert time.monotonic() - begun < 110
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "The others were stopped" in done.stderr


def test_a_script_that_is_not_there_is_refused():
    done = launched(2, "missing.py", timeout=60)
    assert done.returncode == 2
    assert "no script named missing.py" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_estimates_and_certificates_are_those_of_one_process(processes):
    """Rows that a key names are the same bits; float32 sums over other groupings differ by rounding: see test_eight_devices."""
    done = launched(processes, TOGETHER, "estimates")
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["processes"] == processes
    assert len(found["rows"]) >= 4 and all(found["rows"])
    assert all(error <= 1e-5 for error in found["errors"].values()), found["errors"]
    assert set(found["collectives"]) <= {"all-reduce", "reduce-scatter"}
    assert found["sharded"] == pytest.approx(found["plain"], rel=1e-9, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_a_run_goes_on_after_one_process_was_killed(tmp_path, processes):
    """What is carried on is what an uninterrupted run finds, bit for bit, in every process."""
    folder = str(tmp_path / "run")
    killed = launched(processes, TOGETHER, "solve", folder, "kill")
    assert killed.returncode == 137, killed.stderr[-3000:]
    assert f"process 1 of {processes} was killed by signal 9" in killed.stderr
    resumed = launched(processes, TOGETHER, "solve", folder, "resume")
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    whole = launched(processes, TOGETHER, "solve", str(tmp_path / "other"), "whole")
    carried, expected = (json.loads(done.stdout.splitlines()[-1]) for done in (resumed, whole))
    assert carried["converged"] and carried["results"] == 1 and carried == expected


@pytest.mark.slow
def test_a_process_ends_by_itself_where_its_launcher_and_a_peer_were_killed(tmp_path):
    """Nobody stops it then: JAX does, once the peer has not answered for `HEARTBEAT` seconds. It would sleep for an hour."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys, time, jax\n"
        "with open(f'{sys.argv[1]}/{jax.process_index()}.part', 'w') as file:\n"
        "    file.write(str(os.getpid()))\n"
        "os.rename(file.name, file.name.replace('.part', '.pid'))\n"
        "time.sleep(3600)\n"
    )
    command = [sys.executable, "-m", "mescal.launch", "-n", "2", str(script), str(tmp_path)]
    launcher = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"JAX_PLATFORMS": "cpu"}, stderr=subprocess.DEVNULL)
    files = [tmp_path / f"{number}.pid" for number in range(2)]
    wait_until(lambda: all(file.exists() for file in files), 120)
    survivor, peer = (psutil.Process(int(file.read_text())) for file in files)
    launcher.kill()
    launcher.wait()
    peer.kill()
    try:
        wait_until(lambda: not survivor.is_running() or survivor.status() == psutil.STATUS_ZOMBIE, 3 * HEARTBEAT)
    finally:
        if survivor.is_running():
            survivor.kill()


def wait_until(holds, seconds: float):
    """Look until it holds; an error if it does not in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.1)

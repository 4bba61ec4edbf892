"""Several processes over the loopback: the estimates and certificates of one, and a launcher that says who died and why."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
    """Float32 sums over other groupings differ by rounding: see test_eight_devices."""
    done = launched(processes, TOGETHER, "estimates")
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["processes"] == processes
    assert all(error <= 1e-5 for error in found["errors"].values()), found["errors"]
    assert set(found["collectives"]) <= {"all-reduce", "reduce-scatter"}
    assert found["sharded"] == pytest.approx(found["plain"], rel=1e-9, abs=1e-12)


@pytest.mark.slow
def test_a_run_goes_on_after_one_process_was_killed(tmp_path):
    folder = str(tmp_path / "run")
    killed = launched(2, TOGETHER, "solve", folder, "kill")
    assert killed.returncode == 137, killed.stderr[-3000:]
    assert "process 1 of 2 was killed by signal 9" in killed.stderr
    resumed = launched(2, TOGETHER, "solve", folder, "resume")
    assert resumed.returncode == 0, resumed.stderr[-3000:]
    whole = launched(2, TOGETHER, "solve", str(tmp_path / "other"), "whole")
    carried, expected = (json.loads(done.stdout.splitlines()[-1]) for done in (resumed, whole))
    assert carried["converged"] and carried == expected

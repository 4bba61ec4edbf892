"""The command as a process of its own: the script, the module, interruption, the cache on the disk, missing extras."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mescal.distribution import install

COMMAND = [sys.executable, "-m", "mescal"]
TINY = ["solve", "saddles/circle", "--set", "sigma=0", "--tol", "0.05", "--json"]


@pytest.fixture
def environment(tmp_path):
    return {k: v for k, v in os.environ.items() if not k.startswith("JAX_")} | {"MESCAL_CACHE": str(tmp_path / "cache")}


def call(arguments, environment, folder):
    return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def test_a_second_process_compiles_nothing_anew(environment, tmp_path):
    """What the first compiled is read from the cache: no new file there, and the same run bit for bit."""
    first = call([*COMMAND, *TINY, "--out", "a"], environment, tmp_path)
    assert first.returncode == 0, first.stderr
    compiled = {path for path in (tmp_path / "cache" / "compiled").iterdir() if path.name.endswith("-cache")}
    assert compiled
    second = call([*COMMAND, *TINY, "--out", "b"], environment, tmp_path)
    assert second.returncode == 0 and second.stderr == ""
    assert {path for path in (tmp_path / "cache" / "compiled").iterdir() if path.name.endswith("-cache")} == compiled
    one, two = (json.loads(run.stdout) for run in (first, second))
    assert one["seconds"]["compile"] > two["seconds"]["compile"]
    assert one["work"] == two["work"] and one["objective"] == two["objective"]


def test_ctrl_c_leaves_with_130(environment, tmp_path):
    """Sent while the first program compiles, where it is hardest to leave in good order; no chunk ends with a certificate."""
    process = subprocess.Popen(
        [*COMMAND, *TINY, "--tol", "1e-12", "--out", "r"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "r" / "config.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert (tmp_path / "r" / "config.json").exists()


def test_the_script_is_installed_beside_python(environment, tmp_path):
    script = Path(sys.executable).with_name("mescal")
    if not script.exists():
        pytest.skip("mescal was not installed with its script")
    assert call([str(script), "--version"], environment, tmp_path).stdout.startswith("mescal ")


def test_the_library_imports_no_part_of_the_command_line():
    code = "import sys, mescal; print([m for m in ('typer', 'rich', 'joblib', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_missing_extra_is_explained():
    code = "import sys; sys.modules['typer'] = None; from mescal.cli import main; sys.exit(main())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1 and "typer" in run.stderr and install("cli") in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.slow
def test_the_demonstration(tmp_path, environment):
    run = call([sys.executable, "-m", "mescal.demo"], environment, tmp_path)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "runs" / "demo" / "report.html").stat().st_size > 0
    assert (
        run.stdout.count("CERTIFIED") == 3
        and "runs/demo/report.html" in run.stdout
        and "refuses the start" in run.stdout
    )

"""The benchmarks are found, run, and leave JSON that says on what machine and with what settings."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import names

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
NAMES = (
    "ablation",
    "auto",
    "certify_large",
    "curvature_dense",
    "estimators",
    "large_population",
    "oracle_gradient",
    "rates",
    "solvers",
    "steps",
    "surrogates",
)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_every_benchmark_is_listed_with_what_it_measures():
    done = run("--list")
    assert done.returncode == 0, done.stderr
    listed = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert set(NAMES) <= set(listed)
    assert all(len(sentence) > 20 for sentence in listed.values())


@pytest.mark.parametrize("part", ["3/2", "0/1", "half"])
def test_a_part_that_is_none_is_refused(part):
    done = run("curvature_dense", "--quick", "--part", part)
    assert done.returncode == 2
    assert f"--part {part}" in done.stderr


def test_an_unknown_name_is_refused():
    done = run("nothing")
    assert done.returncode == 2
    assert "no benchmark named nothing" in done.stderr


def test_a_quick_run_stores_what_is_needed_to_read_it(tmp_path):
    done = run("curvature_dense", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "directions" in done.stdout
    result = json.loads((tmp_path / "curvature_dense.json").read_text())
    assert result["benchmark"] == "curvature_dense" and result["quick"] is True
    assert {"cores", "memory_gb", "processor"} <= set(result["machine"])
    assert {"python", "jax", "numpy", "mescal"} <= set(result["versions"])
    assert result["settings"]["cases"] and result["date"] and result["threads"] == 1
    assert all(row["ratio"] > 0 for rows in result["tables"].values() for row in rows)


def test_what_compares_with_peers_is_listed():
    assert {"paper", "growth", "noisy_cutest", "bias"} <= set(names())


@pytest.mark.parametrize("name", [name for name in names() if name in NAMES or (RESULTS / f"{name}.json").exists()])
def test_stored_results_are_of_full_runs(name):
    result = json.loads((RESULTS / f"{name}.json").read_text())
    assert result["benchmark"] == name and result["quick"] is False
    assert result["tables"] and result["settings"]

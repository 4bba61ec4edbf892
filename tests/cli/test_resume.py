"""`mescal resume`: from checkpoints, with larger budgets, after signals; in this process, so that compilations are shared."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import mescal as library
from mescal.solvers import Spider


@pytest.fixture
def hard(monkeypatch) -> list[str]:
    """A problem of several outer iterations, looked at after every epoch."""
    monkeypatch.setattr(Spider, "chunk", 1)
    return ["hock-schittkowski/7", "--set", "sigma=0", "--tol", "1e-4", "--solver", "spider", "--seed", "2"]


def result(folder: str) -> dict:
    content = json.loads(Path(folder, "result.json").read_text(encoding="utf-8"))
    return {key: value for key, value in content.items() if key not in ("seconds", "finished", "options")}


def equal(first: str, second: str) -> bool:
    same = np.array_equal(np.load(f"{first}/solution.npz")["x"], np.load(f"{second}/solution.npz")["x"])
    a, b = result(first), result(second)
    return same and all(a[key] == b[key] for key in ("status", "work", "objective", "outer_iterations", "multipliers"))


def test_a_larger_budget_carries_a_run_on(mescal, hard):
    assert mescal("solve", *hard, "--out", "whole", "-q").exit_code == 0
    work = result("whole")["work"]["total"]
    assert mescal("solve", *hard, "--out", "r", "-q", "--max-work", work / 2).exit_code == 1
    assert result("r")["status"] == "work_limit" and any(Path("r/checkpoint").iterdir())
    shown = mescal("resume", "r", "-q")
    assert shown.exit_code == 1 and "has come to its end" in shown.stdout
    assert mescal("resume", "r", "-q", "--max-work", 1e9).exit_code == 0
    assert equal("whole", "r") and not Path("r/checkpoint").exists()
    assert json.loads(Path("r/config.json").read_text(encoding="utf-8"))["max_work"] == 1e9


def test_sigterm_leaves_a_run_that_can_be_carried_on(mescal, hard, monkeypatch):
    assert mescal("solve", *hard, "--out", "whole", "-q").exit_code == 0
    rows = []

    def send(self, row):
        rows.append(row)
        if len(rows) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr("mescal.cli.progress.Progress.__call__", send)
        stopped = mescal("solve", *hard, "--out", "r", "-q")
    assert stopped.exit_code == 130 and "mescal resume r carries it on" in stopped.stderr
    assert mescal("resume", "r", "-q").exit_code == 0 and equal("whole", "r")


def test_a_folder_is_carried_on_from_python(mescal, hard):
    assert mescal("solve", *hard, "--out", "r", "-q", "--max-outer", "1").exit_code == 1
    resumed = library.resume("r", max_outer=100)
    assert resumed.converged and resumed.solver == "spider"


def test_a_wrong_limit_is_refused(mescal, hard):
    mescal("solve", *hard, "--out", "r", "-q", "--max-outer", "1")
    wrong = mescal("resume", "r", "--max-work", "-5")
    assert wrong.exit_code == 2 and "max_work" in wrong.stderr

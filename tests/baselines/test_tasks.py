"""Baselines as tasks of the command line: run folders like any other, and nothing left behind by what they decline."""

import pytest

from mescal import Status, baselines
from mescal.experiments import run, task
from mescal.experiments.task import method


def test_a_run_folder_like_any_other(tmp_path):
    asked = task(
        "saddles/circle", parameters={"sigma": 0.0}, solver="stoch-sqp", max_outer=3, record="exact", max_work=1e6
    )
    stored = run(asked, tmp_path / "a")
    assert stored.result is not None and stored.result.solver == "stoch-sqp"
    assert stored.result.status is Status.OUTER_LIMIT and not stored.converged
    assert stored.result.outer_iterations == 3
    again = run(asked, tmp_path / "a")
    assert again.result is not None and again.result.seconds == stored.result.seconds
    header, start, *rows = (tmp_path / "a" / "history.csv").read_text(encoding="utf-8").splitlines()
    assert "exact:curvature" in header and start.startswith("-1,") and len(rows) == 3
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "config.json", "history.csv", "result.json", "solution.npz",
    ]  # fmt: skip


def test_what_is_declined_leaves_no_folder(tmp_path):
    asked = task("saddles/circle", parameters={"sigma": 0.0}, solver="conex")
    with pytest.raises(baselines.OutOfClass, match="equality 'circle'"):
        run(asked, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_options_are_those_of_the_baseline():
    assert method("conex", {"batch": 32}) == baselines.ConEx(batch=32)
    assert method("spider", {}).name == "spider"

"""`solve`, `resume` and `certify`: what they leave, what they print, and how they exit."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from mescal import Outer, Tolerance

OWN = """
import numpy as np
import mescal
from mescal import E


def make(center=1.0):
    return mescal.Problem(E(lambda x: (x[0] - center) ** 2)), np.zeros(1, np.float32)
"""


def test_solve_leaves_a_run_and_says_the_verdict(mescal, tiny, tmp_path):
    result = mescal("solve", *tiny, "--seed", 1, "--out", "r")
    assert result.exit_code == 0
    assert sorted(p.name for p in (tmp_path / "r").iterdir()) == [
        "config.json",
        "history.csv",
        "result.json",
        "solution.npz",
    ]
    assert "CERTIFIED" in result.stdout and "NOT CERTIFIED" not in result.stdout
    assert "saddles/circle,sigma=0.0 with spider, seed 1" in result.stdout and "circle:" in result.stdout
    assert "outer   1  work" in result.stderr and "stationarity" in result.stderr


def test_json_is_the_result_and_nothing_else(mescal, tiny):
    result = mescal("solve", *tiny, "--out", "r", "--json")
    content = json.loads(result.stdout)
    assert result.stderr == "" and content["converged"] is True and content["run"] == "r"
    assert content == json.loads(Path("r/result.json").read_text(encoding="utf-8")) | {"run": "r"}


def test_several_starts(mescal, tiny, tmp_path):
    """The best of them is stored, with how all came out; without checkpoints, and into a folder that says so."""
    result = mescal("solve", *tiny, "--starts", 3, "--json")
    content = json.loads(result.stdout)
    assert result.exit_code == 0 and len(content["spread"]["tried"]) == 3 == content["spread"]["asked"]
    assert "seed=0,starts=3" in content["run"] and not (tmp_path / content["run"] / "checkpoint").exists()
    assert content["work"]["total"] == pytest.approx(sum(one["work"] for one in content["spread"]["tried"]))
    shown = " ".join(mescal("solve", *tiny, "--starts", 3).stdout.split())
    assert "best of 3 starts" in shown and "stored already" in shown
    assert mescal("solve", *tiny, "--starts", 0, "-q").exit_code == 2
    assert mescal("solve", "saddles/circle", "--solver", "stoch-ialm", "--starts", 2, "-q").exit_code == 2


def test_quiet_shows_no_progress(mescal, tiny):
    assert mescal("solve", *tiny, "--out", "r", "-q").stderr == ""


def test_the_default_folder_names_the_task(mescal, tiny):
    assert mescal("solve", *tiny, "-q").exit_code == 0
    assert Path("runs/saddles/circle,sigma=0.0/spider/tol=0.05/seed=0/result.json").is_file()


def test_the_same_run_is_shown_and_not_run_again(mescal, tiny):
    mescal("solve", *tiny, "--out", "r", "-q")
    before = Path("r/result.json").stat().st_mtime_ns
    again = mescal("solve", *tiny, "--out", "r")
    assert again.exit_code == 0 and "stored already" in again.stdout and again.stderr == ""
    assert Path("r/result.json").stat().st_mtime_ns == before
    mescal("solve", *tiny, "--out", "r", "-q", "--force")
    assert Path("r/result.json").stat().st_mtime_ns > before


def test_without_a_certificate_the_exit_code_is_1(mescal):
    hopeless = ["--tol", "1e-12", "--max-outer", "2"]
    result = mescal("solve", "saddles/circle", "--set", "sigma=0", *hopeless, "--out", "r", "-q")
    assert result.exit_code == 1
    assert (
        "NOT CERTIFIED" in result.stdout and "times too large" in result.stdout and "Raise max_outer" in result.stdout
    )
    assert mescal("certify", "r").exit_code == 1
    assert mescal("certify", "r", "--tol", "0.1").exit_code == 0


def test_an_own_problem(mescal, tmp_path):
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    arguments = ["--problem-file", "own.py:make", "--set", "center=2.5", "--out", "r", "-q"]
    result = mescal("solve", *arguments)
    assert result.exit_code == 0 and "own.py:make,center=2.5 with auto" in result.stdout
    assert "newton-cg was chosen since a full pass has" in " ".join(result.stdout.split())
    assert np.load("r/solution.npz")["x"] == pytest.approx([2.5], abs=0.01)
    assert mescal("certify", "r", "--trust").exit_code == 0


def test_options_make_the_task(mescal, tiny, monkeypatch):
    """Everything on the line reaches the task; nothing is run here."""
    made = []
    monkeypatch.setattr("mescal.cli.solve.carry_out", lambda *given: made.append(given))
    outer = ["--outer", "growth=2", "--outer", "scale=false"]
    limits = ["--max-outer", "7", "--max-work", "1e6", "--max-seconds", "60"]
    tols = ["--tol-curvature", "0.1", "--tol-feasibility", "0", "--tol-relative", "0.5", "--cone", "whole"]
    mescal(
        "solve",
        *tiny,
        "--option",
        "batch=32",
        "--seed",
        "3",
        *limits,
        *tols,
        *outer,
        "--exact-history",
        "-o",
        "r",
        "--force",
        "-q",
    )
    ((given, folder, force, as_json, quiet),) = made
    assert given.options == {"batch": 32} and given.parameters == {"sigma": 0.0} and given.seed == 3
    assert (
        given.tolerance == Tolerance(0.05, 0.1, feasibility=0, relative=0.5)
        and given.cone == "whole"
        and given.record == "exact"
    )
    assert (given.max_outer, given.max_work, given.max_seconds) == (7, 1e6, 60)
    assert given.outer == Outer(growth=2.0, scale=False)
    assert folder == Path("r") and force and quiet and not as_json


def test_resume_carries_an_unfinished_run_to_its_end(mescal, stored_folder, tmp_path):
    shutil.copytree(stored_folder, tmp_path / "r")
    for name in ("result.json", "history.csv", "solution.npz"):
        (tmp_path / "r" / name).unlink()
    result = mescal("resume", "r", "--json")
    assert result.exit_code == 0
    assert (
        json.loads(result.stdout)["work"]
        == json.loads((stored_folder / "result.json").read_text(encoding="utf-8"))["work"]
    )
    again = mescal("resume", "r")
    assert again.exit_code == 0 and "has come to its end; nothing was run" in again.stdout


def test_certify_measures_the_stored_point_afresh(mescal, stored_folder):
    stored = json.loads((stored_folder / "result.json").read_text(encoding="utf-8"))
    result = mescal("certify", stored_folder)
    assert result.exit_code == 0 and "agrees with the certificate that the run stored" in result.stdout
    fresh = json.loads(mescal("certify", stored_folder, "--json").stdout)
    assert fresh["passes"] is True
    for name in ("stationarity", "feasibility", "curvature", "objective"):
        assert fresh[name]["value"] == pytest.approx(stored["certificate"][name]["value"], rel=1e-6, abs=1e-9)


def test_certify_believes_the_point_and_not_the_result(mescal, stored_folder, tmp_path):
    shutil.copytree(stored_folder, tmp_path / "r")
    with np.load(tmp_path / "r" / "solution.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "r" / "solution.npz", **(arrays | {"x": arrays["x"] * 2}))
    result = mescal("certify", "r")
    assert result.exit_code == 1 and "NOT CERTIFIED" in result.stdout
    assert "The stored stationarity was" in result.stdout
    np.savez(tmp_path / "r" / "solution.npz", **(arrays | {"x": arrays["x"][:1]}))
    assert mescal("certify", "r").exit_code == 2


def test_certify_with_x_alone_and_on_another_cone(mescal, stored_folder):
    result = mescal("certify", stored_folder, "--alone", "--cone", "whole", "--json")
    content = json.loads(result.stdout)
    assert result.exit_code == 0 and content["cone"] == "whole"
    assert content["stationarity"]["value"] < 0.05

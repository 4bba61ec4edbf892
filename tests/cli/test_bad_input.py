"""What is wrong is said in three parts on standard error, with exit code 2; where a disk fails, with 1."""

import errno
import json
import os
import shutil

import pytest


def failing(number):
    def call(*_, **__):
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["solve", "no-such-problem"], "no problem named 'no-such-problem'"),
        (["solve", "neyman-pearson/spambse"], "did you mean 'neyman-pearson/spambase'"),
        (["solve", "saddles/circle", "--solver", "spidre"], "did you mean 'spider'?"),
        (["solve", "saddles/circle", "--set", "sigam=1"], "did you mean 'sigma'"),
        (["solve", "saddles/circle", "--set", "sigma"], "a name and a value"),
        (["solve", "saddles/circle", "--set", "sigma=x"], "a number >= 0"),
        (["solve", "saddles/circle", "--set", "sigma=1", "--set", "sigma=2"], "sets sigma twice"),
        (["solve", "saddles/circle", "--solver", "spider", "--option", "batch=many"], "mescal solvers spider"),
        (["solve", "saddles/circle", "--solver", "spider", "--option", "search=oyja"], "did you mean 'oja'?"),
        (
            ["solve", "saddles/circle", "--solver", "spider-theory", "--option", "constants=1"],
            "mescal solvers spider-theory",
        ),
        (["solve", "saddles/circle", "--tol", "-1"], "a positive finite number"),
        (["solve", "saddles/circle", "--seed", "-1"], "an integer from 0"),
        (["solve", "saddles/circle", "--cone", "square"], "cone='square'"),
        (["solve", "saddles/circle", "--outer", "growht=2"], "did you mean 'growth'?"),
        (["solve", "saddles/circle", "--outer", "growth=1"], "a number above 1"),
        (["solve", "saddles/circle", "--outer", "max_inner=2.5"], "a whole number"),
        (["compare", "saddles/circle", "--solver", "conex", "--outer", "growth=2"], "the baseline conex with"),
        (["solve"], "no problem was named"),
        (["solve", "saddles/circle", "--problem-file", "a.py:f"], "both saddles/circle and --problem-file"),
        (["solve", "--problem-file", "a.py"], "a Python file and a function"),
        (["solve", "--problem-file", "nowhere.py:f"], "could not be read"),
        (["certify", "nowhere"], "is not a folder"),
        (["resume", "."], "it has no config.json"),
        (["report", "nowhere"], "could not be read"),
        (["report", "."], "holds no runs"),
        (["compare", "saddles/circel"], "did you mean 'saddles/circle'"),
        (["compare", "runs/nowhere"], "runs/nowhere is neither a folder nor a problem"),
        (["problems", "fairness/banc"], "did you mean 'fairness/bank'"),
        (["solvers", "natasha"], "did you mean 'natasha2'?"),
        (["datasets", "spam"], "did you mean 'spambase'"),
    ],
)
def test_bad_usage_is_explained(mescal, arguments, said):
    result = mescal(*arguments)
    assert result.exit_code == 2 and result.stdout == ""
    assert said in result.stderr and "Expected: " in result.stderr and "What to do: " in result.stderr
    assert "?." not in result.stderr


@pytest.mark.parametrize("arguments", [["sovle"], ["solve", "saddles/circle", "--tol", "small"], ["solve", "--colour"]])
def test_what_typer_refuses_has_the_same_code(mescal, arguments):
    assert mescal(*arguments).exit_code == 2


@pytest.mark.parametrize("path", ["", "a\0b"])
@pytest.mark.parametrize(
    "arguments",
    [["solve", "saddles/circle", "--out"], ["compare", "saddles/circle", "--out"], ["reproduce", "--quick", "--out"],
     ["report", "r", "--out"], ["report", "r", "--figures"], ["report"], ["certify"], ["resume"]],
)  # fmt: skip
def test_paths_that_are_none(mescal, tmp_path, arguments, path):
    result = mescal(*arguments, path)
    assert result.exit_code == 2 and ("is empty" in result.stderr or "NUL" in result.stderr)
    assert not list(tmp_path.iterdir())


def test_errors_for_machines(mescal):
    result = mescal("solve", "saddles/circel", "--json")
    assert result.exit_code == 2 and result.stderr == ""
    error = json.loads(result.stdout)["error"]
    assert set(error) == {"found", "expected", "advice"} and "saddles/circle" in error["advice"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["solve", "saddles/circle", "--tol", "small", "--json"], "--tol"),
        (["solve", "--colour", "--json"], "--colour"),
        (["sovle", "--json"], "sovle"),
        (["compare", "--json"], "RUN|PROBLEM"),
        (["compare", "saddles/circle", "--seeds", "0", "--json"], "--seeds"),
    ],
)
def test_what_typer_refuses_is_told_to_machines_too(mescal, arguments, said):
    result = mescal(*arguments)
    assert result.exit_code == 2 and result.stderr == ""
    error = json.loads(result.stdout)["error"]
    assert said in error["found"] and error["expected"].startswith("mescal ") and "--help" in error["advice"]


def test_out_that_exists_is_refused_unless_forced(mescal, tiny, stored_folder, tmp_path):
    shutil.copytree(stored_folder, tmp_path / "r")
    result = mescal("solve", *tiny, "--seed", "4", "--out", "r", "-q", "--exact-history")
    assert result.exit_code == 2 and "its seed is 0, not 4" in result.stderr and "--force" in result.stderr
    assert mescal("solve", *tiny, "--seed", "4", "--out", "r", "-q", "--force").exit_code == 0
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert mescal("solve", *tiny, "--out", "full", "-q").exit_code == 2
    assert (
        mescal("solve", *tiny, "--out", "full", "-q", "--force").exit_code == 0 and (tmp_path / "full" / "x").exists()
    )


def test_a_comparison_with_a_solver_that_is_not_there_is_refused_before_anything_runs(mescal, stored_folder, tmp_path):
    result = mescal("compare", stored_folder, "--to", "natasha2")
    assert result.exit_code == 2 and "no solver among these runs named 'natasha2'" in result.stderr
    result = mescal("compare", "saddles/circle", "--to", "spidre", "--out", "store")
    assert result.exit_code == 2 and "did you mean 'spider'" in result.stderr and not (tmp_path / "store").exists()
    shown = mescal("compare", stored_folder, "--to", "spider")
    assert shown.exit_code == 0 and "x spider" in shown.stdout and "without compiling" in shown.stdout


def test_a_wrong_group_leaves_no_folder(mescal, tmp_path):
    result = mescal("solve", "fairness/diabetes", "--set", "group=sex=9")
    assert result.exit_code == 2 and "no level of sex" in result.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("command", ["certify", "resume", "report", "compare"])
def test_a_run_of_another_version_is_refused_by_name(mescal, stored_folder, tmp_path, command):
    shutil.copytree(stored_folder, tmp_path / "old")
    config = json.loads((tmp_path / "old" / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "old" / "config.json").write_text(json.dumps(config | {"schema": 99}), encoding="utf-8")
    result = mescal(command, "old")
    assert result.exit_code == 2 and "old is a run folder of version 99" in result.stderr


def test_a_folder_that_cannot_be_read(mescal, tmp_path, monkeypatch):
    (tmp_path / "r").mkdir()
    monkeypatch.setattr("pathlib.Path.iterdir", failing(errno.EACCES))
    result = mescal("report", "r")
    assert result.exit_code == 2 and "r could not be read: permission denied" in result.stderr


def test_a_full_disk_is_said_before_anything_is_computed(mescal, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("mescal.files.os.fsync", failing(errno.ENOSPC))
    result = mescal("solve", *tiny, "--out", "r", "-q")
    assert result.exit_code == 1 and "no space left" in result.stderr and "free some space" in result.stderr
    assert not (tmp_path / "r").exists()


def test_a_disk_that_fills_during_a_run(mescal, tiny, tmp_path, monkeypatch):
    """The config was written; the solution was not: exit code 1, and `resume` can carry on once there is space."""
    flush, calls = os.fsync, []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > 2:  # the config and its folder
            failing(errno.ENOSPC)()
        flush(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr("mescal.files.os.fsync", fsync)
        result = mescal("solve", *tiny, "--out", "r", "-q")
    assert result.exit_code == 1 and "solution.npz could not be written: no space left" in result.stderr
    assert [p.name for p in (tmp_path / "r").iterdir()] == ["config.json"]
    assert mescal("resume", "r", "-q").exit_code == 0


def test_no_permission_to_write(mescal, tiny, monkeypatch):
    monkeypatch.setattr("pathlib.Path.open", failing(errno.EACCES))
    result = mescal("solve", *tiny, "--out", "r", "-q")
    assert result.exit_code == 1 and "permission denied" in result.stderr and "may write to" in result.stderr


def test_a_report_about_runs_that_have_not_ended(mescal, stored_folder, tmp_path):
    (tmp_path / "r").mkdir()
    shutil.copy(stored_folder / "config.json", tmp_path / "r")
    result = mescal("report", "r")
    assert result.exit_code == 2 and "mescal resume r" in result.stderr


def test_ctrl_c_outside_of_a_solve_leaves_with_130(mescal, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mescal.cli.solve.carry_out", interrupted)
    result = mescal("solve", "saddles/circle")
    assert result.exit_code == 130 and result.stderr == "Interrupted.\n"

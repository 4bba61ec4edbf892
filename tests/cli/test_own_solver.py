"""`--solver-file`: a solver in a file of one's own, solved with, compared, carried on; under the rules of trust of a problem's."""

import json
import shutil

import pytest

import mescal as library
from mescal import InputError
from mescal.experiments import Task, load_run

OWN = """
from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from mescal.solvers import Spider

Path("ran").touch()

class Mine(Spider):
    name: ClassVar[str] = "mine"

class Unnamed(Spider):
    pass
"""
PROBLEM = ["saddles/circle", "--set", "sigma=0"]
ASKED = ["solve", *PROBLEM, "--tol", "0.05", "--option", "batch=16", "-q"]


@pytest.fixture(scope="module")
def made(made_with):
    """A run with a solver file, and the file."""
    return made_with(OWN, *ASKED, "--solver-file", "own.py:Mine")


@pytest.fixture
def received(received, made):
    """Of a run that has not ended, beside a copy of the file."""
    (received / "r" / "result.json").unlink()
    shutil.copy(made / "own.py", received / "copy.py")
    return received


def test_it_is_part_of_the_run(mescal, made):
    stored = load_run(made / "r")
    given = Task.from_config(stored.config)
    assert stored.current and stored.result is not None and stored.result.solver == "mine"
    assert given.solver_source is not None and not given.solver_source.trusted
    assert given.solver.startswith("own.py:Mine@") and given.options == {"batch": 16}
    assert given.solver.partition("@")[2] == given.solver_source.sha256[:8]
    assert f"{given.solver.replace(':', '-').replace('@', '-')},batch=16" in given.folder.as_posix()


def test_what_needs_no_solver_runs_none(mescal, made, received):
    for command in (["certify", made / "r"], ["report", made / "r"], ["compare", made / "r"]):
        result = mescal(*command)
        assert result.exit_code == 0, result.output
    assert "own.py:Mine@" in mescal("compare", made / "r").stdout
    assert "own.py:Mine@" in (made / "r" / "report.html").read_text(encoding="utf-8")
    assert not (received / "ran").exists()


def test_a_received_folder_runs_nothing(mescal, received):
    result = mescal("resume", "r", "-q")
    assert result.exit_code == 2 and "this run's solver is the class Mine in" in result.stderr
    assert "--trust" in result.stderr and "--solver-file own.py:Mine" in result.stderr
    assert mescal("resume", "r", "-q", "--problem-file", "copy.py:Mine").exit_code == 2, "that is not its solver"
    with pytest.raises(InputError, match="a file that would be run"):
        library.resume("r")
    assert not (received / "ran").exists()


@pytest.mark.parametrize("said", [["--trust"], ["--solver-file", "copy.py:Mine"]], ids=["trusted", "named"])
def test_on_the_users_word(mescal, received, said):
    assert mescal("resume", "r", "-q", *said).exit_code == 0 and (received / "ran").exists()
    assert json.loads((received / "r" / "result.json").read_text(encoding="utf-8"))["converged"]


def test_a_changed_file_is_another_solver(mescal, made, received):
    (received / "copy.py").write_text(OWN + "# changed\n", encoding="utf-8")
    result = mescal("resume", "r", "-q", "--solver-file", "copy.py:Mine")
    assert result.exit_code == 2 and "is not what this run was made with" in result.stderr
    result = mescal(*ASKED, "--solver-file", "copy.py:Mine", "--out", made / "r")
    assert result.exit_code == 2 and "holds another run: its solver is 'own.py:Mine@" in result.stderr
    (received / "ran").unlink()
    config = json.loads((received / "r" / "config.json").read_text(encoding="utf-8"))
    config["solver_source"]["file"] = str(received / "copy.py")
    (received / "r" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for change, found in ((lambda: None, "has changed since"), ((received / "copy.py").unlink, "could not be read")):
        change()
        result = mescal("resume", "r", "-q", "--trust")
        assert result.exit_code == 2 and found in result.stderr and "What to do: " in result.stderr
    assert not (received / "ran").exists()


def test_compared_with_others(mescal, made):
    asked = ["compare", *PROBLEM, "--tol", "0.05", "--seeds", "1", "--jobs", "1", "--out", made / "store"]
    own = ["--solver-file", f"{made}/own.py:Mine,batch=16", "--to", "own.py:Mine,batch=16"]
    first = mescal(*asked, "--solver", "spider,batch=16", *own, "--json")
    assert first.exit_code == 0, first.output
    mine, theirs = json.loads(first.stdout)
    assert mine["solver"].startswith("own.py:Mine@") and mine["solver"].endswith(",batch=16")
    assert mine["ratio"] == theirs["ratio"] == 1.0 and mine["work"] == theirs["work"]
    again = mescal(*asked, "--solver", "spider,batch=16", *own)
    assert "2 stored already" in again.stderr and "Mine@" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--solver", "spider", "--solver-file", "own.py:Mine"], "both --solver spider and --solver-file own.py:Mine"),
        (["--solver-file", "own.py"], "a Python file and a class, for example my_solver.py:MySolver"),
        (["--solver-file", "nowhere.py:Mine"], "could not be read"),
        (["--solver-file", "own.py:Mien"], "did you mean 'Mine'?"),
        (["--solver-file", "own.py:Unnamed"], "no solver in own.py named 'Unnamed'"),
        (["--solver-file", "own.py:Mine", "--option", "bach=16"], "--option bach=16 of the solver own.py:Mine"),
        (["--solver-file", "own.py:Mine", "--option", "batch=often"], "own.py has them with their defaults"),
        (["--solver-file", "broken.py:Mine"], "broken.py, line 1 raised NameError"),
    ],
)
def test_what_is_wrong_is_said(mescal, tmp_path, arguments, said):
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "broken.py").write_text("class Mine(Solver): ...\n", encoding="utf-8")
    result = mescal("solve", *PROBLEM, "-q", *arguments)
    text = " ".join(result.stderr.split())
    assert result.exit_code == 2 and said in text and "Expected: " in text and "What to do: " in text

"""A run folder that came from elsewhere runs no code unless the user says so, and code cannot say that a point is certified."""

import json
import py_compile
import shutil

import pytest

import mescal as library
from mescal import InputError

OWN = """
from pathlib import Path
import numpy as np
import mescal
from mescal import E

Path("ran").touch()

def make(center=2.5):
    return mescal.Problem(E(lambda x: ((x - center) ** 2).sum())), np.zeros(1, np.float32)
"""
LEAVES = """
import sys
import numpy as np
import mescal
from mescal import E

def leave(x):
    sys.exit(0)

def at_once():
    sys.exit(0)

def when_traced():
    return mescal.Problem(E(leave)), np.zeros(1)
"""


@pytest.fixture(scope="module")
def made(made_with):
    """A run of a problem file, and the file."""
    return made_with(OWN, "solve", "--problem-file", "own.py:make", "-q", "--max-outer", "1")


COMMANDS = (["certify", "r"], ["resume", "r", "-q", "--max-work", "1e9"], ["report", "r"], ["compare", "r"])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_received_folder_runs_nothing(mescal, received, command):
    if command[0] in ("certify", "resume"):
        if command[0] == "resume":
            (received / "r" / "result.json").unlink()
        result = mescal(*command)
        assert result.exit_code == 2 and "a file that would be run" in result.stderr
        assert "a folder from elsewhere can name any file" in result.stderr and "--trust" in result.stderr
    else:
        assert mescal(*command).exit_code == 0, "reports and comparisons need no problem"
    assert not (received / "ran").exists()


def test_from_python_too(mescal, received):
    with pytest.raises(InputError, match="a file that would be run"):
        library.resume("r")
    assert not (received / "ran").exists()


@pytest.mark.parametrize("said", [["--trust"], ["--problem-file", "FILE:make"]], ids=["trusted", "named"])
def test_on_the_users_word(mescal, made, received, said):
    shutil.copy(made / "own.py", received / "copy.py")
    said = [word.replace("FILE", str(received / "copy.py")) for word in said]
    assert mescal("certify", "r", *said).exit_code == 0 and (received / "ran").exists()
    (received / "r" / "result.json").unlink()
    assert mescal("resume", "r", "-q", *said).exit_code == 0
    assert json.loads((received / "r" / "result.json").read_text(encoding="utf-8"))["converged"]


@pytest.mark.parametrize("change", ["file", "function"])
def test_another_file_is_another_problem(mescal, made, received, change):
    (received / "copy.py").write_text(OWN + ("# changed\n" if change == "file" else ""), encoding="utf-8")
    named = f"copy.py:{'make' if change == 'file' else 'other'}"
    result = mescal("certify", "r", "--problem-file", named)
    assert result.exit_code == 2 and "is not what this run was made with" in result.stderr
    assert not (received / "ran").exists()


def test_what_runs_is_what_was_looked_at(mescal, made, received):
    """Not a compiled file beside it, which Python would take for its text without looking."""
    (received / "copy.py").write_text(OWN.replace("touch()", 'touch(); Path("forged").touch()'), encoding="utf-8")
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(received / "copy.py"), doraise=True, invalidation_mode=unchecked)
    (received / "copy.py").write_text(OWN, encoding="utf-8")
    assert mescal("certify", "r", "--problem-file", "copy.py:make").exit_code == 0
    assert (received / "ran").exists() and not (received / "forged").exists()


@pytest.mark.parametrize(("function", "code"), [("at_once", 2), ("when_traced", 1)])
def test_a_file_that_ends_the_program_certifies_nothing(mescal, tmp_path, function, code):
    (tmp_path / "leaves.py").write_text(LEAVES, encoding="utf-8")
    result = mescal("solve", "--problem-file", f"leaves.py:{function}", "--out", "r", "-q")
    assert result.exit_code == code and "SystemExit" in result.stderr
    told = mescal("solve", "--problem-file", f"leaves.py:{function}", "--out", "s", "--json")
    assert told.exit_code == code and "SystemExit" in json.loads(told.stdout)["error"]["found"]

"""Damaged, edited and forged run folders: an error in three parts or a page, never a raw exception; JSON stays JSON.

Every field of the two JSON files of a real run is taken out and replaced by values of other kinds, and everything that reads runs
looks at what comes out.
"""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from mescal import InputError
from mescal.cli.show import show_run
from mescal.experiments import compare, load_run, load_runs
from mescal.experiments.task import Task
from mescal.report.page import render
from tests.damage import changed, paths

COMMANDS = (["certify"], ["resume"], ["report"], ["compare"])
OTHERS: tuple[Any, ...] = (
    None,
    "words",
    -1,
    0.5,
    True,
    [],
    {},
    [[1], [2, 3]],
    {"a": {"b": ["c"]}},
    10**400,
    float("nan"),
)


@pytest.fixture
def copy(stored_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(stored_folder, tmp_path / "r")
    return tmp_path / "r"


def look_everywhere(folder: Path):
    stored = load_run(folder)
    Task.from_config(stored.config)
    render([stored])
    compare([stored])
    show_run(Console(quiet=True), stored)
    stored.solution()


def refused(folder: Path) -> bool:
    """Whether the folder is refused, with something in every part of the message."""
    try:
        look_everywhere(folder)
    except InputError as error:
        return bool(error.found and error.expected and error.advice)
    return False


@pytest.mark.parametrize("name", ["config.json", "result.json"])
def test_every_field_missing_or_of_another_kind(copy, name):
    whole, seen = json.loads((copy / name).read_text(encoding="utf-8")), []
    for path in list(paths(whole)):
        for value in ((), *((other,) for other in OTHERS)):
            (copy / name).write_text(json.dumps(changed(whole, path, *value)), encoding="utf-8")
            seen.append(refused(copy))
    assert len(seen) > 100 and sum(seen) > len(seen) / 3


def flip(folder: Path, name: str, at: float):
    content = bytearray((folder / name).read_bytes())
    content[int(at * (len(content) - 1))] ^= 1 << 7
    (folder / name).write_bytes(bytes(content))


@pytest.mark.parametrize("at", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
@pytest.mark.parametrize("name", ["config.json", "result.json", "history.csv", "solution.npz"])
def test_one_byte_is_enough_to_be_told(mescal, copy, stored_folder, name, at):
    """The highest bit of one byte: no text of ours has it. Of an archive, some bytes change nothing in its arrays."""
    flip(copy, name, at)
    seen = 0
    for command in COMMANDS:
        result = mescal(*command, "r", "--json")
        told = json.loads(result.stdout)
        if "error" in told:
            assert result.exit_code == 2 and set(told["error"]) == {"found", "expected", "advice"} and not result.stderr
            seen += 1
    if name != "solution.npz":
        assert seen == len(COMMANDS)
    elif not seen:
        np.testing.assert_array_equal(load_run(copy).solution()["x"], load_run(stored_folder).solution()["x"])


@pytest.mark.parametrize("digit", [b"0", b"7"])
def test_a_digit_in_the_history_is_told_too(copy, digit):
    content = bytearray((copy / "history.csv").read_bytes())
    place = next(i for i in range(len(content) - 5, 0, -1) if content[i : i + 1].isdigit() and content[i] != digit[0])
    content[place] = digit[0]
    (copy / "history.csv").write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"history\.csv is not what was written"):
        load_run(copy)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"\xff\xfe", b"[1]", b"null", b"{" * 5000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'{"schema": 1e999}',
     b'{"schema": true, "problem": "p"}', b"9" * 10_000, b'{"schema": 1, "problem": "p"'],
)  # fmt: skip
@pytest.mark.parametrize("name", ["config.json", "result.json"])
def test_files_that_are_something_else(mescal, copy, name, content):
    (copy / name).write_bytes(content)
    for command in COMMANDS:
        result = mescal(*command, "r", "--json")
        assert result.exit_code == 2 and "error" in json.loads(result.stdout)


@pytest.mark.parametrize("missing", ["result.json", "history.csv", "solution.npz"])
def test_files_that_are_missing(mescal, copy, missing):
    (copy / missing).unlink()
    result = mescal("certify", "r", "--json")
    assert result.exit_code == 2 and "error" in json.loads(result.stdout)


@pytest.mark.parametrize("arrays", [{"x": np.zeros((2, 2))}, {"x": np.array(["a", "b"])}, {"multipliers": np.zeros(7)}])
def test_forged_solutions(mescal, copy, arrays):
    with np.load(copy / "solution.npz") as file:
        content = {name: file[name] for name in file.files}
    np.savez(copy / "solution.npz", **(content | arrays))
    result = mescal("certify", "r", "--json")
    assert result.exit_code == 2 and "error" in json.loads(result.stdout)


def test_of_many_runs_the_damaged_one_is_left_out_and_named(mescal, copy, tmp_path):
    shutil.copytree(copy, tmp_path / "all" / "good")
    shutil.copytree(copy, tmp_path / "all" / "bad")
    flip(tmp_path / "all" / "bad", "history.csv", 0.5)
    (tmp_path / "all" / "model").mkdir()
    (tmp_path / "all" / "model" / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    told = mescal("report", "all", "--json")
    content = json.loads(told.stdout)
    assert told.exit_code == 0 and content["runs"] == 1 and len(content["left_out"]) == 2
    assert "is not what was written" in content["left_out"]["all/bad"]
    said = mescal("report", "all")
    assert said.exit_code == 0 and "left out all/bad: " in said.stderr and "left out all/model: " in said.stderr
    page = (tmp_path / "all" / "report.html").read_text(encoding="utf-8")
    assert "Left out" in page and "all/bad" in page and "is not what was written" in page and "all/model" in page
    compared = mescal("compare", "all", "--json")
    assert compared.exit_code == 1 and json.loads(compared.stdout)[0]["runs"] == 1
    assert "left out all/bad: " in compared.stderr
    with pytest.raises(InputError, match="is not what was written"):
        load_runs("all")


def test_what_nobody_foresaw_is_told_to_machines_too(mescal, copy, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("nobody thought of this")

    monkeypatch.setattr("mescal.cli.certify.again", fail)
    result = mescal("certify", "r", "--json")
    assert result.exit_code == 1 and "nobody thought of this" in json.loads(result.stdout)["error"]["found"]
    assert "Traceback" in result.stderr


def test_a_measure_that_is_not_finite_is_not_met(copy):
    """JSON has no infinity: null is met where a cone is empty, and nowhere else."""
    result = json.loads((copy / "result.json").read_text(encoding="utf-8"))
    for name in ("value", "upper"):
        result["certificate"]["stationarity"][name] = None
    result |= {"objective": None, "converged": False, "status": "not_finite"}
    (copy / "result.json").write_text(json.dumps(result), encoding="utf-8")
    with pytest.raises(InputError, match=r"its certificate\.stationarity\.value is None") as error:
        load_run(copy)
    assert "null with its words beside it" in error.value.expected
    result["certificate"]["stationarity"]["not_finite"] = {"value": "nan", "upper": "inf"}
    (copy / "result.json").write_text(json.dumps(result | {"not_finite": {"objective": "nan"}}), encoding="utf-8")
    console = Console(record=True, width=200, file=io.StringIO())
    show_run(console, load_run(copy))
    assert "times too large" in console.export_text()

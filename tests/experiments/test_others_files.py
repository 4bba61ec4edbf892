"""Nothing is deleted or replaced that mescal did not write: not by a run, not by force, not by reports and figures."""

import json

import pytest

from mescal import InputError
from mescal.experiments import load_run, run, write_config
from mescal.experiments.store import FILES
from mescal.report import write_figures, write_report

MINE = "mine, and of years of work"


def never(*_):
    raise AssertionError("this ran")


def tree(folder) -> dict:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", FILES)
def test_force_replaces_nothing_in_a_folder_that_is_no_run(tiny, tmp_path, name):
    (tmp_path / name).write_text(MINE, encoding="utf-8")
    with pytest.raises(InputError, match=f"holds {name}, and mescal did not write it"):
        run(tiny(), tmp_path, force=True, progress=never)
    assert tree(tmp_path) == {name: MINE.encode()}


@pytest.mark.parametrize("content", ["{}", '{"schema": 1}', '{"model_type": "bert", "schema": "x"}', "[", ""])
def test_a_config_of_somebody_else_makes_no_run(tiny, tmp_path, content):
    (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="mescal did not write it"):
        run(tiny(), tmp_path, force=True, progress=never)
    with pytest.raises(InputError, match="mescal did not write it"):
        write_config(tmp_path, tiny().config())
    assert tree(tmp_path) == {"config.json": content.encode()}


def test_a_checkpoint_folder_of_somebody_else_stays(tiny, tmp_path):
    theirs = {"model.pt": MINE, "00000001.checkpoint": MINE, "deep/er.bin": MINE}
    for name, text in theirs.items():
        (tmp_path / "checkpoint" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkpoint" / name).write_text(text, encoding="utf-8")
    before = tree(tmp_path / "checkpoint")
    for force in (True, False, True):
        assert run(tiny(), tmp_path, force=force).converged
        assert tree(tmp_path / "checkpoint") == before


def test_a_page_of_somebody_else_stays(stored, tiny, tmp_path):
    run(tiny(), tmp_path)
    page = write_report([stored], tmp_path / "report.html")
    write_report([stored], page)  # its own it may replace
    page.write_text(MINE, encoding="utf-8")
    with pytest.raises(InputError, match=r"report\.html exists, and mescal did not write it"):
        write_report([stored], page)
    run(tiny(seed=1), tmp_path, force=True)
    assert page.read_text(encoding="utf-8") == MINE and load_run(tmp_path).config["seed"] == 1


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_figure_of_somebody_else_stays(stored, tmp_path, ending):
    (drawn,) = write_figures([stored], tmp_path, formats=[ending])
    assert write_figures([stored], tmp_path, formats=[ending]) == [drawn]  # its own it may replace
    drawn.write_text(MINE, encoding="utf-8")
    with pytest.raises(InputError, match="mescal did not write it"):
        write_figures([stored], tmp_path, formats=[ending])
    assert drawn.read_text(encoding="utf-8") == MINE


def test_leftovers_are_known_by_their_whole_names(tiny, tmp_path):
    theirs = tmp_path / ".config.json.old.part"
    theirs.write_text(MINE, encoding="utf-8")
    with pytest.raises(InputError, match="exists and is not a run folder"):
        run(tiny(), tmp_path, progress=never)
    run(tiny(), tmp_path, force=True)
    assert theirs.read_text(encoding="utf-8") == MINE


def test_reproduce_does_not_replace_a_table(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from mescal.cli.app import app

    monkeypatch.setattr("mescal.cli.reproduce.sweep_shown", never)
    (tmp_path / "table.md").write_text(MINE, encoding="utf-8")
    result = CliRunner().invoke(app, ["reproduce", "--quick", "--out", str(tmp_path), "--json"], prog_name="mescal")
    assert result.exit_code == 2 and "mescal did not write it" in json.loads(result.stdout)["error"]["found"]
    assert tree(tmp_path) == {"table.md": MINE.encode()}

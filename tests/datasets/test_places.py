"""Where files are looked for: `MESCAL_DATA` first, then the cache, whose place follows the platform."""

import sys
from pathlib import Path

import pytest

from mescal.datasets import cache_folder, loan
from mescal.datasets.places import Files
from mescal.errors import InputError


@pytest.fixture
def folder(tmp_path, monkeypatch, cache, content) -> Path:
    """A data folder with the two small files."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name, text in content.items():
        (folder / name).write_bytes(text)
    monkeypatch.setenv("MESCAL_DATA", str(folder))
    return folder


def test_the_data_folder_comes_first(folder, cache, files):
    cache.mkdir(parents=True)
    (cache / "numbers.data").write_bytes((folder / "numbers.data").read_bytes())
    assert files.find() == {name: folder / name for name in files.checksums}


def test_what_the_data_folder_lacks_is_downloaded(folder, cache, files, server, answers):
    server.answers = [answers["whole"]]
    (folder / "numbers.labels").unlink()
    assert files.find() == {"numbers.data": folder / "numbers.data", "numbers.labels": cache / "numbers.labels"}
    assert list(folder.iterdir()) == [folder / "numbers.data"]


def test_a_wrong_file_in_the_data_folder_is_refused_and_kept(folder, files):
    (folder / "numbers.data").write_bytes(b"1,2\n")
    with pytest.raises(InputError, match="sha256") as caught:
        files.find()
    assert str(folder / "numbers.data") in caught.value.found
    assert (folder / "numbers.data").read_bytes() == b"1,2\n"


def test_a_data_folder_that_is_none(tmp_path, monkeypatch, cache, files):
    monkeypatch.setenv("MESCAL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="cannot be read as a folder"):
        files.find()


def test_what_nobody_publishes_is_asked_for(cache, monkeypatch):
    with pytest.raises(InputError, match="no single public source") as caught:
        loan.FILES.find()
    assert "lc_pooled_real.csv.xz" in caught.value.found
    assert "MESCAL_DATA" in caught.value.advice


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, ".cache/mescal/datasets"),
        ("darwin", {}, "Library/Caches/mescal/datasets"),
        ("win32", {}, "AppData/Local/mescal/datasets"),
        ("win32", {"LOCALAPPDATA": "local"}, "local/mescal/datasets"),
        ("linux", {"XDG_CACHE_HOME": "shared"}, "shared/mescal/datasets"),
        ("darwin", {"XDG_CACHE_HOME": "shared"}, "shared/mescal/datasets"),
        ("linux", {"XDG_CACHE_HOME": "shared", "MESCAL_CACHE": "own"}, "own/datasets"),
    ],
)
def test_the_place_of_the_cache(tmp_path, monkeypatch, platform, variables, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("MESCAL_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    assert cache_folder() == tmp_path / expected


def test_files_without_an_archive_or_a_reason_are_still_explained(cache):
    with pytest.raises(InputError, match="neither in the folder MESCAL_DATA nor in the cache"):
        Files({"a.csv": "0" * 64}).find()

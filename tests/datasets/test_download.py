"""Downloads from a local server: what succeeds, what is tried again, what is refused, and that nothing is left behind."""

import errno
import shutil
import sys
from pathlib import Path

import pytest

import mescal.datasets.download
from mescal.datasets import DownloadError
from mescal.errors import InputError


def left_in(folder: Path) -> list[str]:
    """Everything under a folder, hidden or not."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_members_are_verified_and_cached(server, answers, cache, files, content):
    server.answers = [answers["whole"]]
    found = files.find()
    assert {name: path.read_bytes() for name, path in found.items()} == content
    assert left_in(cache) == sorted(content)
    assert server.requests == ["/static/public/0/numbers.zip"]
    assert files.find() == found
    assert len(server.requests) == 1


@pytest.mark.parametrize("first", ["busy", "truncated", "truncated without a length", "interrupted", "a page of text"])
def test_a_passing_trouble_is_tried_again(server, answers, cache, files, content, first):
    server.answers = [answers[first], answers["busy"], answers["whole"]]
    files.find(pause=0)
    assert len(server.requests) == 3
    assert left_in(cache) == sorted(content)


@pytest.mark.parametrize(
    ("kind", "requests", "message"),
    [
        ("truncated", 3, r"failed 3 times, at last because the connection ended after \d+ of \d+ bytes"),
        ("truncated without a length", 3, "not a complete zip archive"),
        ("interrupted", 3, "failed 3 times, at last because the connection (was interrupted|ended)"),
        ("a page of text", 3, "not a complete zip archive"),
        ("busy", 3, "the server answered 503"),
        ("not found", 1, "cannot be had: the server answered 404"),
        ("other content", 1, "numbers.labels from http.* has sha256"),
        ("member missing", 1, "holds no numbers.labels"),
    ],
)
def test_a_failure_is_explained_and_leaves_nothing(server, answers, cache, files, kind, requests, message):
    server.answers = [answers[kind]]
    with pytest.raises(DownloadError, match=message) as caught:
        files.find(pause=0, attempts=3)
    assert server.url in caught.value.found
    assert caught.value.expected and caught.value.advice
    assert len(server.requests) == requests
    assert left_in(cache) == []


def test_the_pause_doubles(server, answers, cache, files, monkeypatch):
    pauses = []
    monkeypatch.setattr(mescal.datasets.download.time, "sleep", pauses.append)
    server.answers = [answers["busy"]]
    with pytest.raises(DownloadError):
        files.find(pause=0.5, attempts=4)
    assert pauses == [0.5, 1.0, 2.0]


def test_a_server_that_is_not_there(server, cache, files):
    with pytest.raises(DownloadError, match="failed 2 times"):
        files.find(base_url="http://127.0.0.1:9", pause=0, attempts=2, timeout=2)
    assert left_in(cache) == []


def test_ctrl_c_leaves_nothing(server, answers, cache, files, monkeypatch):
    server.answers = [answers["whole"]]

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(mescal.datasets.download, "_read", stop)
    with pytest.raises(KeyboardInterrupt):
        files.find()
    assert left_in(cache) == []


def test_a_full_disk_is_explained_and_leaves_nothing(server, answers, cache, files, monkeypatch):
    server.answers = [answers["whole"]]

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(DownloadError, match="No space left on device"):
        files.find()
    assert left_in(cache) == []


def test_a_cache_that_cannot_be_written(server, answers, cache, files):
    server.answers = [answers["whole"]]
    cache.parent.write_text("a file where the folder should be")
    with pytest.raises(DownloadError, match="cannot be written") as caught:
        files.find()
    assert "MESCAL_CACHE" in caught.value.advice
    assert server.requests == []


def test_a_damaged_file_in_the_cache_is_replaced(server, answers, cache, files, content):
    server.answers = [answers["whole"]]
    cache.mkdir(parents=True)
    (cache / "numbers.data").write_bytes(b"1,2\n")
    found = files.find()
    assert found["numbers.data"].read_bytes() == content["numbers.data"]
    assert left_in(cache) == sorted(content)


def test_progress_goes_to_standard_error(server, answers, cache, files, capsys):
    server.answers = [answers["whole"]]
    files.find()
    shown = capsys.readouterr()
    assert "numbers.zip" in shown.err
    assert shown.out == ""


def test_progress_without_rich(server, answers, cache, files, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    server.answers = [answers["truncated without a length"], answers["whole"]]
    files.find(pause=0)
    shown = capsys.readouterr()
    assert shown.err.startswith("Downloading numbers.zip from 127.0.0.1")
    assert "100 % of" in shown.err
    assert shown.out == ""


def test_a_download_error_is_an_input_error():
    assert issubclass(DownloadError, InputError)

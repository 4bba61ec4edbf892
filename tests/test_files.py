"""Files are whole or not there: full disks, forbidden folders, failing writers, damaged content."""

import errno
import json
import os
import stat
import subprocess
import sys

import pytest

from mescal import InputError
from mescal.files import LOCK, Busy, Hold, WriteError, read_json, write_json, write_text, write_whole


def failing(number):
    def call(*_, **__):
        raise OSError(number, os.strerror(number))

    return call


def test_a_file_is_written_with_its_folders(tmp_path):
    write_json(tmp_path / "a" / "b" / "c.json", {"x": [1, 2.5, None, "ä"]})
    assert json.loads((tmp_path / "a" / "b" / "c.json").read_text(encoding="utf-8")) == {"x": [1, 2.5, None, "ä"]}
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["c.json"]


def test_a_file_has_the_rights_that_the_user_gives_to_new_files(tmp_path):
    write_text(tmp_path / "ours", "x")
    (tmp_path / "plain").write_text("x", encoding="utf-8")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "plain")}
    assert len(modes) == 1


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, call):
    write_text(tmp_path / "f", "old")
    monkeypatch.setattr(os, call, failing(errno.ENOSPC))
    with pytest.raises(WriteError) as caught:
        write_text(tmp_path / "f", "new")
    assert "no space left" in caught.value.found and "free some space" in caught.value.advice
    assert (tmp_path / "f").read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_disk_that_fills_while_writing_leaves_nothing(tmp_path):
    def write(file):
        file.write(b"half")
        failing(errno.ENOSPC)()

    with pytest.raises(WriteError, match="no space left"):
        write_whole(tmp_path / "f", write)
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="Out of range float"):
        write_json(tmp_path / "f", {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_no_permission_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.open", failing(errno.EACCES))
    with pytest.raises(WriteError) as caught:
        write_text(tmp_path / "f", "x")
    assert "permission denied" in caught.value.found and "may write to" in caught.value.advice


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(WriteError, match="permission denied"):
            write_text(tmp_path / "f", "x")
    finally:
        tmp_path.chmod(0o700)


def test_a_file_in_the_way_of_a_folder(tmp_path):
    (tmp_path / "f").write_text("x", encoding="utf-8")
    with pytest.raises(WriteError, match="choose another path"):
        write_text(tmp_path / "f" / "g", "x")


@pytest.mark.parametrize("text", ["{", "[1]", "\x00"])
def test_damaged_json_is_named(tmp_path, text):
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.json is not a JSON object"):
        read_json(tmp_path / "config.json")


HOLDER = """
import sys, time
from pathlib import Path
from mescal.files import Hold
hold = Hold(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(600)
"""


def test_two_processes_do_not_share_a_folder_and_a_killed_one_holds_nothing(tmp_path):
    """The lock is the system's: what is left of a killed process is a file, which does not count."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with pytest.raises(Busy, match=f"is in use by another run, of the process {process.pid}"):
            Hold(tmp_path)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    with Hold(tmp_path), pytest.raises(Busy):
        Hold(tmp_path)
    assert not list(tmp_path.iterdir())
    Hold(tmp_path).release()


def test_a_disk_without_locks_holds_nothing(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("mescal.files.fcntl.flock", refuse)
    with Hold(tmp_path), Hold(tmp_path):
        pass

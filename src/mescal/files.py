"""Files that are whole or not there, written beside their place, flushed and renamed; and folders held by one process.

Nothing is replaced or deleted that mescal did not write: what it writes says so, and is looked at first.
"""

import errno
import io
import json
import os
import secrets
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .errors import InputError, InputTypeError

try:
    import fcntl
except ImportError:  # systems without it hold nothing
    fcntl = None

LOCK = ".mescal-lock"
DEPTH = 32  # of JSON: files of ours have less than ten levels
_ADVICE = {
    errno.ENOSPC: "free some space, or write to another disk; nothing half-written was left behind",
    errno.EDQUOT: "free some of your quota, or write elsewhere; nothing half-written was left behind",
    errno.EACCES: "choose a folder that you may write to, or change its permissions",
    errno.EPERM: "choose a folder that you may write to, or change its permissions",
    errno.EROFS: "choose a folder on a disk that can be written to",
    errno.ENOTDIR: "a part of the path is a file: choose another path",
    errno.EEXIST: "a part of the path is a file: choose another path",
}


class WriteError(InputError):
    """A file that could not be written."""

    @classmethod
    def of(cls, path: Path, error: OSError) -> "WriteError":
        """From what the system said."""
        advice = _ADVICE.get(error.errno or 0, "check the path, or choose another")
        return cls(f"{path} could not be written: {_reason(error)}", "a file that can be written", advice)


def as_path(value: Any, name: str) -> Path:
    """A path from what a user gave: not empty, which would be the working folder, and one that a system can have."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(os.fspath(value), bytes):
        raise InputTypeError(f"{name}={value!r}", "a path", "give a string or a pathlib.Path, for example runs/a")
    if str(value) == "" or "\0" in str(value):
        found = "is empty" if str(value) == "" else "holds a NUL character"
        raise InputError(f"{name}={str(value)!r}, which {found}", "a path", "name a folder or a file; '.' is this one")
    return Path(value)


def make_folder(folder: Path) -> list[Path]:
    """Make a folder with all above it; those that were not there before, the innermost first."""
    try:
        new = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError.of(folder, error) from error
    return new


def remove_empty(folders: Iterable[Path]):
    """Take back folders that were made, the innermost first, up to one that holds something."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def check_writable(folder: Path):
    """Raise where a folder could not be made or written to; nothing is left behind."""
    try:
        there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
        probe = there / f".mescal.{secrets.token_hex(8)}.part"
        probe.open("xb").close()
        probe.unlink()
    except OSError as error:
        raise WriteError.of(folder, error) from error


def begins_with(path: Path, mark: bytes, within: int = 0) -> bool:
    """Whether a file begins with `mark`, or holds it `within` so many bytes."""
    try:
        with path.open("rb") as file:
            return mark in file.read(max(within, len(mark)))
    except OSError:
        return False


def refuse_foreign(path: Path, mark: bytes, within: int = 1 << 16):
    """Raise where a file is there already that has no mark of mescal."""
    if os.path.lexists(path) and not begins_with(path, mark, within):
        raise InputError(
            f"{path} exists, and mescal did not write it",
            "a new file, or one that mescal wrote before",
            "name another, or move it away",
        )


class Busy(InputError):
    """A folder that another run is using."""


class Hold:
    """A folder that one run has to itself, from here to `release`.

    By the system's own lock on a file: what a killed process held is free, so no lock is ever stale. Where the system or the
    disk has no locks, nothing is held.
    """

    def __init__(self, folder: Path):
        self.path, self._file = folder / LOCK, None
        while fcntl is not None:
            try:
                file = self.path.open("a+b")
            except OSError as error:
                raise WriteError.of(self.path, error) from error
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                same = os.path.lexists(self.path) and os.path.samestat(os.fstat(file.fileno()), self.path.stat())
            except BlockingIOError:
                self._refuse(folder, file)
            except OSError:
                file.close()
                return
            if same:  # and not one that its holder removed in between
                file.truncate(0)
                file.write(str(os.getpid()).encode())
                file.flush()
                self._file = file
                return
            file.close()

    @staticmethod
    def _refuse(folder: Path, file: BinaryIO):
        with file:
            file.seek(0)
            holder = file.read(20).decode(errors="replace")
        raise Busy(
            f"{folder} is in use by another run" + (f", of the process {holder}" if holder.isdigit() else ""),
            "a folder for one run at a time",
            "wait until that run is over, or name another folder",
        )

    def release(self):
        """Let the folder go; more than once does nothing."""
        if self._file is not None:
            with suppress(OSError):
                self.path.unlink()
            self._file.close()
            self._file = None

    def __enter__(self) -> "Hold":
        return self

    def __exit__(self, *_: Any):
        self.release()


def write_whole(path: Path, write: Callable[[BinaryIO], Any]):
    """Let `write` fill a new file that takes the place of `path` in one step; on an error nothing has changed."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _flush_folder(path.parent)
    except OSError as error:
        _remove(temporary)
        raise WriteError.of(path, error) from error
    except BaseException:
        _remove(temporary)
        raise


def write_text(path: Path, text: str):
    """A text file, whole or not there."""
    write_whole(path, lambda file: file.write(text.encode()))


def write_json(path: Path, content: Any):
    """A JSON file, whole or not there; numbers that JSON does not have are refused."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file, or an error that names it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise cannot_read(path, error) from error
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not _is_shallow(content):
        raise InputError(
            f"{path} is not a JSON object",
            "a file that mescal wrote",
            "remove the folder and run it again, or restore it from a copy",
        )
    return content


def read_arrays(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an .npz archive; ValueError for whatever is not one as `np.savez` writes it, pickles among them."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
        if any(m.compress_type != zipfile.ZIP_STORED or m.file_size > len(content) for m in members):
            raise ValueError("members that are larger than they look")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # numpy, zipfile and struct each have their own for bytes that make no sense
        raise ValueError(f"no archive of arrays: {error}") from error


def _is_shallow(content: Any, left: int = DEPTH) -> bool:
    parts = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    return left > 0 and all(_is_shallow(part, left - 1) for part in parts)


def cannot_read(path: Path, error: OSError) -> InputError:
    """The error for a file or a folder that cannot be read."""
    found = f"{path} could not be read: {_reason(error)}"
    return InputError(found, "a file or folder that can be read", "check the path and its permissions")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _flush_folder(folder: Path):
    """Make the renaming itself survive a power cut, where the system lets folders be flushed."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _remove(temporary: Path | None):
    if temporary is not None:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)

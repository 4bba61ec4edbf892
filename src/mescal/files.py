"""Files that are whole or not there: written beside their place, flushed to the disk, then renamed."""

import errno
import json
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from .errors import InputError

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
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError(
            f"{path} is not a JSON object",
            "a file that mescal wrote",
            "remove the folder and run it again, or restore it from a copy",
        )
    return content


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

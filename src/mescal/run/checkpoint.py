"""Checkpoints on the disk: a folder with the last two, each whole or not there, each with a checksum.

A file is a line that names format and version, a line with the SHA-256 of what follows, and an .npz archive: the arrays, and
JSON in one of them. The disk may fail while a run goes on: that is told once, and the run goes on without new checkpoints.
Files in the folder that do not begin like one of these are somebody else's, whatever their names: they stay as they are.
"""

import hashlib
import io
import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from ..errors import InputError
from ..files import (
    Hold,
    WriteError,
    begins_with,
    cannot_read,
    check_writable,
    make_folder,
    read_arrays,
    refuse_foreign,
    remove_empty,
    write_text,
    write_whole,
)
from .setup import Setup
from .snapshot import Snapshot, check_state, require, take
from .state import State

SCHEMA = 2
MAGIC = b"mescal checkpoint "
SUFFIX = ".checkpoint"
KEPT = 2
CONTENT = "content"  # the array that holds JSON
ENDED = "ended"  # the file that says that the run has come to its end: a new one may take its place
OVER = MAGIC.decode() + "folder of a run that has come to its end\n"  # what that file says
PART = re.compile(r"\.(\d+\.checkpoint|ended)\.[0-9a-f]{16}\.part")  # what a killed writer leaves

log = logging.getLogger("mescal")


class DamagedCheckpoint(InputError):
    """A checkpoint file that is not what was written."""


class Stored(NamedTuple):
    """A checkpoint that was read: the file, what it says of its run, and the state."""

    path: Path
    about: dict[str, Any]
    snapshot: Snapshot
    warnings: tuple[str, ...]


class Checkpoints:
    """The checkpoints of a run that goes on, written at the boundaries of chunks, `every` so many seconds at most."""

    def __init__(self, folder: Path, every: float, about: dict[str, Any], fresh: bool):
        self.folder, self.every, self.about = folder, every, about
        self.failed = False
        self.writes = jax.process_index() == 0  # states are replicated: one process writes for all
        self._made: list[Path] = []
        self._hold: Hold | None = None
        if self.writes:
            self._made = make_folder(folder)
            self._hold = Hold(folder)
        try:
            self._look(fresh)
        except InputError:
            self.release()
            raise
        self.last = time.monotonic()

    def _look(self, fresh: bool):
        """Find out what the folder holds, and remove what a run that is over and a killed writer left."""
        found = files(self.folder)
        if fresh and found and not is_ours(self.folder / ENDED):
            raise InputError(
                f"{self.folder} holds checkpoints of a run that has not come to its end",
                "a new folder, or one whose run is over",
                "carry that run on with mescal.resume, name another folder, or remove it",
            )
        refuse_foreign(self.folder / ENDED, MAGIC)
        self.number = 1 + max((_number(path) for path in _named(self.folder)), default=0)
        if self.writes:
            _clean(self.folder, found if fresh else [])

    def release(self):
        """Let the folder go when the run is over, however it ended; one that was made for nothing goes."""
        if self._hold is not None:
            self._hold.release()
        remove_empty(self._made)

    def save(self, here: Setup, state: State, force: bool = False):
        """Store the run if it is time, or by `force`; the oldest file goes once the new one is safe."""
        if not self.writes or not (force or time.monotonic() - self.last >= self.every):
            return
        snapshot = take(state)
        seconds = {"seconds": here.clock.seconds, "compiling": here.clock.compiling}
        try:
            write_checkpoint(self._path(self.number), self.about | seconds, snapshot)
        except WriteError as error:
            if not self.failed:
                log.warning(
                    "No checkpoint could be written, the run goes on without: %s. %s", error.found, error.advice
                )
            self.failed = True
        else:
            self.failed = False
            self.number += 1
            with suppress(OSError, InputError):
                for path in files(self.folder)[:-KEPT]:
                    path.unlink(missing_ok=True)
        self.last = time.monotonic()

    def end(self):
        """Say that the run has nothing left to do."""
        if self.writes:
            with suppress(WriteError, OSError):
                if files(self.folder):
                    write_text(self.folder / ENDED, OVER)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}{SUFFIX}"


def write_checkpoint(path: Path, about: dict[str, Any], snapshot: Snapshot):
    """One file, whole or not there."""
    content = {"about": about, "state": snapshot.content}
    text = json.dumps(content, default=lambda number: number.item()).encode()  # settings may be numbers of numpy
    payload = io.BytesIO()
    np.savez(payload, **{CONTENT: np.frombuffer(text, np.uint8)}, **snapshot.arrays)  # pyright: ignore[reportArgumentType]
    body = payload.getbuffer()
    digest = hashlib.sha256(body).hexdigest().encode()
    write_whole(path, lambda file: file.writelines([MAGIC, str(SCHEMA).encode(), b"\n", digest, b"\n", body]))


def read_checkpoint(path: Path) -> Stored:
    """One file, checked."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _damaged(path, f"could not be read: {error.strerror or error}") from error
    first, _, rest = raw.partition(b"\n")
    digest, _, body = rest.partition(b"\n")
    if not first.startswith(MAGIC) or not first[len(MAGIC) :].isdigit():
        raise _damaged(path, "does not begin like a checkpoint")
    if first[len(MAGIC) :] != str(SCHEMA).encode():
        raise InputError(
            f"{path} is a checkpoint of format {first[len(MAGIC) :].decode(errors='replace')}",
            f"format {SCHEMA}, which this version of mescal reads",
            "resume it with the version that wrote it, or start over",
        )
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise _damaged(path, "does not match its checksum")
    with understood(path):
        arrays = read_arrays(body)
        content = json.loads(arrays.pop(CONTENT).tobytes())
        check_state(content["state"])
        require(isinstance(content["about"], dict), "what it says of its run")
        return Stored(path, content["about"], Snapshot(content["state"], arrays), ())


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """What is read within is what a checkpoint holds, or it is damaged: also under a checksum that is right."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise _damaged(path, f"does not hold what a checkpoint holds: {type(error).__name__}: {error}") from error


def read_latest(folder: Path) -> Stored:
    """The newest checkpoint of a folder that is whole; a damaged newer one becomes a warning."""
    found = _named(folder)
    if not found:
        raise InputError(
            f"{folder} holds no checkpoint",
            "a folder that minimize(checkpoint=...) wrote to",
            "check the path; a run that was killed before its first checkpoint has to be started again",
        )
    warnings: list[str] = []
    last = None
    for path in reversed(found):
        try:
            return read_checkpoint(path)._replace(warnings=tuple(warnings))
        except DamagedCheckpoint as error:
            warnings.append(f"{error.found}; the checkpoint before it was used.")
            log.warning("%s", warnings[-1])
            last = error
    assert last is not None
    raise last


def forget_newer(path: Path):
    """Remove the checkpoints that are newer than this one."""
    for newer in files(path.parent):
        if _number(newer) > _number(path):
            with suppress(OSError):
                newer.unlink()


def files(folder: Path) -> list[Path]:
    """The checkpoints of a folder that mescal wrote, oldest first."""
    return [path for path in _named(folder) if is_ours(path)]


def is_ours(path: Path) -> bool:
    """Whether a file begins as mescal begins the files of a checkpoint folder."""
    return begins_with(path, MAGIC)


def remove(folder: Path):
    """Remove the checkpoints of a run that is over, and the folder if nothing else is in it."""
    if folder.is_dir():
        _clean(folder, files(folder))
        remove_empty([folder])


def _named(folder: Path) -> list[Path]:
    """Files with the names of checkpoints, oldest first."""
    try:
        return sorted((path for path in folder.glob(f"*{SUFFIX}") if path.stem.isdecimal()), key=_number)
    except OSError as error:
        raise cannot_read(folder, error) from error


def _number(path: Path) -> int:
    return int(path.stem)


def check_folder(folder: Path):
    """Raise where nothing can be written to the folder; it is not made yet."""
    check_writable(folder)


def _clean(folder: Path, old: list[Path]):
    """Remove what a run that is over and a killed writer left, and nothing that somebody else wrote."""
    try:
        parts = [path for path in folder.glob(".*.part") if PART.fullmatch(path.name)]
        ended = [path for path in [folder / ENDED] if is_ours(path)]
        for path in (*old, *parts, *ended):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise WriteError.of(folder, error) from error


def _damaged(path: Path, what: str) -> DamagedCheckpoint:
    return DamagedCheckpoint(
        f"{path} {what}",
        "a checkpoint as it was written",
        "restore it from a copy, or start the run again",
    )

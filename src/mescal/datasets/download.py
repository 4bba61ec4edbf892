"""Downloads: a zip archive by HTTP, its members verified by sha256 and moved into the cache in one step each.

Everything happens in a temporary folder inside the cache, which is removed whatever happens: a file in the cache is
complete and verified, or not there at all. pooch verifies an archive, which a server may pack anew, and not its members.
"""

import hashlib
import http.client
import os
import shutil
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from ..errors import InputError

Report = Callable[[int, int | None], None]  # bytes so far, bytes in all (None: not known)

BASE_URL = "https://archive.ics.uci.edu"  # MESCAL_DATA_URL replaces it, for mirrors
BLOCK = 1 << 16  # bytes read together
PASSING = {408, 425, 429, 500, 502, 503, 504}  # HTTP statuses that a later attempt may not meet
BY_HAND = "put the files into a folder and set MESCAL_DATA to that folder"


class DownloadError(InputError):
    """A file that could not be downloaded."""


class _Broken(Exception):
    """A transfer that ended without a usable file; worth another attempt."""


def download_members(
    archive: str,
    checksums: Mapping[str, str],
    cache: Path,
    *,
    base_url: str | None = None,
    attempts: int = 4,
    pause: float = 1.0,
    timeout: float = 30.0,
) -> dict[str, Path]:
    """Files of a zip archive, downloaded into the cache.

    **Arguments:**

    - `archive`: the archive's path under the base URL.
    - `checksums`: sha256 of every file wanted, by file name; folders inside the archive do not matter.
    - `cache`: the folder they go to.
    - `base_url`: the server; default: the environment's `MESCAL_DATA_URL`, else the UCI repository.
    - `attempts`: how often a transfer is tried; the pause between them, in seconds, starts at `pause` and doubles.
    - `timeout`: seconds without an answer after which an attempt is given up.
    """
    base = base_url or os.environ.get("MESCAL_DATA_URL") or BASE_URL
    url = f"{base.rstrip('/')}/{archive}"
    with _workspace(cache) as folder:
        _transfer(url, folder / "archive", attempts, pause, timeout)
        with zipfile.ZipFile(folder / "archive") as opened:
            for name, digest in checksums.items():
                _extract(opened, name, digest, folder / name, url)
        # Only when all are right does the first one move.
        for name in checksums:
            os.replace(folder / name, cache / name)
    return {name: cache / name for name in checksums}


@contextmanager
def _workspace(cache: Path) -> Iterator[Path]:
    """A temporary folder on the cache's own disk, so that moving out of it is atomic; no trace of it is left."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=".partial-", dir=cache)
    except OSError as error:
        raise DownloadError(
            f"the cache {cache} cannot be written: {error.strerror}",
            "a folder that can be written",
            "set MESCAL_CACHE to another folder",
        ) from error
    try:
        with folder as path:
            yield Path(path)
    except OSError as error:
        raise DownloadError(
            f"writing to the cache {cache} failed: {error.strerror or error}",
            "room for the files and the right to write them",
            "free some space, or set MESCAL_CACHE to another folder",
        ) from error


def _transfer(url: str, target: Path, attempts: int, pause: float, timeout: float):
    """The archive at `url` as a file, tried several times."""
    label = f"Downloading {urllib.parse.unquote(PurePosixPath(url).name)} from {urllib.parse.urlsplit(url).netloc}"
    reason = ""
    with shown_progress(label) as report:
        for attempt in range(attempts):
            if attempt:
                time.sleep(pause * 2 ** (attempt - 1))
            try:
                _receive(url, target, timeout, report)
                return _require_archive(target)
            except urllib.error.HTTPError as error:
                error.close()
                reason = f"the server answered {error.code} {error.reason}"
                if error.code not in PASSING:
                    raise DownloadError(
                        f"{url} cannot be had: {reason}",
                        "the data set's archive at this address",
                        f"if MESCAL_DATA_URL is set, check it; the address may also have changed: {BY_HAND}",
                    ) from error
            except urllib.error.URLError as error:
                reason = str(error.reason)
            except _Broken as error:
                reason = str(error)
    raise DownloadError(
        f"downloading {url} failed {attempts} times, at last because {reason}",
        "a complete archive",
        f"check the connection and try again, or {BY_HAND}",
    )


def _receive(url: str, target: Path, timeout: float, report: Report):
    """One attempt. Troubles of the network are `URLError` or `_Broken`; troubles of the disk stay `OSError`."""
    request = urllib.request.Request(url, headers={"User-Agent": "mescal"})
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.URLError:
        raise
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(f"the connection failed: {error or type(error).__name__}") from error
    with response, target.open("wb") as file:
        length = response.headers.get("Content-Length")
        total, done = int(length) if length else None, 0
        while block := _read(response):
            file.write(block)
            done += len(block)
            report(done, total)
    if total is not None and done != total:
        raise _Broken(f"the connection ended after {done} of {total} bytes")


def _read(response) -> bytes:
    try:
        return response.read(BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(f"the connection was interrupted: {error or type(error).__name__}") from error


def _require_archive(path: Path):
    """Without a length in the header, a cut or wrong file shows only here."""
    try:
        with zipfile.ZipFile(path) as opened:
            damaged = opened.testzip()
    except zipfile.BadZipFile as error:
        raise _Broken("what came is not a complete zip archive") from error
    if damaged:
        raise _Broken(f"{damaged} in the archive is damaged")


def _extract(opened: zipfile.ZipFile, name: str, digest: str, target: Path, url: str):
    """One member, found by its file name in any folder of the archive, verified."""
    members = [member for member in opened.namelist() if PurePosixPath(member).name == name]
    if not members:
        raise DownloadError(
            f"the archive {url} holds no {name}",
            f"an archive with {name} in it",
            f"the published archive has changed: {BY_HAND}",
        )
    with opened.open(members[0]) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file)
    found = sha256(target)
    if found != digest:
        raise DownloadError(
            f"{name} from {url} has sha256 {found}",
            f"sha256 {digest}",
            "try again later; if it stays so, the published file is not the one that results were computed with",
        )


def sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def shown_progress(label: str) -> Iterator[Report]:
    """A function to call with the number of bytes so far; what it shows ends with the block."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
    except ImportError:
        yield _plain(label)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _plain(label: str) -> Report:
    """Text: one line at the start, and one for every tenth of a download whose size is known."""
    print(label, file=sys.stderr)
    tenths = 0

    def report(done: int, total: int | None):
        nonlocal tenths
        reached = 10 * done // total if total else 0
        if reached > tenths:
            print(f"  {10 * reached} % of {total} bytes", file=sys.stderr)
        tenths = reached

    return report

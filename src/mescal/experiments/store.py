"""The store: a run is a folder.

    config.json    what was asked, and a digest of the code; written first
    solution.npz   x, slack and multipliers as flat arrays, in the order of parameters and constraints; the certificate's direction
    history.csv    one line per outer iteration; see `mescal.run.History`
    result.json    what came out; written last, so where it is the others are whole
    report.html    a page for people, once it is asked for

Every file is written beside its place and renamed, so that a killed run leaves no half file. config.json, solution.npz
and result.json carry the version of these formats, `schema`; folders of another version are refused by name. config.json
says that the folder is a run: where it is not one that mescal wrote, files of these names are somebody else's and stay.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from ..certificate import Tolerance
from ..errors import InputError
from ..files import as_path, cannot_read, read_arrays, read_json, write_json, write_text, write_whole
from ..run import History, Result, Status
from .result_file import About, read_result, result_content
from .task import CODE, CONFIG, Task, check_config, code_now

SCHEMA = 3
RESULT, HISTORY, SOLUTION, REPORT = "result.json", "history.csv", "solution.npz", "report.html"
FILES = (RESULT, HISTORY, SOLUTION, CONFIG)  # what a run writes, in the order in which they go
PAGE = b'<meta name="generator" content="mescal">'  # in the head of every report
FLAT = ("x", "slack", "multipliers")  # arrays of a solution


@dataclass(frozen=True)
class StoredRun:
    """A run as it lies in its folder.

    **Arguments:**

    - `path`: the folder.
    - `config`: what was asked.
    - `result`: what came out, with its x flat; None while the run has not ended.
    - `about`: what is said beside it; None while the run has not ended.
    """

    path: Path
    config: dict[str, Any]
    result: Result | None = None
    about: About | None = None

    @property
    def finished(self) -> bool:
        """Whether the run came to its end, certified or not; an interrupted one did not."""
        return self.result is not None and self.result.status is not Status.INTERRUPTED

    @property
    def converged(self) -> bool:
        """Whether the run ended with a certificate."""
        return self.result is not None and self.result.converged

    @property
    def current(self) -> bool:
        """Whether the run was made by the code as it is now."""
        return self.config.get(CODE) == code_now(self.config)

    @property
    def seed(self) -> int:
        """The seed that was asked for."""
        return self.config.get("seed", 0 if self.result is None else self.result.seed)

    @cached_property
    def tolerance(self) -> Tolerance:
        """The tolerance that the run had to meet."""
        return Tolerance.from_plain(self.config.get("tol", 0.01)) if self.result is None else self.result.tolerance

    def solution(self) -> dict[str, np.ndarray]:
        """`x`, `slack` and `multipliers` of a run that has ended, flat, and `direction` where there is one."""
        if self.result is None:
            raise InputError(
                f"{self.path} holds no solution", "a run that has ended", "run `mescal resume` on it first"
            )
        return _read_solution(self.path / SOLUTION)


def write_config(path: Path | str, config: Mapping[str, Any]):
    """Begin a run folder: say what was asked. The folder is made if it is not there."""
    refuse_others(Path(path))
    write_json(Path(path) / CONFIG, {"schema": SCHEMA, **config})


def write_result(path: Path | str, result: Result, *, problem: str, about: Mapping[str, Any]) -> StoredRun:
    """Complete a run folder, result.json last.

    **Arguments:**

    - `result`: what `minimize` returned.
    - `problem`: the name of the problem.
    - `about`: what else result.json says about it: the fields of an `About`.
    """
    folder = Path(path)
    refuse_others(folder)
    leaves = [
        np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(result.x) if isinstance(leaf, (np.ndarray, jax.Array))
    ]
    arrays: dict[str, Any] = {"schema": SCHEMA}
    arrays |= {"x": np.concatenate(leaves), "slack": _flat(result.slack), "multipliers": _flat(result.multipliers)}
    if (direction := result.certificate.direction) is not None:
        arrays["direction"] = np.asarray(direction)
    write_whole(folder / SOLUTION, lambda file: np.savez(file, **arrays))
    history = result.history.to_csv()
    write_text(folder / HISTORY, history)
    files = {HISTORY: hashlib.sha256(history.encode()).hexdigest()}
    told = About(problem, **about, files=files)
    write_json(folder / RESULT, {"schema": SCHEMA, **result_content(result, told)})
    return load_run(folder)


def load_run(path: Path | str) -> StoredRun:
    """The run that a folder holds."""
    folder = as_path(path, "path")
    if not is_run(folder):
        found = "is not a run folder: it has no config.json" if folder.is_dir() else "is not a folder"
        raise InputError(f"{folder} {found}", "a folder written by `mescal solve --out`", "check the path")
    config = _current(folder / CONFIG)
    check_config(folder / CONFIG, config)
    if not (folder / RESULT).exists():
        return StoredRun(folder, config)
    content = _current(folder / RESULT)
    history = _read_history(folder / HISTORY, content.get("files"))
    solution = _read_solution(folder / SOLUTION)
    result = read_result(folder / RESULT, content, solution["x"], solution.get("direction"), history)
    return StoredRun(folder, config, *result)


def load_runs(paths: Path | str | Iterable[Path | str]) -> list[StoredRun]:
    """The runs of folders: a run folder is itself, any other folder stands for every run folder below it.

    In the order in which they were given and, below one folder, of their names; each once.
    """
    return [load_run(folder) for folder in _folders([paths] if isinstance(paths, (str, Path)) else paths)]


class Readable(NamedTuple):
    """The runs, and why others were left out, by folder."""

    runs: list[StoredRun]
    left_out: dict[Path, InputError]


def load_readable(paths: Iterable[Path | str], tasks: bool = False) -> Readable:
    """The runs of folders, as `load_runs` finds them; an error where there is but one and it cannot be read.

    With `tasks`, those whose config.json is no whole task are left out as well: they can be shown and not compared.
    """
    folders = _folders(paths)
    found = Readable([], {})
    for folder in folders:
        try:
            stored = load_run(folder)
            if tasks:
                Task.from_config(stored.config)
            found.runs.append(stored)
        except InputError as error:
            if len(folders) == 1:
                raise
            found.left_out[folder] = error
    if not found.runs:
        raise next(iter(found.left_out.values()))
    return found


def _folders(paths: Iterable[Path | str]) -> dict[Path, None]:
    return dict.fromkeys(folder for path in paths for folder in run_folders(path))


def run_folders(path: Path | str) -> list[Path]:
    """The run folder itself, or all below it; an error if there is none."""
    path = as_path(path, "path")
    if is_run(path):
        return [path]
    try:
        next(iter(path.iterdir()), None)
    except OSError as error:
        raise cannot_read(path, error) from error
    found = sorted(file.parent for file in path.rglob(CONFIG) if is_run(file.parent))
    if not found:
        raise InputError(f"{path} holds no runs", "a run folder, or a folder of run folders", "check the path")
    return found


def is_written(path: Path) -> bool:
    """Whether a folder's config.json is one that mescal wrote, of any version."""
    try:
        content = read_json(path / CONFIG)
    except InputError:
        return False
    return type(content.get("schema")) is int and isinstance(content.get("problem"), str)


def refuse_others(path: Path):
    """Raise where a folder that is no run holds files of the names that a run writes."""
    taken = [] if is_written(path) else [name for name in FILES if os.path.lexists(path / name)]
    if taken:
        raise InputError(
            f"{path} holds {' and '.join(taken)}, and mescal did not write {'it' if len(taken) == 1 else 'them'}",
            "a new folder, an empty one or the folder of a run",
            "name another folder, or move what is there away",
        )


def is_run(path: Path) -> bool:
    """Whether a folder holds a config.json."""
    try:
        return (path / CONFIG).is_file()
    except OSError as error:
        raise cannot_read(path, error) from error


def _read_history(file: Path, files: Any) -> History:
    """The history, of which result.json holds the digest: a changed digit could not be told otherwise."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise cannot_read(file, error) from error
    known = files.get(file.name) if isinstance(files, dict) else None
    if known is not None and hashlib.sha256(content).hexdigest() != known:
        raise InputError(
            f"{file} is not what was written: its sha256 is another than result.json says",
            "the file as the run left it",
            "restore it from a copy, or run it again with --force",
        )
    try:
        return History.from_csv(content.decode())
    except ValueError:
        raise InputError(
            f"{file} is not a history: its lines do not hold the columns of one, or no numbers",
            "a file that mescal wrote",
            "run it again with --force",
        ) from None


def _read_solution(file: Path) -> dict[str, np.ndarray]:
    try:
        arrays = read_arrays(file.read_bytes())
        found = {name: arrays[name] for name in (*FLAT, "direction") if name in FLAT or name in arrays}
        if any(array.ndim != 1 or array.dtype.kind != "f" for array in found.values()):
            raise ValueError
    except OSError as error:
        raise cannot_read(file, error) from error
    except (KeyError, ValueError):
        raise InputError(f"{file} holds no solution", "a file that mescal wrote", "run it again with --force") from None
    return found


def _current(file: Path) -> dict[str, Any]:
    content = read_json(file)
    if content.get("schema") != SCHEMA or content["schema"] is True:
        raise InputError(
            f"{file.parent} is a run folder of version {content.get('schema', 'unknown')}",
            f"version {SCHEMA}",
            "use the release of mescal that wrote it, or run it again",
        )
    return content


def _flat(by_name: Mapping[str, Any]) -> np.ndarray:
    parts = [np.ravel(np.asarray(rows, np.float64)) for rows in by_name.values()]
    return np.concatenate(parts) if parts else np.zeros(0)

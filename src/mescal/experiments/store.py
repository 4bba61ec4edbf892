"""The store: a run is a folder.

    config.json    what was asked; written first
    solution.npz   x, slack and multipliers as flat arrays, in the order of parameters and constraints
    history.csv    one line per outer iteration; see `history_file`
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
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..errors import InputError
from ..files import as_path, cannot_read, read_arrays, read_json, write_json, write_text, write_whole
from ..run import Result
from . import shapes
from .history_file import history_text, read_history
from .result_file import result_content

SCHEMA = 1
CONFIG, RESULT, HISTORY, SOLUTION, REPORT = "config.json", "result.json", "history.csv", "solution.npz", "report.html"
FILES = (RESULT, HISTORY, SOLUTION, CONFIG)  # what a run writes, in the order in which they go
PAGE = b'<meta name="generator" content="mescal">'  # in the head of every report
UNFINISHED = ("interrupted",)  # statuses of a stored result that another attempt may replace


@dataclass(frozen=True)
class StoredRun:
    """A run as it lies in its folder.

    **Arguments:**

    - `path`: the folder.
    - `config`: what was asked.
    - `result`: what came out; None while the run has not ended.
    - `history`: the columns of history.csv; empty while the run has not ended.
    """

    path: Path
    config: dict[str, Any]
    result: dict[str, Any] | None
    history: dict[str, np.ndarray]

    @property
    def finished(self) -> bool:
        """Whether the run came to its end, certified or not; an interrupted one did not."""
        return self.result is not None and self.result["status"] not in UNFINISHED

    @property
    def converged(self) -> bool:
        """Whether the run ended with a certificate."""
        return self.result is not None and bool(self.result["converged"])

    def solution(self) -> dict[str, np.ndarray]:
        """`x`, `slack` and `multipliers` of a run that has ended."""
        if self.result is None:
            raise InputError(
                f"{self.path} holds no solution", "a run that has ended", "run `mescal resume` on it first"
            )
        try:
            arrays = read_arrays((self.path / SOLUTION).read_bytes())
            found = {name: arrays[name] for name in ("x", "slack", "multipliers")}
            if any(array.ndim != 1 or array.dtype.kind != "f" for array in found.values()):
                raise ValueError
        except OSError as error:
            raise cannot_read(self.path / SOLUTION, error) from error
        except (KeyError, ValueError):
            raise InputError(
                f"{self.path / SOLUTION} holds no solution", "a file that mescal wrote", "run it again with --force"
            ) from None
        return found


def write_config(path: Path | str, config: Mapping[str, Any]):
    """Begin a run folder: say what was asked. The folder is made if it is not there."""
    refuse_others(Path(path))
    write_json(Path(path) / CONFIG, {"schema": SCHEMA, **config})


def write_result(path: Path | str, result: Result, *, problem: str, about: Mapping[str, Any]) -> StoredRun:
    """Complete a run folder, result.json last.

    **Arguments:**

    - `result`: what `minimize` returned.
    - `problem`: the name of the problem.
    - `about`: what else result.json says about it: its parameters, description, constraints.
    """
    folder = Path(path)
    refuse_others(folder)
    leaves = [
        np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(result.x) if isinstance(leaf, (np.ndarray, jax.Array))
    ]
    x, slack, multipliers = np.concatenate(leaves), _flat(result.slack), _flat(result.multipliers)
    write_whole(
        folder / SOLUTION, lambda file: np.savez(file, x=x, slack=slack, multipliers=multipliers, schema=SCHEMA)
    )
    history = history_text(result.history, result.multipliers)
    write_text(folder / HISTORY, history)
    files = {HISTORY: hashlib.sha256(history.encode()).hexdigest()}
    write_json(folder / RESULT, {"schema": SCHEMA, **result_content(result, problem, about), "files": files})
    return load_run(folder)


def load_run(path: Path | str) -> StoredRun:
    """The run that a folder holds."""
    folder = as_path(path, "path")
    if not is_run(folder):
        found = "is not a run folder: it has no config.json" if folder.is_dir() else "is not a folder"
        raise InputError(f"{folder} {found}", "a folder written by `mescal solve --out`", "check the path")
    config = _current(folder / CONFIG, shapes.CONFIG)
    result = _current(folder / RESULT, shapes.RESULT) if (folder / RESULT).exists() else None
    history = {} if result is None else _read_history(folder / HISTORY, result)
    return StoredRun(folder, config, result, history)


def load_runs(paths: Path | str | Iterable[Path | str]) -> list[StoredRun]:
    """The runs of folders: a run folder is itself, any other folder stands for every run folder below it.

    In the order in which they were given and, below one folder, of their names; each once.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    folders: dict[Path, None] = {}
    for path in given:
        folders.update(dict.fromkeys(run_folders(path)))
    return [load_run(folder) for folder in folders]


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


def _read_history(file: Path, result: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The history, of which result.json holds the digest: a changed digit could not be told otherwise."""
    try:
        content = file.read_bytes()
    except OSError as error:
        raise cannot_read(file, error) from error
    known = result.get("files", {}).get(file.name)
    if known is not None and hashlib.sha256(content).hexdigest() != known:
        raise InputError(
            f"{file} is not what was written: its sha256 is another than result.json says",
            "the file as the run left it",
            "restore it from a copy, or run it again with --force",
        )
    return read_history(file, content)


def _current(file: Path, shape: Mapping[str, Any]) -> dict[str, Any]:
    content = read_json(file)
    if content.get("schema") != SCHEMA or content["schema"] is True:
        raise InputError(
            f"{file.parent} is a run folder of version {content.get('schema', 'unknown')}",
            f"version {SCHEMA}",
            "use the release of mescal that wrote it, or run it again",
        )
    shapes.check_shape(file, content, shape)
    return content


def _flat(by_name: Mapping[str, Any]) -> np.ndarray:
    parts = [np.ravel(np.asarray(rows, np.float64)) for rows in by_name.values()]
    return np.concatenate(parts) if parts else np.zeros(0)

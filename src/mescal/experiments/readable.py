"""Runs that can be read, of many: one that cannot is left out and named, and does not keep the others from being seen."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from .store import StoredRun, load_run, run_folders
from .task import Task


class Readable(NamedTuple):
    """The runs, and why others were left out, by folder."""

    runs: list[StoredRun]
    left_out: dict[Path, InputError]


def load_readable(paths: Iterable[Path | str], tasks: bool = False) -> Readable:
    """The runs of folders, as `load_runs` finds them; an error where there is but one and it cannot be read.

    With `tasks`, those whose config.json is no whole task are left out as well: they can be shown and not compared.
    """
    folders = dict.fromkeys(folder for path in paths for folder in run_folders(path))
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

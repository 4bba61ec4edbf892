"""`mescal resume`: carry a run that did not come to its end to its end."""

from pathlib import Path
from typing import Annotated

import typer

from ..experiments import Task, load_run
from . import options
from .solve import carry_out


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.", show_default=False)],
    as_json: options.Json = False,
    quiet: options.Quiet = False,
):
    """Carry on a run that was killed or interrupted; a finished one is shown.

    Everything needed is in the folder's config.json. Without a checkpoint the run starts over: the same seed leads to the
    same end.

    **Example:**

    ```text
    mescal resume runs/a
    ```
    """
    carry_out(Task.from_config(load_run(run).config), run, force=False, as_json=as_json, quiet=quiet)

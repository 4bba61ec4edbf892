"""The command line: `mescal solve`, `certify`, `report` and the others, one file per command.

It needs the extra `cli` (typer, rich, joblib); the library does not, and importing it imports none of these.
"""

import os
import sys

from ..distribution import displaced, install

INTERRUPTED = 130


def main() -> int:
    """The console script `mescal`: 0 certified, 1 finished without a certificate or failed, 2 usage, 130 interrupted."""
    if said := displaced():
        print(said, file=sys.stderr)
        return 1
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(
            f"The command line needs {error.name}, which is not installed.\n"
            "  Expected: mescal with its extra for the command line.\n"
            f"  What to do: {install('cli')}, or use the library: python -c 'import mescal'.",
            file=sys.stderr,
        )
        return 1
    try:
        from .app import app

        app(prog_name="mescal")
    except KeyboardInterrupt:
        _leave_at_once()
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:
            _leave_at_once()
        raise
    return 0


def _leave_at_once():
    """Leave without tearing down: JAX interrupted in the middle of a compilation can crash when Python takes it apart."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)

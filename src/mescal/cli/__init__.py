"""The command line: `mescal solve`, `certify`, `report` and the others, one file per command.

It needs the extra `cli` (typer, rich, joblib); the library does not, and importing it imports none of these.
"""

import sys


def main() -> int:
    """The console script `mescal`: 0 certified, 1 finished without a certificate or failed, 2 usage, 130 interrupted."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        print(
            f"The command line needs {error.name}, which is not installed.\n"
            "  Expected: mescal with its extra for the command line.\n"
            "  What to do: pip install 'mescal[cli]', or use the library: python -c 'import mescal'.",
            file=sys.stderr,
        )
        return 1
    from .app import app

    app(prog_name="mescal")
    return 0

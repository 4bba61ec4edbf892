"""Where commands write: results to standard output, progress and complaints to standard error."""

import os
import sys

from rich.console import Console

WIDE = 140  # columns where no terminal says how many there are


def results() -> Console:
    """Standard output."""
    return _console(sys.stdout.isatty(), stderr=False)


def complaints() -> Console:
    """Standard error."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(terminal: bool, stderr: bool) -> Console:
    # Made anew each time, since tests and shells exchange the streams.
    width = None if terminal or "COLUMNS" in os.environ else WIDE
    return Console(stderr=stderr, width=width, highlight=False)

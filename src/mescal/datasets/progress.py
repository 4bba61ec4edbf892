"""How far a download is, on standard error: a bar where rich is installed, a line of text where it is not."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int | None], None]  # bytes so far, bytes in all (None: not known)


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

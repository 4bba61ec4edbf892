"""How much of the source a reader walks through who follows one call: files, functions and lines of `src/mescal` that Python runs;
and how large its rooms are.

One `minimize(solver="spider")`, its certificate included, and one `certify`, on a small problem with two populations, each in a
process of its own, so that whatever is traced is walked through, too. What runs when a file is imported is left out. Lines are
those that Python ran; those of the files are all that they have.
"""

import inspect
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import mescal

from ._measure import Report
from ._problems import neyman_pearson, normal_rows

PACKAGE = Path(mescal.__file__).parent
TARGETS = {"minimize, spider": 35, "certify": 20}  # files
ROWS, WIDTH = (80, 60), 3


def run(quick: bool) -> Report:
    """Both walks."""
    report = Report({"rows": ROWS, "width": WIDTH})
    for name, target in TARGETS.items():
        command = [sys.executable, "-m", "benchmarks.walks", name]
        done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
        files: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
        counts = {what: sum(len(found[what]) for found in files.values()) for what in ("functions", "lines")}
        whole = sum(len((PACKAGE / file).read_text(encoding="utf-8").splitlines()) for file in files)
        report.add("one call", call=name, files=len(files), **counts, lines_of_these_files=whole)
        for file, found in sorted(files.items()):
            sizes = {what: len(found[what]) for what in ("functions", "lines")}
            report.add(f"files of one call: {name}", file=file, **sizes)
        report.hold(f"files of src/mescal in one {name}", len(files), target)
    for room, sizes in rooms().items():
        report.add(
            "rooms", room=room, files=len(sizes), lines=sum(sizes), median_of_a_file=int(statistics.median(sizes))
        )
    return report


def rooms() -> dict[str, list[int]]:
    """Lines of every file, by folder of the package."""
    found: dict[str, list[int]] = {"all": []}
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE).parts
        lines = len(path.read_text(encoding="utf-8").splitlines())
        for room in (inside[0] if len(inside) > 1 else "beside the rooms", "all"):
            found.setdefault(room, []).append(lines)
    return found


class Walk:
    """By file of the package, the functions and the lines that Python ran while it was switched on."""

    def __init__(self):
        self.files: dict[str, dict[str, set]] = {}
        self._known: dict[Any, str | None] = {}

    def follow(self, call: Callable[[], Any]) -> dict[str, dict[str, list]]:
        """What `call` walks through, in this thread."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            call()
        finally:
            sys.settrace(before)
        return {file: {what: sorted(found) for what, found in parts.items()} for file, parts in self.files.items()}

    def _enter(self, frame: FrameType, event: str, _: Any) -> Callable | None:
        code = frame.f_code
        if code not in self._known:
            self._known[code] = self._file(frame)
        file = self._known[code]
        if file is None or _importing(frame):
            return None
        found = self.files.setdefault(file, {"functions": set(), "lines": set()})
        found["functions"].add(f"{code.co_firstlineno}: {code.co_qualname}")
        lines = found["lines"]

        def line(frame: FrameType, event: str, _: Any) -> Callable:
            lines.add(frame.f_lineno)
            return line

        return line

    @staticmethod
    def _file(frame: FrameType) -> str | None:
        """The file of a function of the package; None for others, and for what is no function."""
        path = Path(frame.f_code.co_filename)
        is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        return path.relative_to(PACKAGE).as_posix() if is_function and path.is_relative_to(PACKAGE) else None


def _importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported further up."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _calls() -> dict[str, Callable[[], Any]]:
    positives, negatives = normal_rows(ROWS, WIDTH, "float32")
    x0 = 0 * positives[0]

    def problem() -> mescal.Problem:
        return neyman_pearson(positives, negatives)

    return {
        "minimize, spider": lambda: mescal.minimize(problem(), x0, solver="spider", tol=0.05),
        "certify": lambda: mescal.certify(problem(), x0, tol=0.05),
    }


if __name__ == "__main__":
    print(json.dumps(Walk().follow(_calls()[sys.argv[1]])))

"""Which code made a run: a digest of the sources that its numbers follow from, so that runs of edited code are run again.

Nearly every file of the engine takes part in every run, so its rooms count whole. In the two rooms that hold one algorithm per
file, their folders too, a run counts the file of its own algorithm and what that and the engine import there: who edits one
solver gets new runs of that one and of those that build on it, and the others stay. Sources count byte for byte.

A solver in a file of the user's own may build on any of them, so all count; its file, and a problem's, do not, since their digests
are part of what was asked. Nor does what reads, draws and shows runs; nor versions of libraries, which result.json says.
"""

import ast
import hashlib
import inspect
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
ENGINE = ("sets", "problem", "oracle", "curvature", "theory", "certificate", "run", "datasets", "problems")
SHARED = ("blas.py", "checks.py", "compiling.py")  # of the modules beside the rooms, those that numbers depend on
ALGORITHMS = ("solvers", "baselines")
LONG = 16  # digits
_parsing = threading.Lock()  # a thread watches a sweep, and the parser of CPython 3.11 cannot be in two at once


def code_of(algorithm: Any) -> str:
    """The digest for a solver or a baseline of the package."""
    return _digest(Path(inspect.getfile(type(algorithm))).resolve())


def code_of_all() -> str:
    """The digest for what may be made of any of them."""
    return _digest(None)


@cache
def _digest(own: Path | None) -> str:
    total = hashlib.sha256()
    for path in sources(own):
        total.update(
            f"{path.relative_to(PACKAGE).as_posix()}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
        )
    return total.hexdigest()[:LONG]


def sources(own: Path | None) -> list[Path]:
    """The files that count for the algorithm of a file; None: for any."""
    engine = [PACKAGE / name for name in SHARED] + [path for room in ENGINE for path in (PACKAGE / room).rglob("*.py")]
    if own is None:
        return sorted({*engine, *(path for room in ALGORITHMS for path in (PACKAGE / room).rglob("*.py"))})
    found, new = set(engine), [own, *engine]
    while new:
        path = new.pop()
        found.add(path)
        if path.name != "__init__.py" or path.parent.name not in ALGORITHMS:  # which name every algorithm
            new += [file for file in _imported(path) if file not in found]
    return sorted(found)


@cache
def _imported(path: Path) -> tuple[Path, ...]:
    """The files of algorithms that a file imports."""
    return tuple(_algorithms(path))


def _algorithms(path: Path) -> Iterator[Path]:
    text = path.read_bytes()
    if not _is_algorithm(path) and not any(room.encode() in text for room in ALGORITHMS):
        return
    inside = ("mescal", *path.relative_to(PACKAGE).parent.parts)
    with _parsing:
        tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            base = (inside[: len(inside) - node.level + 1] if node.level else ()) + module
            targets = [(*base, alias.name) for alias in node.names]
        else:
            continue
        for target in targets:
            if len(target) > 1 and target[0] == "mescal" and target[1] in ALGORITHMS:
                deep = [PACKAGE.joinpath(*target[1:end]).with_suffix(".py") for end in (4, 3)]
                yield next(place for place in (*deep, PACKAGE / target[1] / "__init__.py") if place.is_file())


def _is_algorithm(path: Path) -> bool:
    return path.relative_to(PACKAGE).parts[0] in ALGORITHMS

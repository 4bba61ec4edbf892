"""A watchdog: names what a run hangs in, when nothing has moved for a long time. It ends nothing."""

import linecache
import logging
import sys
import sysconfig
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

HERE = str(Path(__file__).resolve().parents[1])
LIBRARIES = tuple({str(Path(sysconfig.get_paths()[name])) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
COMPILER = str(Path("jax", "_src", "compiler.py"))
COMPILING = (
    "a program is being compiled, which ends with it and not before: functions with fewer equations (jax.lax.scan for loops) "
    "compile faster, and mescal.keep_compiled keeps what was compiled"
)
GROWTH = 4.0  # of the patience, after every complaint

log = logging.getLogger("mescal")


class Watchdog:
    """Watches a run from a thread of its own while it is open, once or again; `move` says that something has happened."""

    def __init__(self, patience: float | None):
        self.patience = float("inf") if patience is None else patience
        self._moved, self._what = time.monotonic(), "the set-up"
        self._over = threading.Event()

    def __enter__(self) -> "Watchdog":
        if self.patience < float("inf"):
            self._moved, self._over = time.monotonic(), threading.Event()
            threading.Thread(target=self._watch, args=(self._over,), name="mescal-watchdog", daemon=True).start()
        return self

    def __exit__(self, *_: Any):
        self._over.set()

    def move(self, what: str):
        """Something has happened, and `what` comes next."""
        self._moved, self._what = time.monotonic(), what

    def _watch(self, over: threading.Event):
        patience, seen = self.patience, self._moved
        while not over.wait(min(patience / 4, 60.0)):
            if self._moved != seen:
                patience, seen = self.patience, self._moved
            waited = time.monotonic() - seen
            if waited > patience:
                log.warning("%s", complaint(self._what, waited))
                patience *= GROWTH


def complaint(what: str, waited: float) -> str:
    """What is being waited for, and in which function of the user's, if any thread is inside of one, or in the compiler."""
    frames = list(sys._current_frames().values())
    inside = [place for frame in frames if (place := _users(frame)) is not None]
    elsewhere = COMPILING if any(map(_compiles, frames)) else "in compiled code or in a library"
    where = "; ".join(sorted(set(inside))) or elsewhere
    return f"Nothing has moved for {waited:.0f} s, in {what}: {where}"


def _compiles(frame: FrameType | None) -> bool:
    """Whether a stack is inside of JAX's call of the compiler."""
    while frame is not None:
        if frame.f_code.co_filename.endswith(COMPILER):
            return True
        frame = frame.f_back
    return False


def _users(frame: FrameType | None) -> str | None:
    """The innermost function on a stack that belongs neither to this package nor to a library, if mescal or JAX called it."""
    found = None
    called = False
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith((HERE, *LIBRARIES)) or name.startswith("<"):
            called = called or name.startswith(HERE) or "jax" in name
        elif found is None:
            line = linecache.getline(name, frame.f_lineno).strip()
            found = f"the function {frame.f_code.co_qualname} ({Path(name).name}, line {frame.f_lineno}: {line})"
            called = False
        frame = frame.f_back
    return found if called else None

"""A run from outside: its clock, what ends it there (budgets, signals, the user's callback), and a watchdog.

The watchdog ends nothing: when nothing has moved for a long time, it names what the run hangs in.
"""

import inspect
import linecache
import logging
import signal
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import jax

from ..oracle import Tally
from ..problem import agree
from .settings import Settings
from .status import Status

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_EVENTS = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")
_spent = [0.0]

HERE = str(Path(__file__).resolve().parents[1])
LIBRARIES = tuple({str(Path(sysconfig.get_paths()[name])) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
COMPILER = str(Path("jax", "_src", "compiler.py"))
COMPILING = (
    "a program is being compiled, which ends with it and not before: functions with fewer equations (jax.lax.scan for loops) "
    "compile faster, and mescal.keep_compiled keeps what was compiled"
)
GROWTH = 4.0  # of the patience, after every complaint

log = logging.getLogger("mescal")


def _listen(event: str, duration_secs: float, **_: str | int):
    if event.rsplit("/", 1)[-1] in _EVENTS:
        _spent[0] += duration_secs


jax.monitoring.register_event_duration_secs_listener(_listen)


class Clock:
    """Seconds of a run, and of those the ones that JAX spent compiling; one that is carried on counts what it took before."""

    def __init__(self):
        self.started, self.compiled_before = time.perf_counter(), _spent[0]
        self.earlier, self.compiled_earlier = 0.0, 0.0

    def carry_on(self, seconds: float, compiling: float):
        """Count what a run took before it was carried on here."""
        self.earlier, self.compiled_earlier = seconds, compiling

    @property
    def here(self) -> float:
        """Since the start of this clock: what limits on seconds are about."""
        return time.perf_counter() - self.started

    @property
    def seconds(self) -> float:
        """Of the whole run."""
        return self.earlier + self.here

    @property
    def compiling(self) -> float:
        """Of those, tracing, lowering and compiling."""
        return self.compiled_earlier + min(_spent[0] - self.compiled_before, self.here)


class Signals:
    """Ctrl-C and SIGTERM end a run at the next chunk, with all that it has; a second one ends it at once.

    While it is open, signals are remembered instead of raised; in other threads than the main one, nothing changes. A signal
    that the process was started to ignore stays ignored: Ctrl-C does not reach what a script sent to the background. One that
    is open around another hears what that one hears: of several runs in a row, the rest are not begun.
    """

    def __init__(self, asked: bool = False):
        self.asked = asked
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        if threading.current_thread() is threading.main_thread():
            heard = (number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN)
            self._before = {number: signal.signal(number, self._hear) for number in heard}
        return self

    def __exit__(self, *_: Any):
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _hear(self, number: int, frame: FrameType | None):
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        around = getattr(self._before.get(number), "__self__", None)
        if isinstance(around, Signals):
            around.asked = True
        log.warning(
            "Asked to stop (%s): at the end of this chunk; once more to stop at once", signal.Signals(number).name
        )


def used_up(settings: Settings, clock: Clock, signals: Signals, work: Tally) -> Status | None:
    """Whether a signal or a budget ends the run here."""
    if agree(signals.asked):
        return Status.INTERRUPTED
    if agree(clock.here > settings.max_seconds):
        return Status.TIME_LIMIT
    return Status.WORK_LIMIT if work.total > settings.max_work else None


def called_off(settings: Settings, row: Any, x: Callable[[], Any]) -> Status | None:
    """Whether the user's callback ends the run after a row of the history; `x` makes the point, where the callback takes it."""
    callback: Callable[..., Any] | None = settings.callback
    if callback is None:
        return None
    try:
        return Status.STOPPED if agree(bool(callback(row, x()) if _takes_two(callback) else callback(row))) else None
    except KeyboardInterrupt:
        return Status.INTERRUPTED


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function cannot be called without a second argument: one that has a default is its own affair."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # built-in functions may have none
        return False
    needed = [p for p in given if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) == 2


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

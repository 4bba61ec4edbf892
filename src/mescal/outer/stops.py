"""Being asked to stop: Ctrl-C and SIGTERM end a run at the next chunk, with all that it has; a second one ends it at once."""

import logging
import signal
import threading
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)

log = logging.getLogger("mescal")


class Stops:
    """While it is open, signals are remembered instead of raised; in other threads than the main one, nothing changes.

    A signal that the process was started to ignore stays ignored: Ctrl-C does not reach what a script sent to the
    background.
    """

    def __init__(self):
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Stops":
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
        log.warning(
            "Asked to stop (%s): at the end of this chunk; once more to stop at once", signal.Signals(number).name
        )

"""How long the judge may take. What is measured by then stands, with the interval that it has; the rest says that it is missing.

The first look at a point, its rounding bounds and its multipliers are made in any case. Then the clock is looked at before the
Hessian is formed, between difference quotients, between products of Lanczos, faces, steps of searches, and looks at a stream.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..problem import agree

NEVER = float("inf")


@dataclass(frozen=True)
class Budget:
    """Until when to go on, on the clock of `time.perf_counter`, unless `asked` says to stop, which counts from `least` on."""

    until: float = NEVER
    asked: Callable[[], bool] | None = None
    least: float = 0.0

    @classmethod
    def of(cls, seconds: float, asked: Callable[[], bool] | None = None, least: float = 0.0) -> "Budget":
        """So many seconds from now, and no less than `least`."""
        now = time.perf_counter()
        return cls(now + max(seconds, least), asked, now + least)

    @property
    def is_timed(self) -> bool:
        """Whether there is an end on the clock, so that what cannot end by then is better not begun."""
        return self.until < NEVER

    @property
    def over(self) -> bool:
        """Whether to come to an end; several processes decide together."""
        if not self.is_timed and self.asked is None:
            return False
        now = time.perf_counter()
        return agree(now >= self.until or (self.asked is not None and now >= self.least and self.asked()))

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self.until - time.perf_counter())

    def affords(self, seconds: float) -> bool:
        """Whether something that takes so long would end in time."""
        return not (self.over or (self.is_timed and agree(seconds > self.left)))

    def share(self, part: float) -> "Budget":
        """A part of what is left."""
        return self if not self.is_timed else replace(self, until=time.perf_counter() + part * self.left)


ENDLESS = Budget()

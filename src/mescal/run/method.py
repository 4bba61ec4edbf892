"""What a method is for the loop: five verbs around a leg, each a function of what does not change and of the state."""

from typing import Any, Protocol

from ..certificate import Certificate
from .setup import Setup
from .state import Leg, Reading, State
from .status import Status


class Method(Protocol):
    """MESCAL, or a baseline. A leg is an inner solve, or some steps of a method that has no inner solves.

    Nothing is written into: what a verb costs, and what it finds, is in the state that it returns.
    """

    def cap(self, here: Setup) -> int:
        """Legs at most."""
        ...

    def reason(self, here: Setup, state: State) -> str:
        """Why what takes the steps was chosen; empty where nothing had to be chosen."""
        ...

    def oracle(self, here: Setup, state: State) -> Any:
        """What the steps of the next leg see."""
        ...

    def plan(self, here: Setup, state: State, oracle: Any, goal: Any = None) -> tuple[State, Leg]:
        """The next leg; that of a `goal` which a checkpoint brought asks nothing anew."""
        ...

    def init(self, here: Setup, state: State, oracle: Any, leg: Leg, copy: int = 0) -> Any:
        """The state of its steps before the first."""
        ...

    def step(self, here: Setup, oracle: Any, leg: Leg) -> Any:
        """The state after a chunk of steps; how many never depends on a clock, so that runs can be repeated."""
        ...

    def read(
        self, here: Setup, state: State, oracle: Any, leg: Leg, stop: Status | None
    ) -> tuple[State, Reading | None]:
        """What came out of a leg that is over; no reading where it is not finite."""
        ...

    def learn(self, here: Setup, state: State, oracle: Any, reading: Reading, refused: Certificate | None) -> State:
        """What follows for the next leg; `refused` is the certificate that was not enough."""
        ...

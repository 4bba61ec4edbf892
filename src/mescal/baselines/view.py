"""What a baseline may ask between two legs: a view of the state, from which another one follows; nothing is written into."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..oracle import Lagrangian
from ..oracle.subproblem import Subproblem
from ..run.between_solves import SAMPLED, gradient_tolerance, ready
from ..run.setup import Setup
from ..run.state import State
from .bounds import Bounds
from .measure import Seen

FIRST_LEG, LONGEST_LEG, LEG_GROWTH = 64, 8192, 1.25  # steps: rows and measurements are spaced geometrically
DECREASE = 0.5  # of the best residual so far: less than this is no progress


class Memory(NamedTuple):
    """What is kept between legs as arrays: the method's own, multipliers of what it minimises, the last measurement, bounds."""

    own: Any
    dual: np.ndarray
    seen: Seen
    bounds: Bounds
    looked_from: Any  # where the bounds are from


@dataclass(frozen=True)
class Notes:
    """What is kept as numbers."""

    large_batch: int  # thetas of the last measurement ...
    full_batch: int  # ... and of one at a candidate
    residual: float = np.inf
    best: float = np.inf  # before the last leg
    refusals: int = 0
    patience: int = 0  # legs before the judge is asked again


@dataclass(frozen=True)
class View:
    """A run of a baseline between two legs."""

    here: Setup
    state: State

    @property
    def memory(self) -> Any:
        """The method's own."""
        return self.state.memory.own

    @property
    def dual(self) -> np.ndarray:
        """The multipliers of the function that the method minimises."""
        return self.state.memory.dual

    @property
    def penalty(self) -> float:
        """Its penalty."""
        return self.state.penalty

    @property
    def seen(self) -> Seen:
        """The last measurement."""
        return self.state.memory.seen

    @property
    def bounds(self) -> Bounds:
        """Estimates of smoothness around here."""
        return self.state.memory.bounds

    def learnt(self, penalty: float | None = None, **memory: Any) -> "View":
        """With another penalty, or other parts of the memory."""
        kept = self.state.memory._replace(**memory)
        penalty = self.penalty if penalty is None else penalty
        return replace(self, state=replace(self.state, memory=kept, penalty=penalty))

    def subproblem(self) -> Subproblem:
        """The augmented Lagrangian at these multipliers and this penalty, as the host sees it ..."""
        state = self.state
        return self.here.subproblem(state.scales, self.dual, state.penalty, state.micro)

    def oracle(self) -> Lagrangian:
        """... and as compiled steps do."""
        return self.subproblem().lagrangian

    def array(self, values: Any) -> jax.Array:
        """Numbers as an array of the run's type."""
        return jnp.asarray(np.asarray(values, self.here.dtype))

    @property
    def target(self) -> float:
        """The stationarity that is asked for; less than the tolerance where it is only estimated."""
        sampled = SAMPLED if self.here.program.population is None else 1.0
        return gradient_tolerance(self.here, self.state) * self.state.tighter * sampled

    @property
    def violation(self) -> float:
        """The violation that a candidate may have."""
        return ready(self.here, self.state) * self.state.tighter

    @property
    def leg(self) -> int:
        """Steps of the next leg of a method that has no lengths of its own."""
        return int(min(FIRST_LEG * LEG_GROWTH**self.state.outer, LONGEST_LEG))

    @property
    def improved(self) -> bool:
        """Whether the last leg brought the residual down to a share of the best before."""
        return self.state.notes.residual <= DECREASE * self.state.notes.best

    def least(self, batch: int) -> int:
        """Steps before a leg may end by itself: a quarter, and enough to cost as much as the measurement that follows."""
        return int(np.clip(self.state.notes.large_batch // (2 * batch), self.leg // 4, self.leg))

"""The one compiled loop: steps of a sub-solver until it is done or a chunk of steps has passed.

Everything that changes between outer iterations is an array leaf of the arguments, so a solver and a problem have one
compiled program. A chunk is the unit of progress, budgets and interruption.
"""

from typing import Any, Protocol

import jax
import jax.numpy as jnp

from ..compiling import compiled
from ..oracle import Lagrangian
from .base import RUNNING


class Driven(Protocol):
    """What can be driven: a sub-solver, or whatever else has states with a `progress`."""

    def init(self, oracle: Lagrangian, z: jax.Array, plan: Any, memory: Any, key: jax.Array) -> Any:
        """The first state."""
        ...

    def step(self, oracle: Lagrangian, state: Any, plan: Any) -> Any:
        """The next state."""
        ...


@compiled
def begin(solver: Driven, oracle: Lagrangian, z: jax.Array, plan: Any, memory: Any, key: jax.Array) -> Any:
    """The state at the start of an inner solve."""
    return solver.init(oracle, z, plan, memory, key)


@compiled
def advance(solver: Driven, oracle: Lagrangian, state: Any, plan: Any, chunk: jax.Array) -> Any:
    """The state after at most `chunk` more calls of `step`."""

    def going(carry):
        calls, state = carry
        return (calls < chunk) & (state.progress.status == RUNNING)

    def body(carry):
        calls, state = carry
        return calls + 1, solver.step(oracle, state, plan)

    return jax.lax.while_loop(going, body, (jnp.int32(0), state))[1]

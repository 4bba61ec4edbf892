"""The one loop around a sub-solver: steps until it is done or a chunk of steps has passed.

A chunk is the unit of progress, budgets and interruption. Practical solvers step on the host, around small compiled programs;
theory modes and baselines are compiled whole, and everything that changes between outer iterations is an array leaf of their
arguments, so that a solver and a problem have one program.
"""

from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from ..compiling import compiled
from ..oracle import Lagrangian
from ..oracle.subproblem import Subproblem
from .base import RUNNING, Goal, SubSolver


class Driven(Protocol):
    """What can be compiled whole: whatever has states with a `progress`."""

    def init(self, oracle: Any, z: Any, plan: Any, memory: Any, key: Any, /) -> Any:
        """The first state."""
        ...

    def step(self, oracle: Any, state: Any, plan: Any, /) -> Any:
        """The next state."""
        ...


def begin(solver: SubSolver, sub: Subproblem, z: Any, plan: Any, memory: Any, key: Any) -> Any:
    """The state at the start of an inner solve."""
    if solver.host:
        return solver.init(sub, np.asarray(z), plan, memory, key)
    return compiled_begin(solver, sub.lagrangian, z, plan, memory, key)


def advance(
    solver: SubSolver, sub: Subproblem, state: Any, plan: Any, goal: Goal, chunk: int, over: Callable[[], bool] = bool
) -> Any:
    """The state after at most `chunk` more calls of `step`; on the host, fewer where time is `over` between two of them."""
    if not solver.host:
        return compiled_advance(solver, sub.lagrangian, state, plan, np.int32(chunk))
    for _ in range(chunk):
        if int(state.progress.status) != RUNNING:
            break
        state = solver.step(sub, state, plan, goal)
        if over():
            break
    return state


@compiled
def compiled_begin(solver: Driven, oracle: Lagrangian, z: jax.Array, plan: Any, memory: Any, key: jax.Array) -> Any:
    """`begin` for what is compiled whole."""
    return solver.init(oracle, z, plan, memory, key)


@compiled
def compiled_advance(solver: Driven, oracle: Lagrangian, state: Any, plan: Any, chunk: jax.Array) -> Any:
    """`advance` for what is compiled whole."""

    def going(carry):
        calls, state = carry
        return (calls < chunk) & (state.progress.status == RUNNING)

    def body(carry):
        calls, state = carry
        return calls + 1, solver.step(oracle, state, plan)

    return jax.lax.while_loop(going, body, (jnp.int32(0), state))[1]

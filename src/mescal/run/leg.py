"""One leg: chunks of steps until it is over or a budget is used up, once more with less memory where the device has too little."""

import logging
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from ..blas import one_thread
from ..errors import InputError
from ..oracle import memory
from ..solvers.base import RUNNING
from .limits import used_up
from .method import Method
from .setup import Setup
from .state import Leg, State
from .status import Status

log = logging.getLogger("mescal")


class OutOfDeviceMemory(InputError, MemoryError):
    """A device that is too small for a problem."""


def to_its_end(
    method: Method, here: Setup, state: State, leg: Leg, copy: int = 0, keep: bool = True
) -> tuple[State, Any, Leg, Status | None]:
    """A leg taken to its end, with what its steps saw, and what stopped it; with `keep`, checkpoints hold it between chunks."""
    while True:
        try:
            # far steps may overflow: what that makes is infinite, and no step is taken there
            with one_thread(), np.errstate(over="ignore", invalid="ignore"):
                return state, *_chunks(method, here, state, leg, copy, keep)
        except jax.errors.JaxRuntimeError as error:
            if not memory.is_out_of_memory(error):
                raise
            last = error
        if not memory.shrink():
            break
        state = replace(state, micro=here.micro_batch(state.scales))
        log.warning("The device ran out of memory: once more with micro-batches of %d samples", state.micro)
    raise OutOfDeviceMemory(
        f"the device has too little memory for this problem, also with micro-batches of {state.micro} samples",
        "room for the data, a few gradients, and one micro-batch",
        "use float32 data, shard them over more devices, keep them on the disk, or make the model smaller",
    ) from last


def _chunks(
    method: Method, here: Setup, state: State, leg: Leg, copy: int, keep: bool
) -> tuple[Any, Leg, Status | None]:
    """Chunks until the leg is over; an interruption keeps all that was done."""
    here.watchdog.move("the first chunk of a leg, which is compiled where it is new")
    oracle = method.oracle(here, state)
    if leg.inner is None:
        leg = leg._replace(inner=method.init(here, state, oracle, leg, copy))
    begun = leg
    while True:
        try:
            leg = leg._replace(inner=method.step(here, oracle, leg))
            jax.block_until_ready(leg.inner)  # it is kept by now: what interrupts the wait loses nothing
            interrupted = False
        except KeyboardInterrupt:
            if leg is begun:
                raise
            interrupted = True
        here.watchdog.move(f"outer iteration {state.outer}")
        progress = leg.inner.progress
        if int(progress.status) != RUNNING and not interrupted:
            return oracle, leg, None
        work = state.work + progress.work.tally()
        stop = Status.INTERRUPTED if interrupted else used_up(here.settings, here.clock, here.signals, work)
        if keep and here.checkpoints is not None:
            here.checkpoints.save(here, replace(state, leg=leg), force=stop is not None)
        if stop is not None:
            return oracle, leg, stop

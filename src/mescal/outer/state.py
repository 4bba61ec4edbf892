"""What changes in the course of a run: with an unfinished inner solve, all that a checkpoint must hold."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..certificate import Certificate
from ..oracle import Tally
from ..solvers.base import Goal
from .history import History
from .scaling import Scales


class Unfinished(NamedTuple):
    """An inner solve between two chunks: what it was asked for, and the solver's state."""

    goal: Goal
    state: Any


@dataclass
class State:
    """A run between two outer iterations, on the host."""

    z: Any  # parameters and slacks
    multipliers: np.ndarray  # of the problem as stated
    memory: Any  # what the solver learnt and keeps
    scales: Scales
    penalty: float  # in the solver's units
    runaway: float = np.inf  # a violation of this size, in the solver's units, is one that an inner solve ran away to
    retries: int = 0  # inner solves repeated because they ran away
    outer: int = 0  # the present outer iteration
    tighter: float = 1.0  # factor on the inner tolerance, from refusals
    idle: int = 0  # inner solves in a row that ended where they began
    curvature_factor: int = 1  # on curvature batches, from refusals
    last_violation: float = np.inf
    first_violation: float | None = None  # |cbar(x_0)|, the scale of the bounded dual update
    micro: int = 1024  # samples that the device looks at together
    work: Tally = field(default_factory=Tally)
    searches: Tally = field(default_factory=Tally)
    judged: Tally = field(default_factory=Tally)
    history: History = field(default_factory=History)
    certificate: Certificate | None = None  # of the present point; None between iterations
    certify_seconds: float = 0.0


NUMBERS = (
    "penalty",
    "runaway",
    "retries",
    "outer",
    "tighter",
    "idle",
    "curvature_factor",
    "last_violation",
    "first_violation",
    "micro",
    "certify_seconds",
)
TALLIES = ("work", "searches", "judged")
ARRAYS = ("z", "multipliers", "memory")
APART = ("scales", "history", "certificate")  # stored in forms of their own, or never there when a state is stored

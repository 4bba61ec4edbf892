"""Where a run stands, and what a leg of it hands back: records that nothing writes into."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..oracle import Tally
from ..solvers.base import Outcome, Progress
from ..solvers.ray import Ray
from .history import History
from .scaling import Scales
from .status import Status


class Leg(NamedTuple):
    """A leg under way, an inner solve of MESCAL: what it was asked for, that as arrays, and the state of what takes its steps."""

    goal: Any
    plan: Any
    inner: Any = None  # None before its first step
    boost: Any = None  # how independent copies of it are checked, where a theory mode asks for several


class Reading(NamedTuple):
    """What came out of a leg, as the method understands it."""

    outcome: Outcome
    progress: Progress
    ended: int  # the solver's status
    constraint: np.ndarray  # in the problem's units, as are ...
    multipliers: np.ndarray  # ... those at which the point is to be judged
    candidate: bool  # whether it is worth a certificate
    moved: bool = True
    stop: Status | None = None  # a signal or a budget that ended it
    copies: int = 1
    measured: Any = None  # what the method saw beside


@dataclass(frozen=True)
class State:
    """A run between two looks at the clock, on the host: all that a checkpoint holds."""

    z: Any  # parameters and slacks
    multipliers: np.ndarray  # of the problem as stated
    memory: Any  # what the method learnt and keeps, as arrays ...
    notes: Any  # ... and as numbers
    scales: Scales
    penalty: float  # in the solver's units
    outer: int = 0  # legs that are over
    tighter: float = 1.0  # factor on the tolerance of a leg, from refusals
    curvature_factor: int = 1  # on curvature batches, from refusals
    questions: int = 0  # that the judge has been asked
    micro: int = 1024  # samples that the device looks at together
    work: Tally = field(default_factory=Tally)
    searches: Tally = field(default_factory=Tally)
    judged: Tally = field(default_factory=Tally)
    history: History = field(default_factory=History)
    leg: Leg | None = None  # None between two
    ray: Ray | None = None  # of endless descent from z, with which a run ends

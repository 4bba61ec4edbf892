"""Where a run stands: what budgets, record and judge look at, whoever runs."""

from typing import Any, Protocol

import numpy as np

from ..certificate import Certificate
from ..oracle import Tally
from ..problem import EqualityForm, Problem, Program
from .clock import Clock
from .history import History
from .scaling import Scales
from .settings import Settings
from .stops import Stops
from .watchdog import Watchdog


class Standing(Protocol):
    """The part that a run of `minimize` and one of a baseline have in common."""

    problem: Problem
    program: Program
    settings: Settings
    solver: Any  # what is driven: it has a name, a chunk, `init` and `step`
    clock: Clock
    scales: Scales
    history: History
    work: Tally
    searches: Tally
    judged: Tally
    penalty: float  # in the solver's units
    outer: int
    begun: int  # outer iterations
    z: Any
    multipliers: np.ndarray
    certificate: Certificate | None
    certify_seconds: float
    tighter: float
    curvature_factor: int
    stops: Stops
    watchdog: Watchdog

    @property
    def form(self) -> EqualityForm:
        """The equality form in the solver's scales."""
        ...

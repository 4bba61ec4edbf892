"""Runs: the loop, MESCAL as its method, budgets, checkpoints, and what a run hands back."""

from . import checkpoint as checkpoint
from .history import History as History, Row as Row
from .minimize import minimize as minimize
from .result import Result as Result, Spread as Spread
from .settings import Checkpoint as Checkpoint, Outer as Outer, Starts as Starts
from .status import Status as Status

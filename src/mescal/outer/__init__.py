"""The outer loop: MESCAL itself, its dual rule, its budgets, and what it hands back."""

from . import checkpoint as checkpoint
from .history import History as History, Row as Row
from .mescal import minimize as minimize
from .result import Result as Result
from .status import Status as Status

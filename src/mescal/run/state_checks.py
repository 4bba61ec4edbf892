"""What the stored state of a run must hold: numbers, counters, a goal and rows of the kinds that their fields have.

A checksum says that a file is what was written, and not who wrote it: nothing of another kind reaches a solver.
"""

from dataclasses import fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from ..checks import real_number
from ..solvers.base import Goal
from .history import Row
from .state import State

NUMBERS = ("penalty", "outer", "tighter", "curvature_factor", "questions", "micro")  # of a state, stored as they are
TALLIES = ("work", "searches", "judged")

_STORED_AS: dict[Any, Any] = {str: str, dict: dict, tuple: list}  # all other columns of a history hold numbers


def check_state(state: dict[str, Any]):
    """Raise where numbers, counters, the goal or rows of the history are missing or something else."""
    kinds = {field.name: field.type for field in fields(State)}
    for name in NUMBERS:
        _require_number(state[name], kinds[name], name)
    scale = real_number(state["objective_scale"])
    require(state["micro"] >= 1 and scale is not None and scale > 0, "the micro-batch or the scale")
    for name in TALLIES:
        for count in state[name].values():
            _require_number(count, int, name)
    for row in state["history"]:
        for column in fields(Row):
            wanted = _STORED_AS.get(get_origin(column.type) or column.type, (int, float))
            require(isinstance(row[column.name], wanted), f"the history's {column.name}")
    goal = None if state["leg"] is None else state["leg"]["goal"]
    for name, kind in get_type_hints(Goal).items():
        if goal is not None and name != "constants":
            _require_number(goal[name], kind, f"the goal's {name}")


def check_notes(notes: dict[str, Any], like: Any):
    """Raise where what a method keeps as numbers is missing or something else."""
    for field in fields(like):
        _require_number(notes[field.name], field.type, field.name)


def _require_number(value: Any, kind: Any, what: str):
    """Of the kind that a field has: a whole number >= 0, any number, a truth value, or None where that is allowed."""
    if kind is bool:
        return require(isinstance(value, bool), what)
    if value is None:
        return require(isinstance(kind, UnionType) and type(None) in get_args(kind), what)
    require(real_number(value) is not None, what)
    return require(kind is not int or (isinstance(value, int) and value >= 0), what)


def require(right: bool, what: str):
    """Raise, in words for `understood`, where something is not as it must be."""
    if not right:
        raise ValueError(f"{what} is of another kind")

"""A run as numbers and arrays, and back: what a checkpoint file holds of it, and what it must hold.

Structure is never stored. It is that of a run of the same problem, which is made first and then filled in; so a checkpoint
is plain data, and reading one executes nothing. Numbers, counters, a goal and rows are of the kinds that their fields have: a
checksum says that a file is what was written, and not who wrote it, and nothing of another kind reaches a solver.
"""

import itertools
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..checks import real_number
from ..errors import InputError
from ..oracle import Tally
from ..solvers.base import Goal
from ..theory.constants import SubproblemConstants
from ..theory.merit import MeritConstants
from .history import History, Row
from .method import Method
from .scaling import Scales
from .setup import Setup
from .state import Leg, State

ARRAYS = ("z", "multipliers", "memory")
APART = (
    "scales",
    "history",
    "notes",
    "leg",
    "ray",
)  # stored in forms of their own, or never there when a state is stored
NUMBERS = ("penalty", "outer", "tighter", "curvature_factor", "questions", "micro")  # of a state, stored as they are
TALLIES = ("work", "searches", "judged")

_STORED_AS: dict[Any, Any] = {str: str, dict: dict, tuple: list}  # all other columns of a history hold numbers


class Snapshot(NamedTuple):
    """What is stored: JSON content and arrays."""

    content: dict[str, Any]
    arrays: dict[str, np.ndarray]


def take(state: State) -> Snapshot:
    """A run as it stands."""
    content: dict[str, Any] = {name: _number(getattr(state, name)) for name in NUMBERS}
    content |= {name: getattr(state, name).counts for name in TALLIES}
    content["notes"] = {name: _number(value) for name, value in asdict(state.notes).items()}
    content["history"] = [asdict(row) for row in state.history]
    content["objective_scale"] = state.scales.objective
    arrays = {"constraint_scales": np.asarray(state.scales.constraints), "inward": np.asarray(state.scales.inward)}
    for name in ARRAYS:
        arrays |= _leaves(name, getattr(state, name))
    content["leg"] = None if state.leg is None else {"goal": _goal(state.leg.goal)}
    if state.leg is not None:
        arrays |= _leaves("inner", state.leg.inner)
    return Snapshot(content, arrays)


def restore(method: Method, here: Setup, like: State, snapshot: Snapshot) -> State:
    """What was stored, in the structure of a fresh state of the same run."""
    content, arrays = snapshot
    check_notes(content["notes"], like.notes)
    state = replace(
        like,
        **{name: content[name] for name in NUMBERS},
        **{name: Tally(content[name]) for name in TALLIES},
        **{name: _filled(name, getattr(like, name), arrays) for name in ARRAYS},
        notes=replace(like.notes, **content["notes"]),
        history=History([_row(row) for row in content["history"]]),
        scales=Scales(content["objective_scale"], arrays["constraint_scales"], arrays["inward"]),
    )
    if content["leg"] is None:
        return state
    oracle = method.oracle(here, state)
    _, leg = method.plan(here, state, oracle, _goal_again(content["leg"]["goal"]))
    return replace(state, leg=leg._replace(inner=_filled("inner", _unfilled(method, here, state, oracle, leg), arrays)))


def _unfilled(method: Method, here: Setup, state: State, oracle: Any, leg: Leg) -> Any:
    """The structure of the state of a leg's steps: nothing is computed for it where they are compiled whole."""
    if here.solver.host:
        return method.init(here, state, oracle, leg)
    return eqx.filter_eval_shape(method.init, here, state, oracle, leg)


def _goal(goal: Any) -> Any:
    if goal is None:
        return None
    content = goal._asdict()
    return content | {"constants": None if goal.constants is None else asdict(goal.constants)}


def _goal_again(content: Any) -> Goal | None:
    if content is None:
        return None
    constants = content["constants"]
    kind = MeritConstants if constants and "weight" in constants else SubproblemConstants
    return Goal(**content | {"constants": None if constants is None else kind(**constants)})


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _row(stored: Mapping[str, Any]) -> Row:
    content: dict[str, Any] = {**stored, "multipliers": tuple(stored["multipliers"])}
    return Row(**content)


def _leaves(name: str, tree: Any) -> dict[str, np.ndarray]:
    leaves = [leaf for leaf in jax.tree.leaves(tree) if _is_array(leaf)]
    return {f"{name}/{i}": np.asarray(_words(leaf)) for i, leaf in enumerate(leaves)}


def _filled(name: str, like: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The tree `like` with the stored arrays for leaves; they must be of the same shapes and types."""
    leaves, structure = jax.tree.flatten(like)
    stored, filled = itertools.count(), []
    for leaf in leaves:
        if not (_is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct)):
            filled.append(leaf)
            continue
        array = arrays.get(f"{name}/{next(stored)}")
        key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        wanted = jax.eval_shape(jax.random.key_data, leaf) if key else leaf
        if array is None or array.shape != wanted.shape or array.dtype != wanted.dtype:
            raise InputError(
                f"the checkpoint's {name} does not fit this solver and problem",
                f"arrays like {wanted.shape} of {wanted.dtype}",
                "resume with the problem, the solver and the precision that the run was started with",
            )
        if isinstance(leaf, (np.ndarray, np.generic)):
            filled.append(array)
        else:
            filled.append(
                jax.random.wrap_key_data(jnp.asarray(array), impl="threefry2x32") if key else jnp.asarray(array)
            )
    return jax.tree.unflatten(structure, filled)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, np.generic, jax.Array))


def _words(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


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

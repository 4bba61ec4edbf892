"""A run as numbers and arrays, and back: what a checkpoint file holds of it.

Structure is never stored. It is that of a run of the same problem, which is made first and then filled in; so a checkpoint
is plain data, and reading one executes nothing.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from ..oracle import Tally
from ..oracle.draw import words
from ..solvers.drive import begin
from ..theory.constants import SubproblemConstants
from .history import History, Row
from .scaling import Scales
from .state import ARRAYS, NUMBERS, TALLIES, Goal, Unfinished

if TYPE_CHECKING:
    from .run import Run


class Snapshot(NamedTuple):
    """What is stored: JSON content and arrays."""

    content: dict[str, Any]
    arrays: dict[str, np.ndarray]


def take(run: "Run", unfinished: Unfinished | None) -> Snapshot:
    """The run as it stands."""
    content: dict[str, Any] = {name: _number(getattr(run, name)) for name in NUMBERS}
    content |= {name: getattr(run, name).counts for name in TALLIES}
    content["history"] = [asdict(row) for row in run.history]
    content["objective_scale"] = run.scales.objective
    arrays = {"constraint_scales": np.asarray(run.scales.constraints)}
    for name in ARRAYS:
        arrays |= _leaves(name, getattr(run, name))
    content["goal"] = None
    if unfinished is not None:
        goal = unfinished.goal._asdict()
        goal["constants"] = None if goal["constants"] is None else asdict(goal["constants"])
        content["goal"] = goal
        arrays |= _leaves("inner", unfinished.state)
    return Snapshot(content, arrays)


def restore(run: "Run", snapshot: Snapshot):
    """Fill a fresh run of the same problem with what was stored."""
    content, arrays = snapshot
    for name in NUMBERS:
        setattr(run, name, content[name])
    run.begun = run.outer + (content["goal"] is not None)
    for name in TALLIES:
        setattr(run, name, Tally(content[name]))
    run.history = History([_row(row) for row in content["history"]])
    run.scales = Scales(content["objective_scale"], arrays["constraint_scales"])
    for name in ARRAYS:
        setattr(run, name, _filled(name, getattr(run, name), arrays))
    if content["goal"] is None:
        return
    goal = dict(content["goal"])
    goal["constants"] = None if goal["constants"] is None else SubproblemConstants(**goal["constants"])
    goal = Goal(**goal)
    plan = run.solver.plan(goal, run.dtype)
    sub, key = run.subproblem(run.penalty), words(0) if run.solver.host else run.key
    if run.solver.host:
        like = begin(run.solver, sub, run.z, plan, run.memory, key)
    else:
        like = eqx.filter_eval_shape(begin, run.solver, sub, run.z, plan, run.memory, key)
    run.unfinished = Unfinished(goal, _filled("inner", like, arrays))


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
    stored, filled = iter(range(len(arrays))), []
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

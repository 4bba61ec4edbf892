"""A problem as a checkpoint holds it: what makes two of them the same, and the structure of its parameters.

The same are structure, every row, the functions' equations, and their values at the start. Equations are those that one version of
JAX makes of a function: where another one wrote the checkpoint, the values must do. Structures of dicts, lists, tuples and
statements' scalars can be written as JSON, others must be given again.
"""

import re
from dataclasses import asdict, fields
from math import prod
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..errors import InputError
from ..problem import Parameters
from ..problem.digest import digest_array, digest_function, digest_of
from ..problem.statements.lifting import Lifted
from ..problem.traced import trace
from ..sets import Reals
from ..theory.constants import ProblemConstants
from .setup import Setup

CLOSE = 1e-3  # relative: rounding differs between machines, functions differ by more


def fingerprint(here: Setup, probe: np.ndarray) -> dict[str, Any]:
    """Names for what must agree, and what they are, as JSON holds them."""
    layout, parameters = here.program.layout, here.program.parameters
    return {
        "parameters": [list(shape) for shape in parameters.shapes],
        "precision": str(np.dtype(here.dtype)),
        "domain": [type(here.problem.domain).__name__, _bounds(here.problem.domain)],
        "constraints": [
            [name, kind, list(shape)]
            for name, kind, shape in zip(layout.names, layout.kinds, layout.shapes, strict=True)
        ],
        "populations": [source.size for source in here.problem.sources],
        "data": [source.digest for source in here.problem.sources],
        "solver": describe(here.asked),
        "bounds": _numbers(here),
        "functions": [jax.__version__, _functions(here)],
        "values": [float(value) for value in probe],
    }


def refuse_another(here: Setup, probe: np.ndarray, stored: dict[str, Any], where: Any):
    """Raise, naming the difference, where a checkpoint is that of another problem or solver."""
    own = fingerprint(here, probe)
    for name, value in own.items():
        before = stored.get(name)
        if name == "values":
            same = _close(before or [], value)
        elif name == "functions" and isinstance(before, list) and before[:1] != value[:1]:
            same = True  # of another JAX
        else:
            same = before == value
        if not same:
            raise InputError(
                f"{where} is a checkpoint of another problem: its {name} {_differ(name, before, value)}",
                "the problem, the solver and the data that the run was started with",
                "pass those, or start a new run in another folder",
            )


def describe(module: Any) -> Any:
    """A solver's settings as JSON holds them."""
    if isinstance(module, ProblemConstants):
        return {"name": "constants"} | asdict(module)
    if not isinstance(module, eqx.Module):
        return module if isinstance(module, (bool, int, float, str, type(None))) else repr(module)
    settings = {field.name: describe(getattr(module, field.name)) for field in fields(module)}
    return {"name": getattr(module, "name", type(module).__name__)} | settings


def _differ(name: str, before: Any, now: Any) -> str:
    if name == "data":
        return "had other rows or weights"
    if name == "bounds":
        return "or coefficients were others"
    if name == "functions":
        return "had other equations, other numbers in them, or closed over other arrays"
    if name == "values":
        return "at the start were others"
    return f"were {before}, not {now}" if isinstance(now, list) else f"was {before}, not {now}"


def _close(before: list[float], now: list[float]) -> bool:
    size = CLOSE * float(np.max(np.abs(np.nan_to_num(now)), initial=0.0))
    return len(before) == len(now) and bool(np.allclose(before, now, rtol=CLOSE, atol=size, equal_nan=True))


def _bounds(domain: Any) -> str:
    """A digest of the numbers of a set, and of its kind."""
    leaves, structure = jax.tree.flatten(domain)
    numbers = [digest_array(np.asarray(leaf)) for leaf in leaves if eqx.is_array_like(leaf)]
    return digest_of(re.sub(r" at 0x[0-9a-f]+", "", str(structure)), numbers)  # functions are known by their equations


def _numbers(here: Setup) -> str:
    """A digest of what stands beside the functions: coefficients, constants and bounds."""
    program = here.program
    numbers = (program.coefficients, program.objective_constant, program.constraint_constant)
    return digest_of([digest_array(np.asarray(number)) for number in numbers])


def _functions(here: Setup) -> str:
    """A digest of the equations of all functions, in their places, with what they close over."""
    program, domain = here.program, here.problem.domain
    parts: list[Any] = [program.fixed, program.families]
    parts += [[digest_array(constant) for constant in group] for group in program.constants]
    if not isinstance(domain, Reals):
        at = program.parameters.arrays(np.zeros(program.parameters.size, here.dtype))
        parts.append(digest_function(*trace(domain.project, at)))
    return digest_of(parts)


def pack(parameters: Parameters) -> Any:
    """The structure, or None where it has other containers or static leaves: then it must be given again."""
    if parameters.static_leaves:
        return None
    leaves = [{"shape": list(s), "dtype": t} for s, t in zip(parameters.shapes, parameters.dtypes, strict=True)]
    indexed = jax.tree.unflatten(parameters.treedef, [_Leaf(content) for content in leaves])
    try:
        return _pack(indexed)
    except TypeError:
        return None


def unpack(structure: Any, vector: np.ndarray) -> Any:
    """The pytree of that structure with the numbers of a flat vector."""
    tree, _ = _unpack(structure, vector, 0)
    return tree


class _Leaf:
    def __init__(self, content: dict[str, Any]):
        self.content = content


def _pack(tree: Any) -> Any:
    if isinstance(tree, _Leaf):
        return tree.content
    if type(tree) is dict and all(isinstance(key, str) for key in tree):
        return {"dict": [[key, _pack(tree[key])] for key in sorted(tree)]}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [_pack(part) for part in tree]}
    if type(tree) is Lifted:
        return {"lifted": [_pack(tree.x), _pack(tree.auxiliary)]}
    if tree is None:
        return {"none": []}
    raise TypeError


def _unpack(structure: dict[str, Any], vector: np.ndarray, start: int) -> tuple[Any, int]:
    if "shape" in structure:
        stop = start + prod(structure["shape"])
        return vector[start:stop].reshape(structure["shape"]).astype(structure["dtype"]), stop
    [(kind, parts)] = structure.items()
    if kind == "none":
        return None, start
    names = [name for name, _ in parts] if kind == "dict" else []
    values = []
    for part in [part for _, part in parts] if kind == "dict" else parts:
        value, start = _unpack(part, vector, start)
        values.append(value)
    made = {
        "dict": lambda: dict(zip(names, values, strict=True)),
        "list": lambda: values,
        "tuple": lambda: tuple(values),
        "lifted": lambda: Lifted(*values),
    }
    return made[kind](), start

"""The structure of parameters of dicts, lists, tuples and statements' scalars, as JSON: all that a checkpoint can hold."""

from math import prod
from typing import Any

import jax
import numpy as np

from ..problem import Parameters
from ..problem.statements.lifting import Lifted


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

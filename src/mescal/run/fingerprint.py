"""What makes two problems the same for a checkpoint: structure, samples of the data, and what the functions say at the start."""

import hashlib
from dataclasses import fields
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..errors import InputError
from ..problem import OnDisk, Population, RowStream, Sampler, Sharded, Source
from .setup import Setup

ROWS, BYTES = 4096, 16 << 20  # of each array that are looked at, spread over it evenly
CLOSE = 1e-3  # relative: rounding differs between machines, functions differ by more


def fingerprint(run: Setup, probe: np.ndarray) -> dict[str, Any]:
    """Names for what must agree, and what they are, as JSON holds them."""
    layout, parameters = run.program.layout, run.program.parameters
    return {
        "parameters": [list(shape) for shape in parameters.shapes],
        "precision": str(np.dtype(run.dtype)),
        "domain": [type(run.problem.domain).__name__, _bounds(run.problem.domain)],
        "constraints": [
            [name, kind, list(shape)]
            for name, kind, shape in zip(layout.names, layout.kinds, layout.shapes, strict=True)
        ],
        "populations": [source.size for source in run.problem.sources],
        "data": [_digest(source) for source in run.problem.sources],
        "solver": describe(run.asked),
        "functions": [float(value) for value in probe],
    }


def refuse_another(run: Setup, probe: np.ndarray, stored: dict[str, Any], where: Any):
    """Raise, naming the difference, where a checkpoint is that of another problem or solver."""
    own = fingerprint(run, probe)
    for name, value in own.items():
        before = stored.get(name)
        if name == "functions":
            same = _close(before or [], value)
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
    if not isinstance(module, eqx.Module):
        return module if isinstance(module, (bool, int, float, str, type(None))) else repr(module)
    settings = {field.name: describe(getattr(module, field.name)) for field in fields(module)}
    return {"name": getattr(module, "name", type(module).__name__)} | settings


def _differ(name: str, before: Any, now: Any) -> str:
    if name == "data":
        return "had other rows"
    if name == "functions":
        return "had other values at the start"
    return f"were {before}, not {now}" if isinstance(now, list) else f"was {before}, not {now}"


def _close(before: list[float], now: list[float]) -> bool:
    size = CLOSE * float(np.max(np.abs(np.nan_to_num(now)), initial=0.0))
    return len(before) == len(now) and bool(np.allclose(before, now, rtol=CLOSE, atol=size, equal_nan=True))


def _bounds(domain: Any) -> str:
    """A checksum of the numbers of a set."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(domain):
        if eqx.is_array_like(leaf):
            digest.update(np.ascontiguousarray(np.asarray(leaf)).tobytes())
    return digest.hexdigest()[:16]


def _digest(source: Source) -> str:
    """A checksum of rows spread over the arrays; those that other processes hold are left to the other tests."""
    if isinstance(source, Sampler):
        return "stream"
    if isinstance(source, RowStream):
        return _digest(source.population)
    digest = hashlib.sha256()
    if isinstance(source, Sharded) and not all(leaf.is_fully_addressable for leaf in jax.tree.leaves(source.arrays)):
        return digest.hexdigest()
    if isinstance(source, (OnDisk, Sharded)):
        rows = source.at(np.unique(np.linspace(0, source.size - 1, min(source.size, ROWS)).astype(np.int64)))
        digest.update(b"".join(np.ascontiguousarray(leaf).tobytes() for leaf in jax.tree.leaves(rows)))
        return digest.hexdigest()
    assert isinstance(source, Population)
    for leaf in (*jax.tree.leaves(source.arrays), *([] if source.weights is None else [source.weights])):
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            continue
        width = max(1, int(np.prod(leaf.shape[1:])) * leaf.dtype.itemsize)
        count = max(1, min(leaf.shape[0], ROWS, BYTES // width))
        rows = np.unique(np.linspace(0, leaf.shape[0] - 1, count).astype(np.int64))
        digest.update(np.ascontiguousarray(np.asarray(leaf[rows])).tobytes())
    return digest.hexdigest()

"""What `E(..., over=...)` was given: arrays, rows over many devices, rows on disk, or a stream."""

from typing import Any

from ..errors import InputError, InputTypeError
from .checks import describe
from .sharding import Sharded
from .source import Population, Sampler
from .stored import OnDisk

Finite = Population | Sharded | OnDisk
Source = Finite | Sampler


def as_source(over: Any, weights: Any = None) -> Source:
    """The source that `E(..., over=...)` was given."""
    if isinstance(over, Sampler):
        if weights is not None:
            raise InputError(
                "weights were given together with a Sampler",
                "weights only for a finite population",
                "multiply inside the function, or draw from the weighted distribution",
            )
        return over
    if isinstance(over, (Sharded, OnDisk)):
        return over if weights is None else over.with_weights(weights)
    if callable(over):
        raise InputTypeError(
            f"over={describe(over)} is a function",
            "arrays with one leading axis, or a mescal.Sampler",
            "write over=mescal.Sampler(draw) for a stream",
        )
    return Population(over, weights)


def refuse_mixtures(sources: tuple[Source, ...]):
    """Raise where the populations of one problem cannot be part of one compiled program."""
    placements = {source.placement.mesh for source in sources if isinstance(source, Sharded)}
    if len(placements) > 1:
        raise InputError(
            "populations sharded over different meshes in one problem",
            "one mesh for all sharded populations of a problem",
            "make one mesh and pass it to every mescal.shard",
        )
    if placements and any(isinstance(source, OnDisk) for source in sources):
        raise InputError(
            "a sharded population and one on disk in one problem",
            "rows on disk only where everything runs on one device",
            "shard both (each process reads its part), or keep both on disk",
        )

"""What `E(..., over=...)` was given: arrays, rows over many devices, rows on disk, or a stream of rows or of other samples.

A stream of rows is those of a finite population, drawn one by one with replacement. The expectation is the mean over the rows, as
it is over the population. But no pass over all of them is made: solvers average as many draws as their tolerance takes, and the
judge bounds what it sees of them with a confidence. So the work depends on the noise and on the tolerance, and not on the number
of rows.
"""

import os
from collections.abc import Iterator
from typing import Any

from ..errors import InputError, InputTypeError
from .row_checks import describe
from .sharding import Sharded
from .source import Population, Sampler
from .stored import OnDisk


class RowStream:
    """Draws of the rows of a population, which all count alike; made by `stream`."""

    weighted = False

    def __init__(self, population: Population | OnDisk):
        self.population = population

    @property
    def size(self) -> None:
        """A stream has no size."""
        return None

    @property
    def key(self) -> tuple:
        """What makes two sources the same source: streams of the same population."""
        return ("row stream", *self.population.key)

    def check(self):
        """Refuse NaN and infinity among the rows: one pass over them, when the problem is built."""
        self.population.check()

    def sample_shape(self) -> Any:
        """Shapes and types of one row."""
        return self.population.sample_shape()

    @property
    def digest(self) -> str:
        """That of the rows."""
        return self.population.digest

    def placed(self, dtype: Any) -> Any:
        """The rows as compiled programs see them."""
        return self.population.placed(dtype)

    def __repr__(self) -> str:
        return f"stream of {self.population!r}"


Finite = Population | Sharded | OnDisk
Source = Finite | RowStream | Sampler


def as_source(over: Any, weights: Any = None) -> Source:
    """The source that `E(..., over=...)` was given."""
    if isinstance(over, (Sampler, RowStream)):
        if weights is not None:
            raise InputError(
                f"weights were given together with a {'Sampler' if isinstance(over, Sampler) else 'stream of rows'}",
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
    if isinstance(over, Iterator):
        raise InputTypeError(
            f"over={describe(over)} can be gone through once",
            "arrays with one leading axis, or a mescal.Sampler",
            "collect its samples into an array: numpy.stack(list(samples))",
        )
    return Population.of(over, weights)


def stream(rows: Any) -> RowStream:
    """Rows as a stream, for `E(fn, over=mescal.stream(rows))`: no pass over all of them is made.

    ```python
    rows = mescal.stream(mescal.on_disk("rows/"))
    problem = mescal.Problem(E(loss, over=rows), {"rate": E(rate, over=rows) <= 0.1})
    ```

    The expectation is still the mean over the rows. What it costs depends on the noise and on the tolerance, not on the
    number of rows: for many rows and a loose tolerance. The certificate holds with a confidence, by the central limit
    theorem, instead of exactly; where a few rows among millions carry the mean, draws may miss them, and passes do not.

    **Arguments:**

    - `rows`: a pytree of arrays with one leading axis, or `on_disk(paths)`; without weights.

    **Returns:** a stream. Two expectations over streams of the same rows see the same draws.
    """
    if isinstance(rows, (str, os.PathLike)):
        raise InputError(
            f"stream got a path, {os.fspath(rows)!r}",
            "arrays with one leading axis, or mescal.on_disk(path)",
            "write mescal.stream(mescal.on_disk(path))",
        )
    if isinstance(rows, (Sampler, RowStream, Sharded)) or callable(rows):
        raise InputError(
            f"stream got {describe(rows)}",
            "rows in memory or on disk",
            "give streams, and rows over many devices, to over= as they are; a function of a key becomes a stream by "
            "mescal.Sampler(draw)",
        )
    source = as_source(rows)
    assert isinstance(source, (Population, OnDisk))
    if source.weighted:
        raise InputError(
            "a stream of rows with weights",
            "rows that count alike: heavy rows that are drawn seldom make a stream too noisy to solve",
            "resample the rows by their weights once, or keep them as a population",
        )
    return RowStream(source)


def refuse_mixtures(sources: tuple[Source, ...]):
    """Raise where the populations of one problem cannot be part of one compiled program."""
    placements = {source.placement.mesh for source in sources if isinstance(source, Sharded)}
    if len(placements) > 1:
        raise InputError(
            "populations sharded over different meshes in one problem",
            "one mesh for all sharded populations of a problem",
            "make one mesh and pass it to every mescal.shard",
        )
    if placements and any(_is_on_disk(source) for source in sources):
        raise InputError(
            "a sharded population and one on disk in one problem",
            "rows on disk only where everything runs on one device",
            "shard both (each process reads its part), or keep both on disk",
        )


def _is_on_disk(source: Source) -> bool:
    return isinstance(source.population if isinstance(source, RowStream) else source, OnDisk)

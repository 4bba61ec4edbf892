"""A stream of rows: those of a finite population, drawn one by one with replacement.

The expectation is the mean over the rows, as it is over the population. But no pass over all of them is made: solvers average
as many draws as their tolerance takes, and the judge bounds what it sees of them with a confidence. So the work depends on
the noise and on the tolerance, and not on the number of rows.
"""

from typing import Any

import numpy as np

from .sharding import Sharded
from .source import Population
from .stored import OnDisk

Finite = Population | Sharded | OnDisk


class RowStream:
    """Draws of the rows of a population; made by `stream`."""

    def __init__(self, population: Population | OnDisk):
        self.population = population
        self._shares: np.ndarray | None = None

    @property
    def size(self) -> None:
        """A stream has no size."""
        return None

    @property
    def weighted(self) -> bool:
        """Whether rows count differently."""
        return self.population.weighted

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

    def placed(self, dtype: Any) -> Any:
        """The rows as compiled programs see them."""
        return self.population.placed(dtype)

    def drawn(self, count: int, rng: np.random.Generator) -> Population:
        """That many draws on the host, each row with the probability that its weight gives it."""
        population = self.population
        if population.weights is None:
            indices = rng.integers(population.size, size=count)
        else:
            if self._shares is None:
                self._shares = np.cumsum(np.asarray(population.weights, np.float64))
            indices = np.searchsorted(self._shares, self._shares[-1] * rng.random(count), side="right")
        return Population(population.at(indices).samples)

    def __repr__(self) -> str:
        return f"stream of {self.population!r}"

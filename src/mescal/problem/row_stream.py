"""A stream of rows: those of a finite population, drawn one by one with replacement.

The expectation is the mean over the rows, as it is over the population. But no pass over all of them is made: solvers average
as many draws as their tolerance takes, and the judge bounds what it sees of them with a confidence. So the work depends on
the noise and on the tolerance, and not on the number of rows.
"""

from typing import Any

from .source import Population
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

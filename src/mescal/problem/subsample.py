"""The same problem on some of its rows: a cheap place to start a large one from.

Cost: one read of the rows that are drawn. A solution on n rows is off by what n rows say of the whole, some c n^(-1/2); what
is left to do on all rows is to go from there to the tolerance.
"""

from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError
from .over import RowStream, Source
from .problem import Problem
from .sharding import Sharded
from .source import Population, Sampler


def subsample(problem: Problem, rows: int, seed: int = 0) -> Problem:
    """The problem on at most `rows` rows of each population, drawn without replacement; a `Sampler` stays as it is.

    ```python
    first = mescal.minimize(mescal.subsample(problem, 8192), x0, tol=1e-3)
    result = mescal.minimize(problem, start=first, tol=1e-3)
    ```

    **Arguments:**

    - `problem`: with populations in memory or on disk.
    - `rows`: of each population; one that has no more is kept whole.
    - `seed`: of the draw.

    **Returns:** a problem in memory. Rows keep their weights; expectations over one population still share their rows.
    """
    if not isinstance(problem, Problem):
        raise InputTypeError(f"subsample got {type(problem).__name__}", "a mescal.Problem", "build the problem first")
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
        raise InputError(f"rows={rows!r}", "an integer of at least 1", "8192 rows are looked at whole by solver='auto'")
    rng = np.random.default_rng(seed)
    return problem.with_sources(lambda source: _drawn(source, int(rows), rng))


def _drawn(source: Source, rows: int, rng: np.random.Generator) -> Any:
    if isinstance(source, RowStream):
        source = source.population
    if isinstance(source, Sampler) or source.size <= rows:
        return source
    if isinstance(source, Sharded):
        raise InputError(
            "rows sharded over several devices",
            "populations in memory or on disk",
            "draw rows before mescal.shard, and build the smaller problem from them",
        )
    part = source.at(np.sort(rng.choice(source.size, rows, replace=False)))
    return Population(part.samples, part.weights)

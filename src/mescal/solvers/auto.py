"""`auto`: the solver that fits what is known of a problem before its first sample is looked at.

| what is known | choice | why |
|---|---|---|
| a finite population of at most 8192 thetas | `newton-cg` | a full pass costs what a batch would: exact Newton steps |
| a larger one | `spider` | its steps cost the square root of the population, a Newton step several passes |
| a stream | `spider` | Newton steps need a gradient that is sharper than they are long |

A population of 2^24 thetas or more, in memory, is solved on a sixteenth of its rows first, and then from there: on 10^6 rows
that makes 5 passes of 22. Compiling for another shape takes longer than what it saves on fewer rows.

Measured, see benchmarks/auto.py and benchmarks/growth.py. The dimension does not enter: on 58 to 500 variables it did not
change the order.
"""

from typing import ClassVar

import equinox as eqx

from .base import Solver
from .newton_cg import NewtonCG
from .spider import Spider

SHARE = 1 / 16  # of the rows of a large population, which are solved first


class Auto(Solver):
    """Chooses among the solvers of this folder; the result says which, and why.

    **Arguments:**

    - `small`: the largest population that is looked at whole.
    - `large`: the smallest population that is solved on a sixteenth of its rows first; 0: none is.
    """

    name: ClassVar[str] = "auto"

    small: int = eqx.field(static=True, default=8192)
    large: int = eqx.field(static=True, default=1 << 24)

    def sized(self, population):
        """The solver for a population of this size (None: a stream)."""
        chosen = NewtonCG(exact=self.small) if self._whole(population) else Spider()
        return chosen.sized(population)

    def reason(self, population):
        """Which solver that is, and why."""
        if population is None:
            return "spider was chosen since samples come from a stream"
        if self._whole(population):
            return f"newton-cg was chosen since a full pass has {_counted(population)}, at most {self.small}"
        return f"spider was chosen since a full pass has {_counted(population)}, more than {self.small}"

    def share(self, population):
        """A sixteenth of large populations."""
        return SHARE if population is not None and 0 < self.large <= population else 1.0

    def _whole(self, population: int | None) -> bool:
        return population is not None and population <= self.small


def _counted(evaluations: int) -> str:
    return f"{evaluations} evaluation{'' if evaluations == 1 else 's'}"

"""Where a run starts: a point of the domain, or an error; and what a warm start brings."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ..compiling import compiled
from ..errors import InputError
from ..problem import Problem, Program
from ..problem.parameters import refuse_too_large
from ..sets import ConvexSet, Reals
from .result import Result


@dataclass(frozen=True)
class Start:
    """What a run takes over from one before it."""

    x: Any
    slack: dict[str, np.ndarray]
    multipliers: dict[str, np.ndarray]
    penalty: float

    @classmethod
    def of(cls, result: Result | None) -> "Start | None":
        """From where a run ended."""
        return None if result is None else cls(result.x, result.slack, result.multipliers, result.penalty)


def checked_start(problem: Problem, program: Program, vector: np.ndarray) -> np.ndarray:
    """x0 projected onto the domain, in which it must lie to rounding."""
    if isinstance(problem.domain, Reals):
        return vector
    refuse_too_large(vector, jax.dtypes.canonicalize_dtype(np.float64), "x0")  # what cannot be projected is not near
    inside, projected = _placed(problem.domain, program.parameters.arrays(vector))
    if not bool(inside):
        raise InputError(
            f"x0 lies outside of {problem.domain}",
            "a point of the domain",
            "project it first: problem.domain.project(x0)",
        )
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(projected)])


@compiled
def _placed(domain: ConvexSet, x: Any) -> tuple[jax.Array, Any]:
    return domain.contains(x), domain.project(x)

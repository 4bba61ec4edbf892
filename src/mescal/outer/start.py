"""Where a run starts: a point of the domain, or an error."""

import jax
import numpy as np

from ..errors import InputError
from ..problem import Problem, Program


def checked_start(problem: Problem, program: Program, vector: np.ndarray) -> np.ndarray:
    """x0 projected onto the domain, in which it must lie to rounding."""
    arrays = program.parameters.arrays(vector)
    if not bool(problem.domain.contains(arrays)):
        raise InputError(
            f"x0 lies outside of {problem.domain}",
            "a point of the domain",
            "project it first: problem.domain.project(x0)",
        )
    projected = problem.domain.project(arrays)
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(projected)])

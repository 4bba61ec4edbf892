"""Whether a run that has gone far stands on a ray of endless descent, whatever its method is."""

from dataclasses import replace

import numpy as np

from ..oracle.subproblem import Subproblem
from ..solvers.base import EXHAUSTED, FARAWAY
from ..solvers.ray import far_away, ray_from
from .setup import Setup
from .state import Reading, State

RAY = 3  # what random numbers of an outer iteration are for, beside those of `goals` and `mescal`


def on_a_ray(here: Setup, state: State, sub: Subproblem, began: np.ndarray) -> State:
    """With a feasible ray of endless descent, and the point that it begins at, where one leads on from here."""
    key = (here.settings.seed, state.outer, RAY)
    ray, z, work = ray_from(sub, np.asarray(began), np.asarray(state.z), here.settings.tol.gradient, key)
    return replace(state, ray=ray, z=state.z if ray is None else z, work=state.work + work)


def looked_for_ray(here: Setup, before: State, after: State, sub: Subproblem, reading: Reading) -> State:
    """The same where a leg went far without saying so, as theory modes and baselines do, or was cut off far away.

    A theory mode counts its steps and does not look where it is: its last point is put to the judge however far it has gone.
    """
    if reading.ended == FARAWAY:
        return after
    size = here.program.parameters.size
    start, end = (np.asarray(state.z, np.float64)[:size] for state in (before, after))
    gone, origin = float(np.linalg.norm(end)), np.asarray(here.origin)
    is_far = gone > far_away(origin, start) or (reading.ended == EXHAUSTED and gone > far_away(origin, origin))
    if not np.isfinite(gone) or not is_far:
        return after
    return on_a_ray(here, after, sub, np.asarray(before.z))


def looked_for_ray_at_the_end(here: Setup, state: State, sub: Subproblem) -> State:
    """The same for a run that came to its cap or to numbers that are not finite: overflow may come before far away does.

    No step is made any more, so that this is work of the judge, as its last look is.
    """
    found = on_a_ray(here, state, sub, np.asarray(here.origin))
    return replace(found, work=state.work, judged=state.judged + (found.work - state.work))

"""Grids of settings: what is tried, in which order, what is chosen, and what the search cost."""

import numpy as np
import pytest

import mescal
from mescal.errors import InputError
from mescal.experiments.tune import choices, tune
from mescal.problems import NamedProblem
from mescal.solvers import SpiderPaper, get
from mescal.testing.exercises import ROWS, nearest
from tests.solvers_paper.watched import Nowhere


@pytest.fixture(scope="module")
def named():
    """The nearest point of a half-space, as a named problem."""
    at = nearest()
    return NamedProblem("nearest", at.problem, at.x0, {}, "A half-space.", at.objective, at.solution, "critical")


GRID = {"step_length": (0.001, 0.1), "period": (8, 32)}
MOST = 2e4
SHARED = {"batch": 4, "block": 512, "every": 8, "inner_steps": 256, "search": Nowhere()}


@pytest.fixture(scope="module")
def tuned(named):
    """A grid of steps that are too short, and of others."""
    return tune(named, "spider-paper", GRID, tol=0.05, max_outer=40, max_work=MOST, **SHARED)


def test_all_combinations_are_tried_with_the_defaults_first():
    solver = SpiderPaper(step_length=0.1, period=32)
    tried = choices(solver, GRID)
    assert tried[0] == {"step_length": 0.1, "period": 32} and len(tried) == 4
    assert len({tuple(options.values()) for options in tried}) == 4
    assert len(choices(solver)) == np.prod([len(values) for values in SpiderPaper.grid.values()])


def test_every_paper_mode_has_a_grid_around_its_defaults():
    """Its defaults are one of the choices, so that a search cannot do worse than they do."""
    for name in mescal.solvers.names():
        solver = get(name)
        if solver.mode == "paper":
            first = choices(solver)[0]
            assert first == {option: getattr(solver, option) for option in first}, name


def test_the_choice_is_certified_and_cheapest(named, tuned):
    certified = [trial for trial in tuned.trials if trial.certified]
    assert tuned.best in certified
    assert tuned.best.work == min(trial.work for trial in certified)
    assert tuned.best.options["step_length"] == 0.1
    assert tuned.work == sum(trial.work for trial in tuned.trials)
    again = mescal.minimize(
        named.problem,
        named.x0,
        solver=get("spider-paper", **SHARED | tuned.best.options),
        tol=0.05,
        cone="whole",
        seed=0,
    )
    assert again.converged and again.work.total == tuned.best.work


def test_a_trial_ends_where_it_has_cost_what_the_best_did(tuned):
    """Up to the steps between two looks: a reset of all rows, two small batches in each other step, and a search of one product."""
    least = np.minimum.accumulate([trial.work if trial.certified else MOST for trial in tuned.trials])
    for before, trial in zip(least, tuned.trials[1:], strict=False):
        assert trial.work <= before + ROWS + 7 * 2 * 4 + 2
        assert trial.certified or trial.status == "WORK_LIMIT"


def test_a_search_without_values_is_refused(named):
    with pytest.raises(InputError, match="no grid for the solver 'newton-cg'"):
        tune(named, "newton-cg")
    with pytest.raises(InputError, match="no grid"):
        tune(named, "spider-paper", {"batch": ()})

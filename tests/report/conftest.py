"""What the tests of reports share: runs made up for drawing, and real ones."""

import numpy as np
import pytest

import mescal
from mescal.experiments import write_config, write_result
from tests.report.stored import made_up, made_up_sweep


@pytest.fixture(scope="session")
def make_run():
    return made_up


@pytest.fixture(scope="session")
def sweep():
    return made_up_sweep()


@pytest.fixture(scope="session")
def real_runs(tmp_path_factory, make_sigmoid_problem):
    """Three seeds of a small problem, solved and stored, and one that asks for more than its budget lets it."""
    problem = make_sigmoid_problem(np.random.default_rng(5))
    root, runs = tmp_path_factory.mktemp("runs"), []
    for seed, tol in ((0, 0.01), (1, 0.01), (2, 0.01), (3, 1e-6)):
        asked = {"problem": "own", "solver": "spider", "seed": seed, "tol": tol, "record": "exact"}
        write_config(root / f"seed={seed}", asked)
        budget = 1.0 if seed == 3 else None
        result = mescal.minimize(
            problem, np.zeros(4, np.float32), tol=tol, seed=seed, record="exact", max_work=budget, solver="spider"
        )
        runs.append(write_result(root / f"seed={seed}", result, problem="own", about={}))
    return runs

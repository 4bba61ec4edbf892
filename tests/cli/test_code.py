"""Commands say that runs were made by code that has changed since, and run them again where they are asked to run."""

import pytest

from mescal.experiments import load_run, product, sweep
from mescal.report.page import render
from tests.experiments.test_code import edited


@pytest.fixture
def swept(tmp_path):
    tasks = product(["saddles/circle"], ["spider"], seeds=range(2), tols=[0.05], parameters={"sigma": 0.0})
    sweep(tasks, tmp_path / "store")
    return tasks, tmp_path / "store"


def test_commands_say_so(mescal, swept):
    tasks, store = swept
    folder = store / tasks[0].folder
    edited(folder)
    named = ["saddles/circle", "--set", "sigma=0", "--tol", "0.05", "--solver", "spider"]
    assert "Made by code that has changed since: 1 of these runs." in mescal("compare", store).stderr
    assert mescal("report", store).exit_code == 0 and "saddles/circle" in render([load_run(folder)])
    result = mescal("compare", *named, "--seeds", "2", "--jobs", "1", "--out", store)
    assert result.exit_code == 0 and "1 made by code that has changed since, and run again" in result.stderr
    assert "1 stored already" in result.stderr and load_run(folder).current
    edited(folder)
    solved = mescal("solve", *named, "--out", folder)
    assert solved.exit_code == 0 and "made by code that has changed since: it is run again" in solved.stderr
    assert load_run(folder).current and "nothing was run" in mescal("solve", *named, "--out", folder).stdout

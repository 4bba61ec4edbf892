"""A task small enough to run in every test, and runs of it: one program is compiled for all of them."""

import pytest

from mescal.experiments import run, task


@pytest.fixture(scope="session")
def tiny():
    """A function that makes the task: a saddle on the circle without noise, one equality."""

    def make(**settings):
        return task("saddles/circle", parameters={"sigma": 0.0}, **({"tol": 0.05} | settings))

    return make


@pytest.fixture(scope="session")
def stored(tiny, tmp_path_factory):
    """A finished run with the judge's measures in its history."""
    return run(tiny(record="exact"), tmp_path_factory.mktemp("store") / "run")

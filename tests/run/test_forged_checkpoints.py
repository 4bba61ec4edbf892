"""Every field of a checkpoint missing or of another kind, under a right checksum: an error in three parts, or the run goes on."""

import json
import shutil
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import mescal
from mescal import E, InputError
from mescal.run import checkpoint as checkpoints
from mescal.run.snapshot import Snapshot
from mescal.solvers import Spider
from tests.damage import changed, paths

ROWS = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32) + np.float32(0.5)
X0 = np.array([2.0, -1.0, 0.5], np.float32)
OTHERS: tuple[Any, ...] = (
    None, "words", -1, 0, 0.5, True, [], {}, [[1], [2, 3]], {"a": {"b": ["c"]}}, 10**400, float("nan"), float("inf"),
)  # fmt: skip


@pytest.fixture(scope="module")
def problem() -> mescal.Problem:
    def loss(x, row):
        return jnp.logaddexp(0.0, -row @ x) + 0.01 * x @ x

    return mescal.Problem(E(loss, over=ROWS), {"circle": E(lambda x: x @ x) == 1.0})


@pytest.fixture(scope="module")
def newest(problem, tmp_path_factory):
    """A checkpoint inside of an inner solve."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Spider, "chunk", 1)
        settings = {"solver": "spider", "tol": 1e-5, "seed": 3, "max_work": 3000}
        mescal.minimize(problem, X0, checkpoint=mescal.Checkpoint(folder, seconds=0.0), **settings)
        yield checkpoints.read_checkpoint(checkpoints.files(folder)[-1])


def outcomes(problem, newest, folder, part: str, step: int) -> list[bool]:
    """For every `step`-th change, whether it was refused in three parts; a raw exception ends the test."""
    whole = newest.about if part == "about" else json.loads(json.dumps(newest.snapshot.content))
    changes = [(path, value) for path in paths(whole) for value in ((), *((other,) for other in OTHERS))]
    refused = []
    for path, value in changes[::step]:
        content, arrays = changed(whole, path, *value), newest.snapshot.arrays
        about, state = (content, newest.snapshot.content) if part == "about" else (newest.about, content)
        checkpoints.write_checkpoint(folder / newest.path.name, about, Snapshot(state, arrays))
        try:
            mescal.resume(folder, problem, max_work=1e-3, max_seconds=5)
            refused.append(False)
        except InputError as error:
            refused.append(bool(error.found and error.expected and error.advice))
        shutil.rmtree(folder)
        folder.mkdir()
    return refused


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers of any size reach the solver
@pytest.mark.parametrize("step", [pytest.param(23, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("part", ["about", "state"])
def test_no_forged_field_is_a_raw_exception(problem, newest, tmp_path, part, step):
    folder = tmp_path / "r"
    folder.mkdir()
    refused = outcomes(problem, newest, folder, part, step)
    assert len(refused) > 20 and sum(refused) > len(refused) / 2

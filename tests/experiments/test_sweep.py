"""Sweeps: what is stored is not run again, failures are told, and a killed sweep goes on to the same store."""

import functools
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mescal import InputError
from mescal.experiments import RayExecutor, load_run, load_runs, own_problem, product, sweep, task
from mescal.files import LOCK

SCRIPT = """
import sys
from pathlib import Path
from mescal.experiments import product, sweep
from mescal.kept_programs import keep_compilations

if __name__ == "__main__":
    keep_compilations(Path(sys.argv[2]))
    names = ["saddles/circle", "saddles/strict"]
    sweep(product(names, ["spider"], seeds=range(12), tols=[0.05], parameters={"sigma": 0.0}), sys.argv[1], jobs=2)
"""


def tiny_tasks(seeds=2, tols=(0.05,)):
    return product(["saddles/circle"], ["spider"], seeds=range(seeds), tols=tols, parameters={"sigma": 0.0})


def test_without_joblib_there_is_one_process_and_a_sentence(tmp_path, monkeypatch):
    """Said before anything is cleared or run."""
    (done,) = sweep(tiny_tasks(1), tmp_path).runs
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(InputError, match=r"joblib is not installed(?s:.*)pip install 'mescal-opt\[cli\]', or jobs=1"):
        sweep(tiny_tasks(1), tmp_path, jobs=2, force=True)
    assert load_run(done.path).finished


def timeless(value):
    """A value of JSON without what differs from one execution to the next: seconds, dates, and digests of files with seconds."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key not in ("seconds", "finished", "files")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def content(root: Path) -> dict[str, object]:
    """Everything that a store holds, by path, without times; numbers of a history as they are written, so that nan equals nan."""
    found: dict[str, object] = {}
    for file in sorted(
        path for path in root.rglob("*") if path.is_file() and path.name != LOCK
    ):  # a killed process leaves it
        name = str(file.relative_to(root))
        if file.suffix == ".json":
            found[name] = timeless(json.loads(file.read_text(encoding="utf-8")))
        elif file.suffix == ".npz":
            with np.load(file) as arrays:
                found[name] = {key: arrays[key].tobytes() for key in sorted(arrays.files)}
        else:
            columns = load_run(file.parent).result.history.table()
            found[name] = {key: list(map(repr, column)) for key, column in columns.items() if key != "seconds"}
    return found


def test_a_sweep_runs_what_is_missing(tmp_path):
    events = []
    sweep(tiny_tasks(1), tmp_path)
    swept = sweep(tiny_tasks(2, (0.05, 0.1)), tmp_path, watch=lambda what, folder, _: events.append((what, folder)))
    assert swept.certified and [r.config["seed"] for r in swept.runs] == [0, 1, 0, 1]
    first = tmp_path / tiny_tasks(1)[0].folder
    assert events[0] == ("kept", first)
    assert sorted(what for what, _ in events) == ["finished"] * 3 + ["kept"] + ["started"] * 3
    assert len(load_runs(tmp_path)) == 4


def test_force_runs_everything_again(tmp_path):
    sweep(tiny_tasks(1), tmp_path)
    events = []
    sweep(tiny_tasks(1), tmp_path, force=True, watch=lambda what, *_: events.append(what))
    assert events == ["started", "finished"]


def test_a_store_with_another_run_in_a_folder_is_refused_before_anything_runs(tmp_path):
    sweep(tiny_tasks(1), tmp_path)
    other = product(["saddles/circle"], ["spider"], seeds=(1, 0), tols=[0.05], parameters={"sigma": 0.0}, max_outer=7)
    with pytest.raises(InputError, match="its max_outer is 100, not 7"):
        sweep(other, tmp_path)
    assert len(load_runs(tmp_path)) == 1


def test_tasks_that_share_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match="share a folder"):
        sweep([*tiny_tasks(1), *tiny_tasks(1)], tmp_path)


def test_one_failure_does_not_stop_the_others(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def make():\n    raise RuntimeError('no luck')\n", encoding="utf-8")
    bad = task(own_problem(f"{file}:make"))
    swept = sweep([bad, *tiny_tasks(1)], tmp_path / "store")
    assert not swept.certified and len(swept.runs) == 1
    assert (
        list(swept.failed) == [tmp_path / "store" / bad.folder]
        and "no luck" in swept.failed[tmp_path / "store" / bad.folder]
    )


def test_an_interrupted_run_ends_the_sweep(tmp_path, monkeypatch):
    module = importlib.import_module("mescal.experiments.task")

    @functools.wraps(module.minimize)
    def interrupted(*args, **settings):
        def stop(_):
            raise KeyboardInterrupt

        return minimize(*args, **(settings | {"progress": stop}))

    minimize = module.minimize
    monkeypatch.setattr(module, "minimize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(tiny_tasks(2, (1e-12,)), tmp_path)
    assert [r.finished for r in load_runs(tmp_path)] == [False]


def test_an_executor_serves_in_place_of_processes(tmp_path, monkeypatch):
    """Threads stand for clusters, which are in test_clusters; folders keep the names that they were asked for under."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def make():\n    raise RuntimeError('no luck')\n", encoding="utf-8")
    bad = task(own_problem("mine.py:make"))
    with ThreadPoolExecutor(2) as executor:
        swept = sweep([bad, *tiny_tasks(2)], "store", jobs=executor)
    assert len(swept.runs) == 2 and list(swept.failed) == [Path("store") / bad.folder]


def test_an_executor_whose_workers_are_gone_ends_the_sweep(tmp_path):
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        sweep(tiny_tasks(1), tmp_path, jobs=executor)


def test_without_ray_its_executor_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=re.escape("pip install 'mescal-opt[ray]'")):
        RayExecutor()


def test_a_killed_sweep_goes_on_to_the_same_store(tmp_path):
    """SIGKILL to all processes in the middle, start again: what is stored equals an uninterrupted sweep, bit for bit."""
    script, killed, cache = tmp_path / "sweep.py", tmp_path / "killed", tmp_path / "cache"
    script.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(script), str(killed), str(cache)]
    process = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 300
    while not (before := list(killed.rglob("result.json"))) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {path: path.stat().st_mtime_ns for path in killed.rglob("result.json")}
    assert 0 < len(before) < 24

    subprocess.run(command, check=True, timeout=300)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    names = ["saddles/circle", "saddles/strict"]
    whole = product(names, ["spider"], seeds=range(12), tols=[0.05], parameters={"sigma": 0.0})
    assert sweep(whole, tmp_path / "whole").certified
    assert len(list(killed.rglob("result.json"))) == 24
    assert content(killed) == content(tmp_path / "whole")

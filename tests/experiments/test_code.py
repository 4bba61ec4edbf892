"""Runs of code that has changed since are run again, and said to be; reports of old runs still work."""

import gc
import json
import logging
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mescal import baselines, solvers
from mescal.experiments import code, load_run, product, run, sweep, task
from mescal.experiments.task import code_now


@pytest.fixture
def swept(tmp_path):
    tasks = product(["saddles/circle"], ["spider"], seeds=range(2), tols=[0.05], parameters={"sigma": 0.0})
    sweep(tasks, tmp_path / "store")
    return tasks, tmp_path / "store"


def edited(folder):
    """As if the run had been made by other code."""
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | {"code": "0" * 16}), encoding="utf-8")


def test_a_digest_counts_what_an_algorithm_is_made_of(tmp_path):
    spider, scr = (code.sources(code.PACKAGE / "solvers" / name) for name in ("spider.py", "scr.py"))
    for name in ("solvers/spider", "solvers/base", "run/loop", "certificate/certify", "oracle/look", "compiling"):
        assert code.PACKAGE / f"{name}.py" in spider
    names = {path.relative_to(code.PACKAGE).as_posix() for path in spider}
    assert not names & {"solvers/scr.py", "solvers/natasha2.py", "baselines/conex.py", "report/page.py", "cli/solve.py"}
    assert code.PACKAGE / "solvers/scr.py" in scr
    digests = {code.code_of(solvers.get(name)) for name in ("scr", "natasha2", "newton-cg", "sg-hv-nc")}
    assert len(digests | {code.code_of(baselines.get("conex"))}) == 5


def test_two_threads_may_ask_at_once():
    """As a sweep and what watches it do. Where Python collects garbage it may change threads, in the midst of its parser too, which
    then failed with "AST constructor recursion depth mismatch"."""
    files, limits, yields = code.sources(None)[:40], gc.get_threshold(), lambda *_: time.sleep(0)
    gc.callbacks.append(yields)
    gc.set_threshold(200)
    try:
        with ThreadPoolExecutor(2) as threads:
            assert len(list(threads.map(lambda _: [list(code._algorithms(path)) for path in files], range(2)))) == 2
    finally:
        gc.set_threshold(*limits)
        gc.callbacks.remove(yields)


def test_a_solver_of_ones_own_may_build_on_any():
    every = set(code.sources(None))
    for room in ("solvers", "baselines"):
        assert set((code.PACKAGE / room).rglob("*.py")) <= every
    assert set(code.sources(code.PACKAGE / "solvers" / "scr.py")) < every
    named = task("saddles/circle", solver="scr").config()
    assert code_now(named) == code.code_of(solvers.get("scr")) != code.code_of_all()
    assert code_now(named | {"solver": "gone.py:Gone", "solver_source": {"file": "gone.py"}}) == code.code_of_all()


def test_a_sweep_runs_what_was_made_by_other_code_again(swept, caplog):
    tasks, store = swept
    edited(store / tasks[0].folder)
    assert not load_run(store / tasks[0].folder).current and load_run(store / tasks[1].folder).current
    events = []
    sweep(tasks, store, watch=lambda what, folder, _: events.append((what, folder)))
    first = store / tasks[0].folder
    assert sorted(what for what, _ in events) == ["changed", "finished", "kept", "started"]
    assert [folder for what, folder in events if what != "kept"] == [first] * 3 and load_run(first).current
    edited(first)
    with caplog.at_level(logging.WARNING, "mescal"):
        sweep(tasks, store)
    assert "1 stored runs were made by code that has changed since" in caplog.text


def test_an_unfinished_run_of_other_code_starts_over(tmp_path):
    given = task("saddles/circle", parameters={"sigma": 0.0}, solver="spider", tol=1e-12, max_work=1.0)
    stopped = run(given, tmp_path)
    assert not stopped.converged and list((tmp_path / "checkpoint").iterdir())
    (tmp_path / "result.json").unlink()
    edited(tmp_path)
    again = run(given, tmp_path)
    assert again.current and again.result is not None and again.result.work == stopped.result.work
